use sluicegate_core::condition::{Condition, Values};
use sluicegate_core::key::{Cookie, Host, Missing, Query, View};
use sluicegate_core::{Claim, Header};

use crate::document::Key;

/// What a key's text is like, as the values of Envoy's descriptors say it; `*` stands for any text, also
/// for none.
///
/// A file of this crate's own format has `header`, `path` and the other conditions instead.
#[derive(Debug, Clone, PartialEq)]
pub struct Like {
    /// The key: a header, a cookie, a parameter of the query, a claim, the host, the method, the path or
    /// the route.
    pub key: Key,
    /// The patterns, of which one will do.
    pub patterns: Vec<String>,
    /// Where a request has the key several times, whether each of its values has to be like that; else
    /// one will do. Which of them a handler reads, nobody here can know.
    pub every: bool,
}

impl<V: View> Condition<V> for Like {
    fn holds(&self, view: &V) -> Result<bool, Missing> {
        match &self.key {
            Key::Header(name) => self.values(view, &Header(name)),
            Key::Cookie(name) => self.values(view, &Cookie(name)),
            Key::Query(name) => self.values(view, &Query(name)),
            Key::Claim(name) => self.values(view, &Claim(name)),
            Key::Method => Ok(self.fits(view.method())),
            Key::Path => Ok(self.fits(view.path())),
            Key::Route => Ok(view.route().is_some_and(|route| self.fits(route))),
            Key::Host => self.values(view, &Host),
            _ => Ok(false),
        }
    }
}

impl Like {
    fn values<V: View>(&self, view: &V, values: &impl Values<V>) -> Result<bool, Missing> {
        let fits = |value: &[u8]| self.fits(&String::from_utf8_lossy(value));
        let is_any = values.any(view, fits)?;
        Ok(is_any && !(self.every && values.any(view, |value| !fits(value))?))
    }

    /// A text that is empty is missing, as it is for keys.
    fn fits(&self, text: &str) -> bool {
        !text.is_empty() && self.patterns.iter().any(|pattern| matches(pattern, text))
    }
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
    use super::matches;

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
}
