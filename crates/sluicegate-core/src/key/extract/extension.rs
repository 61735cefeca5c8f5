use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;

use crate::key::{Key, KeyBuf, Missing, Part, View, tag};

/// A value that an earlier layer left in the request's extensions, such as the user that it authenticated or the
/// tenant that it looked up.
///
/// Prefer this key if there is such a layer: a client cannot make it up. If the value is absent, the server is not
/// set up, and the answer is 500. For anonymous requests, combine it with [`First`](super::First). Values of two
/// types never share a key.
///
/// ```
/// use sluicegate::key::{Extension, KeyBuf, Part};
///
/// #[derive(Clone)]
/// struct Tenant(u64);
///
/// impl Part for Tenant {
///     fn write(&self, key: &mut KeyBuf) {
///         self.0.write(key);
///     }
/// }
///
/// let by_tenant = Extension::<Tenant>::new();
/// # let _ = by_tenant;
/// ```
pub struct Extension<T>(PhantomData<fn() -> T>);

impl<T> Extension<T> {
    /// The key made from the value of type `T`.
    pub const fn new() -> Self {
        Self(PhantomData)
    }

    pub(in crate::key) fn missing() -> Missing {
        Missing::server_named(
            type_name::<T>(),
            "extension",
            "add the layer that inserts it outside of the rate limit, so that it runs first",
        )
    }
}

impl<V: View, T: Part + Send + Sync + 'static> Key<V> for Extension<T> {
    fn write(&self, view: &V, key: &mut KeyBuf) -> Result<(), Missing> {
        let written = view.extension(|value: &T| {
            key.push(&[tag::EXTENSION]);
            key.push(type_name::<T>().as_bytes());
            value.write(key);
        });
        written.ok_or_else(Self::missing)
    }
}

// A derived implementation would require the trait of `T`.

impl<T> Clone for Extension<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Extension<T> {}

impl<T> Default for Extension<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Extension<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Extension<{}>", type_name::<T>())
    }
}
