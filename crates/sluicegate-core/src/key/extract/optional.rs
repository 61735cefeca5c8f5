use crate::key::{Key, KeyBuf, Missing, View};

/// A key that clients may leave out. A request without it is not limited by the rule.
///
/// It is still an error if the server does not provide the value, or if the value can be read in more than one way.
#[derive(Debug, Clone, Copy)]
pub struct Optional<K>(pub K);

impl<V: View, K: Key<V>> Key<V> for Optional<K> {
    fn write(&self, view: &V, key: &mut KeyBuf) -> Result<(), Missing> {
        self.0.write(view, key).map_err(|missing| {
            if missing.is_client() && !missing.is_ambiguous() { Missing::exempt() } else { missing }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::testing::{Request, key, missing};
    use crate::key::{Header, Route};

    #[test]
    fn what_is_there_is_the_key_that_it_is_without_optional() {
        let request = Request::default().header("a", "1");
        assert_eq!(key(&Optional(Header("a")), &request), key(&Header("a"), &request));
    }

    #[test]
    fn only_what_the_client_left_out_owes_nothing() {
        assert!(missing(&Optional(Header("a")), &Request::default()).is_exempt());
        assert!(missing(&Optional(Route), &Request::default()).is_server());
    }

    #[test]
    fn a_header_sent_twice_is_no_way_out() {
        let request = Request::default().header("a", "1").header("a", "2");
        let missing = missing(&Optional(Header("a")), &request);
        assert!(missing.is_client() && !missing.is_exempt());
    }
}
