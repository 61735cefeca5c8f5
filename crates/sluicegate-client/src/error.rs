use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// The error of services that these layers wrap: that of the inner service, boxed, or a [`Refused`].
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A request that was not sent, because a layer of this program held it back.
///
/// ```
/// use sluicegate_client::{BoxError, Refused};
///
/// fn describe(error: &BoxError) -> String {
///     match Refused::find(&**error) {
///         Some(refused) => match refused.retry_after() {
///             Some(wait) => format!("not sent; it can be sent in {wait:?}"),
///             None => String::from("not sent"),
///         },
///         None => format!("sent, and failed: {error}"),
///     }
/// }
/// # let _ = describe;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    reason: Cow<'static, str>,
    retry_after: Option<Duration>,
}

impl Refused {
    /// A refusal for this reason: a clause without a full stop. Layers of your own may refuse so, too.
    pub fn new(reason: impl Into<Cow<'static, str>>, retry_after: Option<Duration>) -> Self {
        Self { reason: reason.into(), retry_after }
    }

    /// How long to wait before the request is tried again, where that is known.
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The refusal that is `error`, or that `error` was caused by.
    pub fn find<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        causes(error).find_map(|error| error.downcast_ref())
    }
}

/// `error` and what it was caused by.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    // Chains of causes are short; a chain that ends in itself is not followed for ever.
    const DEPTH: usize = 16;
    std::iter::successors(Some(error), |error| cause(*error)).take(DEPTH)
}

fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    within_middleware(error).or_else(|| error.source())
}

/// The error that is an error of `reqwest-middleware`, which does not name it as its source.
#[cfg(feature = "reqwest-middleware")]
fn within_middleware<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    Some(match error.downcast_ref()? {
        reqwest_middleware::Error::Middleware(error) => &**error,
        reqwest_middleware::Error::Reqwest(error) => error,
    })
}

#[cfg(not(feature = "reqwest-middleware"))]
fn within_middleware<'a>(_: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    None
}

/// Whether the request would fail in the same way again: it could not be made, or is redirected without end.
#[cfg(feature = "reqwest")]
pub(crate) fn is_final(error: &(dyn Error + 'static)) -> bool {
    let mut own = causes(error).filter_map(|error| error.downcast_ref::<reqwest::Error>());
    own.any(|error| error.is_builder() || error.is_redirect())
}

#[cfg(not(feature = "reqwest"))]
pub(crate) fn is_final(_: &(dyn Error + 'static)) -> bool {
    false
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the request was not sent: {}", self.reason)?;
        match self.retry_after {
            Some(wait) => write!(f, "; try again in {wait:?}"),
            None => Ok(()),
        }
    }
}

impl Error for Refused {}
