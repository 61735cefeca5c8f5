use std::borrow::Cow;
use std::time::Duration;

use tokio::time::Instant;

/// What a request that leaves takes over from the one that it is made for: how much it matters, and until when the
/// answer is of use.
///
/// It is given on explicitly: in the extensions of the request, or for all requests of a future by
/// [`scope`](Self::scope), which is the way for reqwest.
///
/// ```
/// use std::time::Duration;
/// use http::Request;
/// use sluicegate_client::outgoing::{Context, OutgoingRequest};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let context = Context::new().criticality("SHEDDABLE").timeout(Duration::from_secs(2));
/// let mut request = Request::new(());
/// request.extensions_mut().insert(context.clone());
/// assert!(request.timeout().unwrap() <= Duration::from_secs(2));
///
/// let found = context.scope(async { Context::current().unwrap().importance().map(String::from) });
/// assert_eq!(found.await.as_deref(), Some("SHEDDABLE"));
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Context {
    criticality: Option<Cow<'static, str>>,
    deadline: Option<Instant>,
}

tokio::task_local! {
    static CURRENT: Context;
}

impl Context {
    /// Nothing is known.
    pub const fn new() -> Self {
        Self { criticality: None, deadline: None }
    }

    /// The class of the request, such as `CRITICAL` of the four in the Google SRE book.
    pub fn criticality(mut self, class: impl Into<Cow<'static, str>>) -> Self {
        self.criticality = Some(class.into());
        self
    }

    /// The answer is of no use after this time from now.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        // A time that is too far away for the clock is none.
        self.deadline = Instant::now().checked_add(timeout);
        self
    }

    /// The class of the request.
    pub fn importance(&self) -> Option<&str> {
        self.criticality.as_deref()
    }

    /// The rank of the class among the four of the Google SRE book, 0 for the most critical; `None` for another class.
    ///
    /// A request without a class is `CRITICAL`.
    pub fn rank(&self) -> Option<usize> {
        const FOUR: [&str; 4] = ["CRITICAL_PLUS", "CRITICAL", "SHEDDABLE_PLUS", "SHEDDABLE"];
        let name = self.importance().unwrap_or(FOUR[1]);
        FOUR.iter().position(|class| class.eq_ignore_ascii_case(name))
    }

    /// How long the answer is still of use.
    pub fn left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Gives this context to all requests that `future` makes in its own task and that have none of their own.
    pub async fn scope<F: Future>(self, future: F) -> F::Output {
        CURRENT.scope(self, future).await
    }

    /// The context of the [`scope`](Self::scope) that this code runs in.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }
}
