use proptest::prelude::*;

use super::segments::{Dots, Slash};
use super::*;
use crate::key::testing::Request;

fn matches(pattern: &str, path: &str) -> bool {
    Path.matches(pattern).holds(&Request { path: path.into(), ..Request::default() })
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

#[test]
fn where_readings_differ_any_of_them_counts() {
    for (pattern, path) in [
        // One segment for those who decode it afterwards, two for those who do so before.
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

/// What [`segments`] says, with a list to hold what `..` takes away.
fn model(path: &str, reading: Reading) -> Vec<String> {
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
    segments
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn segments_agree_with_a_list(pieces in prop::collection::vec(
        prop::sample::select(vec!["/", "/", ".", "..", "%2e", "%2F", "%2f", "%", "a", "b%62"]), 0..12,
    )) {
        let path = format!("/{}", pieces.concat());
        for reading in READINGS {
            let found: Vec<_> = segments(path.as_bytes(), reading).map(<[u8]>::to_vec).collect();
            let expected = model(&path, reading).into_iter().rev().map(String::into_bytes);
            prop_assert_eq!(found, expected.collect::<Vec<_>>(), "{} {:?}", path, reading);
        }
    }

    /// A client may put any of this between and around the segments, and spell each byte of them in
    /// either way.
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
