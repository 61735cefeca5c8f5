use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use sluicegate_core::adapter::{Field, Headers, Value, fields, grpc, is_stored_for_others};
use sluicegate_core::response::Redirect;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::shared::Shared;
use crate::announce::{Announcement, FIELD};
use crate::scheduler::{Shed, ShedReason};

/// Makes the response of a request that is refused.
pub(super) type RespondFn = dyn Fn(&Shed, &Parts) -> Response<Bytes> + Send + Sync;

/// Adds the level of admission to a response of the `http` crate.
pub(super) fn announce(shared: &Shared, headers: &mut HeaderMap) {
    let lines = |name: &str, see: &mut dyn FnMut(&[u8])| {
        headers.get_all(name).iter().for_each(|line| see(line.as_bytes()));
    };
    if let Some(Ok(value)) = shared.announcement(lines).map(HeaderValue::try_from) {
        headers.insert(FIELD, value);
    }
}

/// gRPC's status `UNAVAILABLE`: the call was not started, so every client may repeat it. The status is in the header, as
/// gRPC has it for responses without a message.
fn unavailable(shed: &Shed, content_type: &'static str) -> Response<Bytes> {
    const UNAVAILABLE: HeaderValue = HeaderValue::from_static("14");

    let mut response = Response::new(Bytes::new());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(grpc::STATUS, UNAVAILABLE);
    let pushback = match retry_after(shed) {
        Some(_) => grpc::pushback(Duration::from_micros(shed.retry_after).min(LONGEST)).into(),
        None => HeaderValue::from_static(grpc::NEVER),
    };
    headers.insert(grpc::PUSHBACK, pushback);
    // Visible ASCII without a percent sign, which would be escaped.
    let text = format!("temporarily reduced capacity; {}", detail(shed));
    if let Ok(text) = HeaderValue::try_from(text) {
        headers.insert(grpc::MESSAGE, text);
    }
    response
}

/// `503 Service Unavailable`, unless the client is sent elsewhere, with a problem document.
fn problem(shed: &Shed, status: u16) -> Response<Bytes> {
    let detail = detail(shed);
    let problem = format!(
        "{{\"type\":\"{TYPE}\",\"title\":\"Temporarily reduced capacity\",\"status\":{status},\"detail\":\"{detail}\"}}\n"
    );
    let mut response = Response::new(Bytes::from(problem));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let content_type = HeaderValue::from_static(fields::PROBLEM_JSON);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

fn detail(shed: &Shed) -> String {
    match retry_after(shed) {
        Some(seconds) => format!("try again in {seconds} s"),
        None => "the request costs more than the server ever admits".to_owned(),
    }
}

fn send_to(redirect: &Redirect, response: &mut Response<Bytes>) {
    *response.status_mut() =
        StatusCode::from_u16(redirect.status).unwrap_or(StatusCode::TEMPORARY_REDIRECT);
    // The location is visible ASCII, so this never fails.
    if let Ok(location) = HeaderValue::from_str(&redirect.location) {
        response.headers_mut().insert(LOCATION, location);
    }
}

const TYPE: &str = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";

/// A predicted backlog of hours comes from a few slow requests, which may be gone much earlier.
const LONGEST: Duration = Duration::from_secs(3_600);

/// Whole seconds, rounded up, at least 1 and at most [`LONGEST`]. `None` if trying again is useless.
fn retry_after(shed: &Shed) -> Option<u64> {
    let seconds = shed.retry_after.div_ceil(1_000_000).clamp(1, LONGEST.as_secs());
    (shed.reason != ShedReason::NeverFits).then_some(seconds)
}

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
    /// They take up no capacity of the throttle, so they have to be much cheaper. One whose deadline has passed while it
    /// waited is refused, because nobody waits for its answer. One that cannot meet its deadline when it arrives is served
    /// less all the same, even if its deadline has passed by then.
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

    /// The response of a request that is refused, with the fields that it needs and does not have. The adapter leaves
    /// [`Refused`](sluicegate_core::adapter::Refused) in its extensions, so that layers further out give their charges
    /// back.
    ///
    /// `content_type` is that of the request. A call of gRPC is answered with a status of gRPC, and is not redirected,
    /// because its client would not follow.
    pub(super) fn response(
        &self,
        respond: Option<&RespondFn>,
        shed: &Shed,
        content_type: Option<&[u8]>,
        request: impl FnOnce() -> Parts,
    ) -> Response<Bytes> {
        let grpc = content_type.and_then(grpc::response_type);
        let redirect = self.location().filter(|_| grpc.is_none());
        let mut response = match (respond, grpc) {
            (Some(respond), _) => respond(shed, &request()),
            (None, Some(content_type)) => unavailable(shed, content_type),
            (None, None) => problem(shed, redirect.map_or(503, |to| to.status)),
        };
        if let Some(redirect) = redirect {
            send_to(redirect, &mut response);
        }
        let is_redirect = response.status().is_redirection();
        let headers = response.headers_mut();
        if let (Some(seconds), false) = (retry_after(shed), is_redirect) {
            headers.entry(RETRY_AFTER).or_insert(seconds.into());
        }
        headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        response
    }

    fn location(&self) -> Option<&Redirect> {
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

impl Shared {
    /// The [level of admission](crate::announce) for a response. `None` for a response that caches may store for other
    /// clients, because a cache would serve an outdated level. `lines` shows each line of a header field of the
    /// response.
    pub(super) fn announcement(
        &self,
        lines: impl Fn(&str, &mut dyn FnMut(&[u8])),
    ) -> Option<String> {
        if is_stored_for_others(&Lines(lines)) {
            return None;
        }
        let now = self.now();
        let admitted = self.lock().scheduler.admitted_classes(now);
        Some(Announcement::new(admitted, &self.classes).to_string())
    }
}

/// The header fields of any framework's response, to be read.
struct Lines<F>(F);

impl<F: Fn(&str, &mut dyn FnMut(&[u8]))> Headers for Lines<F> {
    fn contains_any(&self, fields: &[Field]) -> bool {
        let mut is_there = false;
        fields.iter().for_each(|field| self.each_line(*field, &mut |_| is_there = true));
        is_there
    }

    fn append(&mut self, _: Field, _: Value<'_>) {
        unreachable!("whether a response is stored is read only");
    }

    fn insert(&mut self, _: Field, _: Value<'_>) {
        unreachable!("whether a response is stored is read only");
    }

    fn each_line(&self, field: Field, see: &mut dyn FnMut(&[u8])) {
        (self.0)(field.name(), see);
    }
}
