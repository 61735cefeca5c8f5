use super::header::trimmed;
use super::pairs::{Found, Pairs, Plus};
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
            Found::One(value) if !value.is_empty() => {
                key.push(&[tag::COOKIE]);
                key.push(name.as_bytes());
                key.push(&value);
                Ok(())
            }
            Found::One(_) | Found::Nothing => Err(Missing::client_named(name, "cookie")),
            Found::Several => Err(Missing::ambiguous_named(name, "cookie")),
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

fn all_pairs<V: View>(view: &V) -> Pairs<'_, impl Iterator<Item = (&[u8], &[u8])>> {
    let all = || view.header_lines("cookie").flat_map(pairs);
    let readings = &view.readings().cookies;
    Pairs { pairs: all(), counted: all(), readings, plus: Plus::Plus, noun: "cookies" }
}

fn pairs(line: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    line.split(|&byte| byte == b';').filter_map(|pair| {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::testing::{Request, key, missing};

    fn request(lines: &[&str]) -> Request {
        lines.iter().fold(Request::default(), |request, line| request.header("cookie", line))
    }

    #[test]
    fn every_spelling_of_a_cookie_is_one_key() {
        let plain = key(&Cookie("sid"), &request(&["sid=a=b"]));
        for lines in [
            &["x=1; sid=a=b; y=2"][..],
            &["x=1", "y=2;sid=\"a=b\""],
            &[" sid = a=b "],
            &["s%69d=%61=b"],
            &["sid=a=b; sid=a%3Db", "sid=\"a=b\""],
        ] {
            assert_eq!(key(&Cookie("sid"), &request(lines)), plain, "{lines:?}");
        }
        assert_ne!(key(&Cookie("sid"), &request(&["sid=a"])), plain);
        assert_ne!(
            key(&Cookie("sid"), &request(&["sid=a+b"])),
            key(&Cookie("sid"), &request(&["sid=a b"])),
        );
    }

    #[test]
    fn a_name_that_is_known_only_when_running_is_the_same_key() {
        let request = request(&["sid=a"]);
        assert_eq!(key(&Cookie(String::from("sid")), &request), key(&Cookie("sid"), &request));
    }

    #[test]
    fn a_cookie_that_is_absent_or_empty_is_missing() {
        for lines in [&[][..], &["sid"], &["sid="], &["sid=\"\""], &["Sid=a"], &["xsid=a; =a"]] {
            let missing = missing(&Cookie("sid"), &request(lines));
            assert!(missing.is_client() && !missing.is_ambiguous(), "{lines:?}");
            assert_eq!(missing.what(), "the `sid` cookie");
        }
    }

    #[test]
    fn two_values_that_differ_are_refused() {
        for lines in [&["sid=a; sid=b"][..], &["sid=a", "sid=b"], &["sid=a", "s%69d=b"]] {
            assert!(missing(&Cookie("sid"), &request(lines)).is_ambiguous(), "{lines:?}");
        }
    }

    #[test]
    fn a_lone_quote_is_part_of_the_value() {
        assert_ne!(
            key(&Cookie("sid"), &request(&["sid=\""])),
            key(&Cookie("sid"), &request(&["sid=\"a\""])),
        );
    }
}
