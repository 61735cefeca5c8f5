use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::adapter::KeyHash;
use sluicegate_core::condition::Condition;
use sluicegate_core::key::{Key, KeyBuf, Method, View};
use sluicegate_core::{Global, Route};

use super::criticality::{Criticality, Unreadable};
use super::deadline::{Deadline, NoDeadline};
use super::names::Names;
use super::partition::{NoPartition, Partition, PartitionBy};
use crate::class::{Class, Classes};

/// What a throttle reads from a request: its class `C`, the key `P` of its predicted cost, the key `F` of its flow, its
/// deadline `D`, whether it is exempt, `X`, and its partition, `N`.
#[derive(Debug, Clone)]
pub struct Requests<
    C = Class,
    P = (Method, Route),
    F = Global,
    D = NoDeadline,
    X = Nothing,
    N = NoPartition,
> {
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
            deadline: NoDeadline,
            exempt: Nothing,
            partition: NoPartition,
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
pub struct Described {
    pub(super) class: Class,
    pub(super) flow: u64,
    pub(super) key: u64,
    pub(super) timeout: Option<Duration>,
    pub(super) partition: Option<u8>,
    /// What could not be read.
    pub(super) unread: Unread,
    /// The names of the flow and the key, if keys are shown.
    pub(super) names: Option<Box<Names>>,
}

/// Whether something could not be read, and the default is used.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Unread {
    pub(super) class: bool,
    pub(super) deadline: bool,
    pub(super) key: bool,
}

/// Reads what a throttle needs to know about a request. [`Requests`] implements it.
pub trait Describe<V: View> {
    /// Reads the request of `view`. `None` if it is exempt.
    fn describe(&self, view: &V, classes: &Classes) -> Option<Described>;
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
    fn describe(&self, view: &V, classes: &Classes) -> Option<Described> {
        // Only requests that are certainly exempt: an unusual spelling of a path must not bypass the queue.
        if self.exempt.surely_holds(view).unwrap_or(false) {
            return None;
        }
        let mut unread = Unread::default();
        let class = self.class.class(view, classes).unwrap_or_else(|Unreadable(class)| {
            unread.class = true;
            class
        });
        let timeout = self.deadline.timeout(view).unwrap_or_else(|Unreadable(timeout)| {
            unread.deadline = true;
            timeout
        });
        let (mut flow, mut key) = (KeyBuf::new(), KeyBuf::new());
        let has_flow = self.fair_by.write(view, &mut flow).is_ok();
        let has_key = self.predict_by.write(view, &mut key).is_ok();
        unread.key = !(has_flow && has_key);
        let hash = |key: &KeyBuf, is_read| if is_read { self.keys.hash.of(0, key) } else { 0 };
        let name = |key: &KeyBuf, is_read: bool| is_read.then_some(*key);
        let names = || Box::new(Names { flow: name(&flow, has_flow), key: name(&key, has_key) });
        Some(Described {
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
