use std::borrow::Cow;

use super::pairs::{PairValue, Pairs, Plus};
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
        PairValue::One(value) if !value.is_empty() => Ok(value),
        PairValue::One(_) | PairValue::Nothing => {
            Err(Missing::client_named(name, "query parameter"))
        }
        PairValue::Several => Err(Missing::ambiguous_named(name, "query parameter")),
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

fn pairs<V: View>(
    view: &V,
) -> Pairs<'_, impl Iterator<Item = (&[u8], &[u8])>, impl Iterator<Item = usize>> {
    let all =
        || view.query().unwrap_or_default().as_bytes().split(|&byte| byte == b'&').map(halves);
    let readings = &view.readings().get().query;
    let counted = all().map(|(name, value)| name.len() + value.len());
    Pairs { pairs: all(), counted, readings, plus: Plus::Space, noun: "a query" }
}

fn halves(pair: &[u8]) -> (&[u8], &[u8]) {
    match pair.iter().position(|&byte| byte == b'=') {
        Some(middle) => (&pair[..middle], &pair[middle + 1..]),
        None => (pair, &[]),
    }
}
