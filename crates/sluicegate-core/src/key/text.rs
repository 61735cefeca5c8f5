use super::{Const, Extension, Missing, View};

/// Text that the server knows about a request, for a lookup in a table such as [`Tiers`](crate::Tiers).
///
/// Implemented by [`Claim`](super::Claim), [`Extension`] of a text type, and [`Const`]. [`Header`](super::Header),
/// [`Cookie`](super::Cookie) and [`Query`](super::Query) do not implement it, on purpose: a client chooses their
/// value, so it could choose its own tier or use another customer's quota. Let the application verify the value, and
/// put the result into [`Claims`](super::Claims).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not text that the server knows about these requests",
    label = "not verified text",
    note = "a header is whatever the client says: verify it, and use `Claim(\"name\")`"
)]
pub trait Text<V: View> {
    /// Calls `read` with the text and returns the result.
    ///
    /// It takes a closure because some frameworks lend out the request's extensions only for a moment.
    ///
    /// # Errors
    ///
    /// Returns what is missing, and who has to add it.
    fn read<O>(&self, view: &V, read: impl FnOnce(&str) -> O) -> Result<O, Missing>;
}

impl<V: View, T: AsRef<str> + Send + Sync + 'static> Text<V> for Extension<T> {
    fn read<O>(&self, view: &V, read: impl FnOnce(&str) -> O) -> Result<O, Missing> {
        view.extension(|value: &T| read(value.as_ref())).ok_or_else(Self::missing)
    }
}

impl<V: View, P: super::Part + AsRef<str>> Text<V> for Const<P> {
    fn read<O>(&self, _: &V, read: impl FnOnce(&str) -> O) -> Result<O, Missing> {
        Ok(read(self.0.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::testing::Request;

    struct Plan(&'static str);

    impl AsRef<str> for Plan {
        fn as_ref(&self) -> &str {
            self.0
        }
    }

    #[test]
    fn an_extension_and_a_constant_are_read_as_text() {
        let request = Request::default().extension(Plan("paid"));
        let plan = Extension::<Plan>::new();
        assert_eq!(plan.read(&request, str::to_owned), Ok("paid".into()));
        assert_eq!(Const("free").read(&request, str::to_owned), Ok("free".into()));
        assert_eq!(Const(String::from("free")).read(&request, str::len), Ok(4));
        let missing = plan.read(&Request::default(), str::len).expect_err("no plan");
        assert!(missing.is_server());
    }
}
