use super::header::trimmed;
use super::pairs::{PairValue, Pairs, Plus};
use crate::key::{Key, KeyBuf, Missing, View, tag};

/// The value of one cookie, by its name.
///
/// All `cookie` lines are read as RFC 6265 says, and double quotes around a value are dropped. Names and values are
/// percent-decoded first, as the cookie jars of axum and actix-web do. Otherwise every spelling of one session cookie
/// would have a budget of its own. An empty value counts as missing. If the cookie was sent more than once with
/// different values, the request is refused with 400, even if the key is [`Optional`](super::Optional). So is a request
/// with more than 1,000 cookies, or 65,536 bytes of them.
#[derive(Debug, Clone, Copy)]
pub struct Cookie<N = &'static str>(pub N);

impl<V: View, N: AsRef<str>> Key<V> for Cookie<N> {
    fn write(&self, view: &V, key: &mut KeyBuf) -> Result<(), Missing> {
        let name = self.0.as_ref();
        match all_pairs(view).find(name)? {
            PairValue::One(value) if !value.is_empty() => {
                key.push(&[tag::COOKIE]);
                key.push(name.as_bytes());
                key.push(&value);
                Ok(())
            }
            PairValue::One(_) | PairValue::Nothing => Err(Missing::client_named(name, "cookie")),
            PairValue::Several => Err(Missing::ambiguous_named(name, "cookie")),
        }
    }
}

/// Whether a value of the cookie, decoded, passes the test.
pub(crate) fn any_cookie<V: View>(
    view: &V,
    name: &str,
    test: impl Fn(&[u8]) -> bool,
) -> Result<bool, Missing> {
    Ok(all_pairs(view).values(name)?.any(|value| test(&value)))
}

fn all_pairs<V: View>(
    view: &V,
) -> Pairs<'_, impl Iterator<Item = (&[u8], &[u8])>, impl Iterator<Item = usize>> {
    let lines = || view.header_lines("cookie");
    // What is no pair is gone through as well, and would be again by each rule if it did not count.
    let counted = lines().flat_map(pieces);
    let counted = counted.map(|piece| piece.len() - usize::from(piece.contains(&b'=')));
    let readings = &view.readings().get().cookies;
    Pairs { pairs: lines().flat_map(pairs), counted, readings, plus: Plus::Plus, noun: "cookies" }
}

fn pieces(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b';')
}

fn pairs(line: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    pieces(line).filter_map(|pair| {
        let middle = pair.iter().position(|&byte| byte == b'=')?;
        Some((trimmed(&pair[..middle]), unquoted(trimmed(&pair[middle + 1..]))))
    })
}

fn unquoted(value: &[u8]) -> &[u8] {
    match value {
        [b'"', inner @ .., b'"'] => inner,
        _ => value,
    }
}
