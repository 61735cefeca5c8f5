use proptest::prelude::*;

use super::*;
use crate::condition::Not;
use crate::key::path::segments::{Dots, READINGS, Reading, Slash};
use crate::key::path::steps::{PARSES, STEPS};
use crate::key::testing::Request;

fn matches(pattern: &str, path: &str) -> bool {
    Path.matches(pattern).holds(&Request { path: path.into(), ..Request::default() }).unwrap()
}

#[test]
fn a_pattern_matches_segment_by_segment() {
    for (pattern, path, expected) in [
        ("/", "/", true),
        ("/", "/a", false),
        ("/login", "/login", true),
        ("/login", "/Login", false),
        ("/login", "/logins", false),
        ("/login", "/login/x", false),
        ("/login", "/x/login", false),
        ("/users/{id}", "/users/7", true),
        ("/users/{id}", "/users", false),
        ("/users/{id}", "/users/7/posts", false),
        ("/api/{id}/*", "/api/7/a/b", true),
        ("/api/{id}/*", "/api/7", true),
        ("/api/{id}/*", "/api", false),
        ("/api/{*rest}", "/api/a/b", true),
        ("/*", "/", true),
        ("/*", "/a/b", true),
        ("/a/", "/a", true),
        ("/caf%C3%A9", "/café", true),
    ] {
        assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
    }
}

#[test]
fn no_spelling_of_a_path_gets_around_it() {
    for path in [
        "/%6Cogin",
        "/%6cogin",
        "/%6C%6F%67%69%6E",
        "//login",
        "/login/",
        "///login//",
        "/%2Flogin",
        "/login%2F",
        "/./login",
        "/login/.",
        "/x/../login",
        "/x/%2e%2E/login",
        "/x%2F..%2flogin",
        "/../login",
        "/login/x/..",
        "/login//..",
        "/x//../../login",
    ] {
        assert!(matches("/login", path), "{path}");
    }
}

/// The guide names these, and says what to do if the application takes them for `/login`.
#[test]
fn spellings_that_only_some_applications_fold_are_other_paths() {
    for path in [
        "/LOGIN",
        "/login;x",
        "/login%3Bx",
        "/login%20",
        "/login%00",
        "/login.",
        r"/x\..\login",
        "/x%5C..%5Clogin",
    ] {
        assert!(!matches("/login", path), "{path}");
        // A pattern for more than the one path covers them.
        assert!(matches("/*", path), "{path}");
    }
}

#[test]
fn where_readings_differ_any_of_them_counts() {
    for (pattern, path) in [
        // One segment for servers that decode afterwards, two for those that decode before.
        ("/users/{id}", "/users/a%2Fb"),
        ("/users/{id}/{post}", "/users/a%2Fb"),
        // A name like any other, or the way up.
        ("/files/*", "/files/../other"),
        ("/other", "/files/../other"),
    ] {
        assert!(matches(pattern, path), "{pattern} {path}");
    }
}

#[test]
fn what_was_encoded_twice_is_another_path() {
    assert!(!matches("/login", "/%256Cogin"));
    assert!(!matches("/login", "/%login"));
    assert!(matches("/100%", "/100%"));
    assert!(matches("/a%2Fb", "/a%2fb"));
}

#[test]
fn what_is_no_pattern_is_refused_with_what_is_wrong() {
    let error = |pattern| Path.try_matches(pattern).unwrap_err().to_string();
    for (pattern, problem) in [
        ("", "does not begin with a `/`"),
        ("login", "does not begin with a `/`"),
        ("/a?b=c", "has more than a path: a query is a condition of its own"),
        ("/a//b", "has an empty segment"),
        ("/a//", "has an empty segment"),
        ("/{}", "has an empty segment"),
        ("/a/../b", "has a segment `.` or `..`, which stands for another path"),
        ("/a/%2e%2E/b", "has a segment `.` or `..`, which stands for another path"),
        ("/a/%2e", "has a segment `.` or `..`, which stands for another path"),
        ("/*/a", "has a `*` elsewhere than at its end"),
        ("/a*", "has a `*` elsewhere than at its end"),
        ("/{*a}/b", "has a `*` elsewhere than at its end"),
        (
            "/user-{id}",
            "has a brace within a segment: braces hold a whole one, as in `/users/{id}`",
        ),
    ] {
        assert_eq!(error(pattern), format!("the path pattern `{pattern}` {problem}"));
    }
    assert_eq!(Path.try_matches("a").unwrap_err().pattern(), "a");
}

/// They are any number of segments, one of two texts, or the end: never just any one segment.
#[test]
fn braces_that_mean_more_to_another_router_are_refused() {
    for braces in [
        "{path:path}",
        "{tail:.+}",
        "{rest...}",
        "{proxy+}",
        "{+path}",
        "{$}",
        "{id:int}",
        "{id:[0-9]+}",
        "{v1,v2}",
        "{id!}",
        "{ }",
    ] {
        let error = Path.try_matches(&format!("/files/{braces}")).unwrap_err().to_string();
        assert!(error.contains("has more than a name in braces"), "{error}");
    }
    for braces in ["{id}", "{user-id}", "{user_id2}", "{größe}", "{*rest}", "{*}", "*"] {
        assert!(Path.try_matches(&format!("/files/{braces}")).is_ok(), "{braces}");
    }
}

/// [`Segments`] in the plainest form.
fn model(path: &str, reading: Reading) -> Vec<Vec<u8>> {
    let path = match reading.slash {
        Slash::Written => path.to_owned(),
        Slash::Decoded => path.replace("%2F", "/").replace("%2f", "/"),
    };
    let mut segments: Vec<String> = Vec::new();
    for segment in path.split('/') {
        let decoded: Vec<u8> = percent_decoded(segment.as_bytes()).collect();
        match decoded.as_slice() {
            b"" if reading.dots != Dots::ResolvedFirst => {}
            b"." if reading.dots != Dots::Kept => {}
            b".." if reading.dots != Dots::Kept => drop(segments.pop()),
            _ => segments.push(segment.to_owned()),
        }
    }
    segments.retain(|segment| !segment.is_empty());
    segments.iter().map(|segment| percent_decoded(segment.as_bytes()).collect()).collect()
}

/// With more than [`MAX_UNREAD`](super::readings) bytes, so that it is parsed.
#[test]
fn a_long_path_matches_as_a_short_one_does() {
    let long = "x".repeat(500);
    assert!(matches("/{a}/login", &format!("/{long}/login")));
    assert!(matches("/{a}/*", &format!("/{long}/login/")));
    assert!(!matches("/{a}/login", &format!("/{long}/logins")));
    assert!(!matches("/{a}/login", &format!("/{long}")));
}

#[test]
fn an_exception_for_a_path_is_none_for_what_reads_in_another_way() {
    let excepted = |path: &str| {
        let request = Request { path: path.into(), ..Request::default() };
        !Not(Path.matches("/health")).holds(&request).unwrap()
    };
    for path in ["/health", "/he%61lth", "//health", "/health/"] {
        assert!(excepted(path), "{path}");
    }
    for path in ["/x/../health", "/health%2F..", "/health/..", "/other"] {
        assert!(!excepted(path), "{path}");
    }
}

#[test]
fn a_path_that_is_too_long_to_be_read_is_the_clients_to_mend() {
    let path = format!("/{}", "a".repeat(MAX_PATH));
    assert!(!matches("/login", &path[..MAX_PATH]));
    let request = Request { path, ..Request::default() };
    let condition = Path.matches("/login");
    let missing = condition.holds(&request).unwrap_err();
    assert!(missing.is_ambiguous());
    assert_eq!(missing.to_string(), "the request has to have a path of at most 8000 bytes");
    assert_eq!(Not(condition).holds(&request), Err(missing));
}

/// The longest paths with as many of something as possible, which a client may send to keep the server busy.
fn costly_paths(length: usize) -> Vec<String> {
    let pieces = [
        "/",
        "//",
        "a",
        "/a",
        "%",
        "%2",
        "%2f",
        "%2F..",
        "/..",
        "/../",
        "/./",
        "/a/..",
        "..",
        "%2e",
        "%61",
        "/%61%2f",
        "/x/../%2F",
    ];
    pieces.map(|piece| format!("/{}", piece.repeat(length / piece.len()))).to_vec()
}

#[test]
fn a_hundred_patterns_take_steps_that_the_patterns_bound_not_the_path() {
    let patterns = (0..100).map(|i| match i % 4 {
        0 => format!("/login{i}"),
        1 => "/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}".to_owned(),
        2 => "/a/a/a/a/a/a/a/a/{b}/*".to_owned(),
        _ => format!("/{{a}}/{i}/*"),
    });
    let patterns: Vec<_> = patterns.map(|pattern| Path.matches(&pattern)).collect();
    let steps_of = |path: &str, patterns: &[PathMatches]| {
        let view = Request { path: path.into(), ..Request::default() };
        STEPS.set(0);
        for pattern in patterns {
            let _ = (pattern.holds(&view), pattern.surely_holds(&view));
        }
        STEPS.get()
    };
    for length in [250, 1_000, MAX_PATH - 8, 65_000] {
        for path in costly_paths(length) {
            let (name, bytes) = (&path[..path.len().min(12)], path.len());
            // Each of six readings looks at a byte at most three times, once for all patterns. Each pattern then
            // compares its own segments. Short plain paths are not parsed.
            let read_once = if bytes > MAX_PATH { 0 } else { 19 * bytes };
            let compared = 2 * 100 * (6 * 10 + 256);
            let steps = steps_of(&path, &patterns);
            assert!(steps <= read_once + compared, "{name}… of {bytes}: {steps} steps");
        }
    }
}

#[test]
fn a_thousand_rules_parse_a_path_once() {
    let patterns: Vec<_> =
        (0..1_000).map(|i| Path.matches(&format!("/login{i}/{{a}}/*"))).collect();
    for path in costly_paths(MAX_PATH - 8) {
        let view = Request { path, ..Request::default() };
        PARSES.set(0);
        for pattern in &patterns {
            let _ = (pattern.holds(&view), pattern.surely_holds(&view));
        }
        assert_eq!(PARSES.get(), 1, "{}…", &view.path[..12]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn segments_agree_with_a_list(pieces in prop::collection::vec(
        prop::sample::select(vec!["/", "/", ".", "..", "%2e", "%2F", "%2f", "%", "a", "b%62"]), 0..12,
    )) {
        let path = format!("/{}", pieces.concat());
        for reading in READINGS {
            let segments = Segments::read(path.as_bytes(), reading);
            let found: Vec<_> = segments.iter().map(<[u8]>::to_vec).collect();
            prop_assert_eq!(found, model(&path, reading), "{} {:?}", path, reading);
        }
    }

    /// A client may put any of this between and around the segments, and spell each byte in either way.
    #[test]
    fn every_spelling_of_a_path_matches_it(
        segments in prop::collection::vec("[a-z0-9.]{1,4}[a-z]", 0..4),
        between in prop::collection::vec(
            prop::sample::select(vec!["/", "//", "/./", "/x/../", "/%2e/", "/y/%2E%2e/"]), 5,
        ),
        encoded in prop::collection::vec(any::<bool>(), 20),
    ) {
        let mut encoded = encoded.into_iter().cycle();
        let mut path = String::new();
        for (segment, between) in segments.iter().zip(&between) {
            path += between;
            for byte in segment.bytes() {
                match encoded.next() {
                    Some(true) => path += &format!("%{byte:02x}"),
                    _ => path.push(char::from(byte)),
                }
            }
        }
        path += between[4];
        let pattern = format!("/{}", segments.join("/"));
        prop_assert!(matches(&pattern, &path), "{} {}", pattern, path);
        let other = format!("{}/other", pattern.trim_end_matches('/'));
        prop_assert!(!matches(&other, &path), "{} {}", other, path);
    }
}
