use std::sync::Arc;

use sluicegate_core::response::Redirect;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What happens to requests that are shed; they are [refused](WhenShed::refuse) by default.
///
/// ```
/// use std::time::Duration;
/// use sluicegate_throttle::Throttle;
/// use sluicegate_throttle::layer::WhenShed;
///
/// let throttle = Throttle::builder().in_flight(100).queue(Duration::from_millis(200)).build()?;
/// // Requests without a place are answered from a cache. An extension tells the handler.
/// let layer = throttle.layer().when_shed(WhenShed::degrade(1_000));
/// # let _ = layer;
/// # Ok::<(), sluicegate_throttle::ConfigError>(())
/// ```
#[derive(Debug, Clone)]
pub struct WhenShed(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Refuse,
    Redirect(Redirect),
    Degrade(Arc<Semaphore>),
}

impl WhenShed {
    /// Answers `503 Service Unavailable`, or what
    /// [`respond_with`](super::ThrottleLayer::respond_with) makes.
    pub const fn refuse() -> Self {
        Self(Kind::Refuse)
    }

    /// Sends clients to `location`, with `307 Temporary Redirect`, which keeps method and body.
    ///
    /// # Panics
    ///
    /// When the location is empty, or holds anything but visible ASCII: it goes into a header field.
    #[must_use]
    #[track_caller]
    pub fn redirect(location: impl AsRef<str>) -> Self {
        let location = location.as_ref();
        assert!(
            !location.is_empty() && location.bytes().all(|byte| byte.is_ascii_graphic()),
            "the redirect's location {location:?} is not a URI of visible ASCII characters",
        );
        Self(Kind::Redirect(Redirect::new(307, location)))
    }

    /// Redirects with another status: 302, 303 or 308. It has no effect on other ways.
    ///
    /// # Panics
    ///
    /// When the status is not one of 302, 303, 307 and 308.
    #[must_use]
    #[track_caller]
    pub fn status(mut self, status: u16) -> Self {
        assert!(
            matches!(status, 302 | 303 | 307 | 308),
            "{status} is not a redirection: use 302, 303, 307 or 308",
        );
        if let Kind::Redirect(redirect) = &mut self.0 {
            redirect.status = status;
        }
        self
    }

    /// Calls the service inside all the same, with [`Degraded`](sluicegate_core::response::Degraded) in the extensions
    /// of the request, so that the handler serves less: from a cache, without recommendations. At most `at_most` such
    /// requests are served at once, and others are refused.
    ///
    /// They take up no capacity of the throttle, so they have to be much cheaper. One whose deadline has passed is
    /// refused, because nobody waits for its answer.
    ///
    /// # Panics
    ///
    /// When `at_most` is zero.
    #[must_use]
    #[track_caller]
    pub fn degrade(at_most: usize) -> Self {
        assert!(at_most > 0, "with at most 0 degraded requests, all are refused: leave it out");
        Self(Kind::Degrade(Arc::new(Semaphore::new(at_most.min(Semaphore::MAX_PERMITS)))))
    }

    pub(super) fn location(&self) -> Option<&Redirect> {
        match &self.0 {
            Kind::Redirect(redirect) => Some(redirect),
            Kind::Refuse | Kind::Degrade(_) => None,
        }
    }

    /// A permit to serve a degraded request.
    pub(super) fn permit(&self) -> Option<OwnedSemaphorePermit> {
        match &self.0 {
            Kind::Degrade(places) => Arc::clone(places).try_acquire_owned().ok(),
            Kind::Refuse | Kind::Redirect(_) => None,
        }
    }
}

impl Default for WhenShed {
    fn default() -> Self {
        Self::refuse()
    }
}
