use tollgate_core::{Claims, View};

use crate::document::Key;

/// A key whose text is like a pattern; `*` in it stands for any text, also for none.
///
/// This is what values of Envoy's descriptors say. A file of this crate's own format has `path`, `host`
/// and the other conditions instead.
#[derive(Debug, Clone, PartialEq)]
pub struct Like {
    /// The key: a header, a parameter of the query, a claim, the host, the method, the path or the route.
    pub key: Key,
    /// What its text is like.
    pub pattern: String,
}

impl<V: View> tollgate_core::Condition<V> for Like {
    fn holds(&self, view: &V) -> bool {
        let like = |text: &str| matches(&self.pattern, text);
        match &self.key {
            Key::Header(name) => {
                view.header_lines(name).any(|line| is_text_like(line, &self.pattern))
            }
            Key::Query(name) => form_urlencoded::parse(view.query().unwrap_or_default().as_bytes())
                .any(|(own, value)| own == *name && !value.is_empty() && like(&value)),
            Key::Claim(name) => {
                let claim = |claims: &Claims| claims.get(name).is_some_and(like);
                view.extension(claim).unwrap_or_default()
            }
            Key::Method => like(view.method()),
            Key::Path => like(view.path()),
            Key::Route => view.route().is_some_and(like),
            Key::Host => view.host().and_then(name_of).is_some_and(|host| like(&host)),
            _ => false,
        }
    }
}

/// A value that is empty is missing, as it is for keys.
fn is_text_like(line: &[u8], pattern: &str) -> bool {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_matches([' ', '\t']);
    !text.is_empty() && matches(pattern, text)
}

/// The host of an authority, as keys have it: in lower case, without user, port and final dot.
fn name_of(authority: &str) -> Option<String> {
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => host,
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    (!host.is_empty()).then(|| host.to_ascii_lowercase())
}

/// Whether `text` is what `pattern` says.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(last) = parts.next_back() else { return text == first };
    let rest = text.strip_prefix(first).and_then(|rest| rest.strip_suffix(last));
    let Some(mut rest) = rest else { return false };
    parts.all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::{matches, name_of};

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

    #[test]
    fn a_host_is_compared_as_keys_have_it() {
        assert_eq!(name_of("API.Example.com.:8080").as_deref(), Some("api.example.com"));
        assert_eq!(name_of("u@[2001:DB8::1]:443").as_deref(), Some("[2001:db8::1]"));
        assert_eq!(name_of("[::1]").as_deref(), Some("[::1]"));
        assert_eq!(name_of(":80"), None);
    }
}
