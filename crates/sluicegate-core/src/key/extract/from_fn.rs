use std::fmt;

use crate::key::{Key, KeyBuf, Missing, Part, View, tag};

/// A key that a function finds in the framework's own request. `None` is answered with 400.
///
/// Two functions that return the same value write the same key. If the values mean different things, add a name, as
/// in `Some(("tenant", id))`. A function can also write into a [`KeyBuf`], which is a [`Part`] too, to avoid copying
/// out of the request.
///
/// ```
/// use sluicegate::key::{KeyBuf, from_fn};
///
/// struct Request {
///     subject: Option<String>,
/// }
///
/// let by_subject = from_fn(|request: &Request| {
///     let mut key = KeyBuf::new();
///     key.push(request.subject.as_deref()?.as_bytes());
///     Some(key)
/// });
/// # let _ = by_subject;
/// ```
pub fn from_fn<F>(f: F) -> FromFn<F> {
    FromFn { f }
}

/// A key made by [`from_fn`].
#[derive(Clone, Copy)]
pub struct FromFn<F> {
    f: F,
}

impl<V: View, F, P> Key<V> for FromFn<F>
where
    F: Fn(&V::Request) -> Option<P>,
    P: Part,
{
    fn write(&self, view: &V, key: &mut KeyBuf) -> Result<(), Missing> {
        let part = (self.f)(view.request())
            .ok_or_else(|| Missing::client("what the server tells its clients apart by"))?;
        key.push(&[tag::FROM_FN]);
        part.write(key);
        Ok(())
    }
}

impl<F> fmt::Debug for FromFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromFn").finish_non_exhaustive()
    }
}
