use memchr::memmem;

use super::Key;

/// A pattern that the value of a key must match, as in Envoy's descriptors: `*` matches any text, also none.
///
/// TOML and JSON files cannot express this. They have `header`, `path` and the other conditions instead.
#[derive(Debug, Clone, PartialEq)]
pub struct Wildcard {
    /// The key: a header, a cookie, a query parameter, a claim, the host, the method, the path or the route.
    pub(crate) key: Key,
    /// The patterns. One of them must match.
    pub(crate) patterns: Vec<String>,
    /// If a request has several values for the key, whether all of them must match, or only one. It is not
    /// known which of them a handler reads.
    pub(crate) every: bool,
}

impl Wildcard {
    /// The value of `key` matches one of `patterns`. If a request has several values for the key, one of them must match,
    /// or `every` one: it is not known which of them a handler reads.
    pub fn new(key: Key, patterns: Vec<String>, every: bool) -> Self {
        Self { key, patterns, every }
    }

    /// Whether `text`, which may be any bytes, matches `pattern`.
    pub fn matches(pattern: &str, text: impl AsRef<[u8]>) -> bool {
        let (text, mut parts) = (text.as_ref(), pattern.split('*').map(str::as_bytes));
        let first = parts.next().unwrap_or_default();
        let Some(last) = parts.next_back() else { return text == first };
        let rest = text.strip_prefix(first).and_then(|rest| rest.strip_suffix(last));
        let Some(mut rest) = rest else { return false };
        parts.all(|part| match memmem::find(rest, part) {
            Some(at) => {
                rest = &rest[at + part.len()..];
                true
            }
            None => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Wildcard;

    fn matches(pattern: &str, text: &str) -> bool {
        Wildcard::matches(pattern, text)
    }

    #[test]
    fn a_star_stands_for_any_text_and_for_none() {
        assert!(matches("foo*", "foo"));
        assert!(matches("foo*", "food"));
        assert!(matches("*", ""));
        assert!(matches("*d", "food"));
        assert!(!matches("foo*", "afoo"));
        assert!(!matches("foo", "food"));
    }

    #[test]
    fn a_star_stands_for_bytes_that_are_no_text() {
        assert!(Wildcard::matches("/login*", b"/login\xff"));
        assert!(Wildcard::matches("*ż*b", b"\xc5\xc5\xbc\xffb"));
        assert!(!Wildcard::matches("*\u{fffd}*", b"a\xffb"));
    }

    #[test]
    fn stars_may_stand_in_the_middle_and_several_times() {
        assert!(matches("/api/*/resource/*/action", "/api/v1/resource/123/action"));
        assert!(!matches("/api/*/action", "/api/123/other"));
        assert!(matches("bar*b", "barb"));
        assert!(matches("a**b", "ab"));
        assert!(matches("foo*bar*baz", "foobarbaz"));
        assert!(!matches("foo*bar*baz", "foobabaz"));
    }

    #[test]
    fn no_character_is_used_twice() {
        assert!(!matches("bar*rb", "barb"));
        assert!(!matches("ab*ba*ab", "abab"));
        assert!(!matches("a*a", "a"));
    }
}
