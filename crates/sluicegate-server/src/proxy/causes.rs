use std::error::Error;
use std::fmt;

/// An error and its causes, one after the other.
pub(crate) fn causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let error = next?;
        next = error.source();
        Some(error)
    })
}

/// Shows an error with its causes.
pub(crate) struct Causes<'a>(pub(crate) &'a (dyn Error + 'static));

impl fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        causes(self.0).enumerate().try_for_each(|(at, cause)| match at {
            0 => write!(f, "{cause}"),
            _ => write!(f, ": {cause}"),
        })
    }
}
