use std::borrow::Cow;

use super::pairs::{Found, Pairs, Plus};
use crate::key::{Key, KeyBuf, Missing, View, tag};

/// The value of one query parameter, by its name.
///
/// Names and values are percent-decoded first, and `+` is a space, as in a form: `k=ab` and `%6b=a%62` are one key.
/// An empty value counts as missing. If the parameter is there more than once with different values, the request is
/// refused with 400, even if the key is [`Optional`](super::Optional): some handlers read the first value, some the
/// last. So is a request whose query has more than 1,000 parameters or 65,536 bytes.
#[derive(Debug, Clone, Copy)]
pub struct Query<N = &'static str>(pub N);

impl<V: View, N: AsRef<str>> Key<V> for Query<N> {
    fn write(&self, view: &V, key: &mut KeyBuf) -> Result<(), Missing> {
        let name = self.0.as_ref();
        let value = query_value(view, name)?;
        key.push(&[tag::QUERY]);
        key.push(name.as_bytes());
        key.push(&value);
        Ok(())
    }
}

/// The value of the parameter, decoded.
pub(crate) fn query_value<'a, V: View>(
    view: &'a V,
    name: &'a str,
) -> Result<Cow<'a, [u8]>, Missing> {
    match pairs(view).find(name)? {
        Found::One(value) if !value.is_empty() => Ok(value),
        Found::One(_) | Found::Nothing => Err(Missing::client_named(name, "query parameter")),
        Found::Several => Err(Missing::ambiguous_named(name, "query parameter")),
    }
}

/// Whether a value of the parameter, decoded, passes the test.
pub(crate) fn any_query<V: View>(
    view: &V,
    name: &str,
    test: impl Fn(&[u8]) -> bool,
) -> Result<bool, Missing> {
    Ok(pairs(view).values(name)?.any(|value| test(&value)))
}

fn pairs<V: View>(view: &V) -> Pairs<'_, impl Iterator<Item = (&[u8], &[u8])>> {
    let all =
        || view.query().unwrap_or_default().as_bytes().split(|&byte| byte == b'&').map(halves);
    let readings = &view.readings().query;
    Pairs { pairs: all(), counted: all(), readings, plus: Plus::Space, noun: "a query" }
}

fn halves(pair: &[u8]) -> (&[u8], &[u8]) {
    match pair.iter().position(|&byte| byte == b'=') {
        Some(middle) => (&pair[..middle], &pair[middle + 1..]),
        None => (pair, &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::testing::{Request, key, missing};

    fn request(query: &str) -> Request {
        Request { query: Some(query.into()), ..Request::default() }
    }

    #[test]
    fn every_spelling_of_a_parameter_is_one_key() {
        let plain = key(&Query("key"), &request("key=a b=c"));
        for query in ["x&key=a+b=c&y=1", "k%65y=%61%20b%3dc", "&&key=a b=c", "key=a b=c&key=a+b=c"]
        {
            assert_eq!(key(&Query("key"), &request(query)), plain, "{query}");
        }
        assert_ne!(key(&Query("key"), &request("key=a")), plain);
    }

    #[test]
    fn a_name_that_is_known_only_when_running_is_the_same_key() {
        let request = request("key=a");
        assert_eq!(key(&Query(String::from("key")), &request), key(&Query("key"), &request));
    }

    #[test]
    fn a_parameter_that_is_absent_or_empty_is_missing() {
        for query in ["", "key", "key=", "Key=a", "xkey=a", "=a"] {
            let missing = missing(&Query("key"), &request(query));
            assert!(missing.is_client() && !missing.is_ambiguous(), "{query}");
        }
        let missing = missing(&Query("key"), &Request::default());
        assert_eq!(missing.what(), "the `key` query parameter");
    }

    #[test]
    fn two_values_that_differ_are_refused() {
        for query in ["key=a&key=b", "key=a&k%65y=b", "key=&key=b", "key=a&key"] {
            assert!(missing(&Query("key"), &request(query)).is_ambiguous(), "{query}");
        }
    }
}
