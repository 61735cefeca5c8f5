use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::adapter::KeyHash;
use sluicegate_core::condition::Condition;
use sluicegate_core::key::{Key, KeyBuf, Method, View};
use sluicegate_core::{Global, Route};

use super::criticality::{Criticality, Partition, PartitionBy, Unreadable};
use super::observing::Names;
use super::snapshot::UnreadCounts;
use crate::class::{Class, Classes};
use crate::grpc_timeout;

/// What a throttle reads from a request: its class `C`, the key `P` of its predicted cost, the key `F` of its flow, its
/// deadline `D`, whether it is exempt, `X`, and its partition, `N`.
#[derive(Debug, Clone)]
pub struct Requests<C = Class, P = (Method, Route), F = Global, D = (), X = Nothing, N = ()> {
    pub(super) class: C,
    pub(super) predict_by: P,
    pub(super) fair_by: F,
    pub(super) deadline: D,
    pub(super) exempt: X,
    pub(super) partition: N,
    pub(super) keys: Keys,
}

/// How keys are hashed, and whether they are shown.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    hash: Arc<KeyHash>,
    are_shown: bool,
}

impl Requests {
    pub(super) fn new(class: Class, hash: Arc<KeyHash>, are_shown: bool) -> Self {
        Self {
            class,
            predict_by: (Method, Route),
            fair_by: Global,
            deadline: (),
            exempt: Nothing,
            partition: (),
            keys: Keys { hash, are_shown },
        }
    }
}

/// Exempts nothing.
#[derive(Debug, Clone, Copy)]
pub struct Nothing;

impl<V: View> Condition<V> for Nothing {
    fn holds(&self, _: &V) -> Result<bool, sluicegate_core::key::Missing> {
        Ok(false)
    }
}

/// What a throttle has read from a request.
#[derive(Debug, Clone)]
pub struct Description {
    pub(super) class: Class,
    pub(super) flow: u64,
    pub(super) key: u64,
    pub(super) timeout: Option<Duration>,
    pub(super) partition: Option<u8>,
    /// What could not be read.
    pub(super) unread: UnreadCounts,
    /// The names of the flow and the key, if keys are shown.
    pub(super) names: Option<Box<Names>>,
}

/// Reads what a throttle needs to know about a request. [`Requests`] implements it.
pub trait Describe<V: View> {
    /// Reads the request of `view`. `None` if it is exempt.
    fn describe(&self, view: &V, classes: &Classes) -> Option<Description>;
}

impl<V, C, P, F, D, X, N> Describe<V> for Requests<C, P, F, D, X, N>
where
    V: View,
    C: Criticality<V>,
    P: Key<V>,
    F: Key<V>,
    D: Deadline<V>,
    X: Condition<V>,
    N: PartitionBy<V>,
{
    fn describe(&self, view: &V, classes: &Classes) -> Option<Description> {
        // Only requests that are certainly exempt: an unusual spelling of a path must not bypass the queue.
        if self.exempt.surely_holds(view).unwrap_or(false) {
            return None;
        }
        let mut unread = UnreadCounts::default();
        let class = self.class.class(view, classes).unwrap_or_else(|Unreadable(class)| {
            unread.classes = 1;
            class
        });
        let timeout = self.deadline.timeout(view).unwrap_or_else(|Unreadable(timeout)| {
            unread.deadlines = 1;
            timeout
        });
        let (mut flow, mut key) = (KeyBuf::new(), KeyBuf::new());
        let has_flow = self.fair_by.write(view, &mut flow).is_ok();
        let has_key = self.predict_by.write(view, &mut key).is_ok();
        unread.keys = u64::from(!(has_flow && has_key));
        // All requests without a key are one flow and one kind.
        let hash = |key: &KeyBuf, is_read| if is_read { self.keys.hash.of(0, key) } else { 0 };
        let name = |key: &KeyBuf, is_read: bool| is_read.then_some(*key);
        let names = || Box::new(Names { flow: name(&flow, has_flow), key: name(&key, has_key) });
        Some(Description {
            class,
            flow: hash(&flow, has_flow),
            key: hash(&key, has_key),
            timeout,
            partition: self.partition.partition(view).map(|Partition(at)| at),
            unread,
            names: self.keys.are_shown.then(names),
        })
    }
}

/// Says how long the client of a request waits for the response.
///
/// A [`Duration`] is one time for all requests. [`DeadlineHeader`] reads it from a header.
pub trait Deadline<V: View> {
    /// How long the client waits from now on; `None` where that is unknown.
    ///
    /// # Errors
    ///
    /// When it cannot be read. The error holds the time to use instead.
    fn timeout(&self, view: &V) -> Result<Option<Duration>, Unreadable<Option<Duration>>>;
}

/// No deadlines.
impl<V: View> Deadline<V> for () {
    fn timeout(&self, _: &V) -> Result<Option<Duration>, Unreadable<Option<Duration>>> {
        Ok(None)
    }
}

impl<V: View> Deadline<V> for Duration {
    fn timeout(&self, _: &V) -> Result<Option<Duration>, Unreadable<Option<Duration>>> {
        Ok(Some(*self))
    }
}

/// The time that the client waits, as a header states it.
#[derive(Debug, Clone)]
#[must_use]
pub struct DeadlineHeader {
    name: Cow<'static, str>,
    read: fn(&str) -> Option<Duration>,
    otherwise: Option<Duration>,
}

impl DeadlineHeader {
    /// Reads whole milliseconds from the header `name`: `x-deadline-ms: 250`.
    pub fn new(name: impl Into<String>) -> Self {
        let read = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| text.parse().ok())?.map(Duration::from_millis)
        };
        Self { name: name.into().to_ascii_lowercase().into(), read, otherwise: None }
    }

    /// Reads the field `grpc-timeout`, which clients of gRPC send for calls with a deadline: `250m`.
    pub const fn grpc() -> Self {
        Self { name: Cow::Borrowed("grpc-timeout"), read: grpc_timeout::read, otherwise: None }
    }

    /// The time for requests without the header, and for those in which it cannot be read.
    pub const fn otherwise(mut self, timeout: Duration) -> Self {
        self.otherwise = Some(timeout);
        self
    }
}

impl<V: View> Deadline<V> for DeadlineHeader {
    fn timeout(&self, view: &V) -> Result<Option<Duration>, Unreadable<Option<Duration>>> {
        let mut lines = view.header_lines(&self.name);
        let Some(line) = lines.next() else { return Ok(self.otherwise) };
        let text = std::str::from_utf8(line).ok().map(str::trim);
        let timeout = text.and_then(self.read).filter(|_| lines.next().is_none());
        timeout.map(Some).ok_or(Unreadable(self.otherwise))
    }
}
