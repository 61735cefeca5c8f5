use proptest::prelude::*;

use super::*;
use crate::condition::Condition;
use crate::key::path::steps::STEPS;
use crate::key::testing::Request;
use crate::key::{Host, Path};

fn request(host: &str, path: &str) -> Request {
    Request { host: Some(host.into()), path: path.into(), ..Request::default() }
}

/// An index of conditions that each name one host, one path, both, or neither.
fn index(conditions: &[(Option<HostIs>, Option<PathMatches>)]) -> Index {
    let mut index = Index::default();
    for (host, path) in conditions {
        index.add(&[Target { host: host.as_ref(), path: path.as_ref() }]);
    }
    index
}

fn holds(condition: &(Option<HostIs>, Option<PathMatches>), view: &Request) -> bool {
    let (host, path) = condition;
    let is_host = host.as_ref().is_none_or(|host| host.holds(view).unwrap());
    is_host && path.as_ref().is_none_or(|path| path.holds(view).unwrap())
}

#[test]
fn a_condition_is_found_by_any_of_its_targets_and_once() {
    let paths = ["/a", "/a", "/b/*", "/*"].map(|pattern| Path.matches(pattern));
    let mut index = Index::default();
    index.add(&[Target::default()]);
    index.add(&paths.each_ref().map(|path| Target { path: Some(path), host: None }));
    index.add(&[]);
    index.add(&[Target::default(), Target { path: Some(&paths[0]), host: None }]);
    let found = |path| index.candidates(&request("x.org", path)).collect::<Vec<_>>();
    for path in ["/a", "/b/c", "/c"] {
        assert_eq!(found(path), [0, 1, 3], "{path}");
    }
}

#[test]
fn a_pattern_of_any_length_is_found() {
    for length in [15, 16, 17, 3_900] {
        let pattern = Path.matches(&"/a".repeat(length));
        let index = index(&[(None, Some(pattern))]);
        let found = |length| index.candidates(&request("x.org", &"/a".repeat(length))).count();
        assert_eq!(found(length), 1, "{length}");
        assert_eq!(found(14), 0, "{length}");
    }
}

#[test]
fn where_the_host_or_the_path_cannot_be_read_all_conditions_are_asked() {
    let index = index(&[
        (Some(Host.is("a.org")), None),
        (None, Some(Path.matches("/a"))),
        (Some(Host.is("b.org")), Some(Path.matches("/b"))),
    ]);
    let long = format!("/{}", "a".repeat(crate::condition::MAX_PATH));
    for (host, path) in [("a.org", long.as_str()), ("a%2e.org", "/a")] {
        let found: Vec<_> = index.candidates(&request(host, path)).collect();
        assert_eq!(found, [0, 1, 2], "{host} {}", path.len());
    }
}

#[test]
fn the_steps_of_a_search_do_not_grow_with_the_number_of_conditions() {
    let steps = |count: usize, path: &str| {
        let conditions: Vec<_> = (0..count)
            .map(|i| match i % 3 {
                0 => (None, Some(Path.matches(&format!("/api/v{i}/*")))),
                1 => (None, Some(Path.matches(&format!("/{{any}}/{i}/{{other}}")))),
                _ => (Some(Host.is(format!("{i}.example.com"))), Some(Path.matches("/login"))),
            })
            .collect();
        let index = index(&conditions);
        STEPS.set(0);
        let found = index.candidates(&request("2.example.com", path)).count();
        (found, STEPS.get())
    };
    for (path, expected) in [
        ("/api/v0/x", 1),
        ("/api/1/x", 1),
        ("/x/1/y", 1),
        ("/login", 1),
        ("/none", 0),
        ("/api/%76%30/../v0/x", 1),
    ] {
        assert_eq!(steps(30, path), steps(10_000, path), "{path}");
        assert_eq!(steps(30, path).0, expected, "{path}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_condition_that_holds_is_left_out(
        conditions in prop::collection::vec((
            prop::option::of(prop::sample::select(vec![
                "a.org", "A.ORG", "*.org", "*.a.org", "b.a.org", "[::1]", "[0:0::1]",
            ])),
            prop::option::of(prop::sample::select(vec![
                "/", "/*", "/a", "/A", "/a/*", "/{x}", "/{x}/b", "/a/{y}", "/a/b", "/%61/b/{*z}", "/{x}/{y}/*",
            ])),
        ), 0..40),
        host in prop::sample::select(vec![
            "a.org", "B.a.org", "c.b.a.org", ".a.org", "org", "", "[::1]:80", "[0::1]", "a.org.",
        ]),
        pieces in prop::collection::vec(prop::sample::select(vec![
            "/", "a", "b", "%61", "%2F", "..", "/a", "/b", "/../", "/./", "//", "/xxxxxxxx",
        ]), 0..60),
    ) {
        let conditions: Vec<_> = conditions
            .into_iter()
            .map(|(host, path)| {
                (host.map(|host| Host.matches(host)), path.map(|path| Path.matches(path)))
            })
            .collect();
        let view = request(host, &format!("/{}", pieces.concat()));
        let found: Vec<_> = index(&conditions).candidates(&view).collect();
        prop_assert!(found.is_sorted_by(|one, other| one < other), "{:?}", found);
        for (at, condition) in conditions.iter().enumerate() {
            // The index does not look at anything else, so what it finds holds.
            prop_assert_eq!(found.contains(&at), holds(condition, &view), "{} {:?}", at, condition);
        }
    }
}
