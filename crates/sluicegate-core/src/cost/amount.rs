use crate::key::{Header, Missing, Query, View, header_value, query_value};

/// A place where a client writes a number, for [`cost_from`](super::cost_from).
pub trait Amount<V: View> {
    /// Calls `read` with the text, and returns the result.
    ///
    /// # Errors
    ///
    /// If the value is missing, or is there twice with different values.
    fn read<O>(&self, view: &V, read: impl FnOnce(&[u8]) -> O) -> Result<O, Missing>;

    /// The name of the place, as the rest of "a number in": "the `x-tokens` header".
    fn place(&self) -> String;

    /// Whether that is the length of the request's body.
    fn is_length(&self) -> bool {
        false
    }
}

/// One value. If it is on several lines, all have to be the same.
impl<V: View, N: AsRef<str>> Amount<V> for Header<N> {
    fn read<O>(&self, view: &V, read: impl FnOnce(&[u8]) -> O) -> Result<O, Missing> {
        header_value(view, self.0.as_ref()).map(read)
    }

    fn place(&self) -> String {
        format!("the `{}` header", self.0.as_ref())
    }
}

/// One value, percent-decoded. If it is there several times, all have to be the same.
impl<V: View, N: AsRef<str>> Amount<V> for Query<N> {
    fn read<O>(&self, view: &V, read: impl FnOnce(&[u8]) -> O) -> Result<O, Missing> {
        query_value(view, self.0.as_ref()).map(|value| read(&value))
    }

    fn place(&self) -> String {
        format!("the `{}` query parameter", self.0.as_ref())
    }
}

/// The declared length of the request's body; see [`content_length`](super::content_length).
#[derive(Debug, Clone, Copy)]
pub struct ContentLength;

impl<V: View> Amount<V> for ContentLength {
    fn read<O>(&self, view: &V, read: impl FnOnce(&[u8]) -> O) -> Result<O, Missing> {
        match header_value(view, "content-length") {
            // A `transfer-encoding` overrides the length (RFC 9112, 6.3), so the body has no declared length.
            Ok(_) if is_coded(view) => {
                Err(Missing::client("the `content-length` header without a `transfer-encoding`"))
            }
            Ok(length) => Ok(read(length)),
            Err(missing) if missing.is_ambiguous() || may_have_a_body(view) => Err(missing),
            Err(_) => Ok(read(b"0")),
        }
    }

    fn place(&self) -> String {
        "the `content-length` header".into()
    }

    fn is_length(&self) -> bool {
        true
    }
}

/// Without a declared length. In HTTP/2 a body needs no header at all, so only the method can tell.
fn may_have_a_body(view: &impl View) -> bool {
    let bare = matches!(view.method(), "GET" | "HEAD" | "DELETE" | "OPTIONS" | "TRACE");
    !bare || is_coded(view)
}

fn is_coded(view: &impl View) -> bool {
    view.header_lines("transfer-encoding").next().is_some()
}
