use super::{Const, Extension, Missing, View};

/// Text that the server knows about a request, to look up in a table such as
/// [`Tiers`](crate::Tiers).
///
/// [`Claim`](super::Claim), [`Extension`] of a type that is text, and [`Const`] are that.
/// [`Header`](super::Header), [`Cookie`](super::Cookie) and [`Query`](super::Query) are not, on
/// purpose: a client writes into them what it likes, and would choose its own tier, or have the quota
/// of whichever customer it names. Let the application verify what stands there, and put what it
/// found into [`Claims`](super::Claims).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not text that the server knows about these requests",
    label = "not verified text",
    note = "a header is whatever the client says: verify it, and use `Claim(\"name\")`"
)]
pub trait Text<V: View> {
    /// What `read` makes of the text.
    ///
    /// A closure, because some frameworks lend out what is in a request's extensions for a moment only.
    ///
    /// # Errors
    ///
    /// Says what is missing, and who has to add it.
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
