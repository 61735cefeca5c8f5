use std::hash::BuildHasher;
use std::time::Duration;

use foldhash::fast::RandomState;
use sluicegate_core::condition::Condition;
use sluicegate_core::key::{Key, KeyBuf, Method, View};
use sluicegate_core::{Global, Route};

use super::criticality::{Criticality, Unreadable};
use super::deadline::{Deadline, NoDeadline};
use crate::class::{Class, Classes};

/// What a throttle reads from a request: its class `C`, the key `P` of its predicted cost, the key `F` of its flow, its
/// deadline `D`, and whether it is exempt, `X`.
#[derive(Debug, Clone)]
pub struct Requests<C = Class, P = (Method, Route), F = Global, D = NoDeadline, X = Nothing> {
    pub(super) class: C,
    pub(super) predict_by: P,
    pub(super) fair_by: F,
    pub(super) deadline: D,
    pub(super) exempt: X,
    pub(super) seed: RandomState,
}

impl Requests {
    pub(super) fn new(class: Class) -> Self {
        Self {
            class,
            predict_by: (Method, Route),
            fair_by: Global,
            deadline: NoDeadline,
            exempt: Nothing,
            seed: RandomState::default(),
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
#[derive(Debug, Clone, Copy)]
pub struct Described {
    pub(super) class: Class,
    pub(super) flow: u64,
    pub(super) key: u64,
    pub(super) timeout: Option<Duration>,
    /// Something could not be read.
    pub(super) unreadable: bool,
}

/// Reads what a throttle wants to know of a request: [`Requests`] does.
pub trait Describe<V: View> {
    /// What the request of `view` is; `None` where it is exempt.
    fn describe(&self, view: &V, classes: &Classes) -> Option<Described>;
}

impl<V, C, P, F, D, X> Describe<V> for Requests<C, P, F, D, X>
where
    V: View,
    C: Criticality<V>,
    P: Key<V>,
    F: Key<V>,
    D: Deadline<V>,
    X: Condition<V>,
{
    fn describe(&self, view: &V, classes: &Classes) -> Option<Described> {
        // Only what surely is exempt: an unusual spelling of a path is no way around the queue.
        if self.exempt.surely_holds(view).unwrap_or(false) {
            return None;
        }
        let mut unreadable = false;
        let class = self.class.class(view, classes).unwrap_or_else(|Unreadable(class)| {
            unreadable = true;
            class
        });
        let timeout = self.deadline.timeout(view).unwrap_or_else(|Unreadable(timeout)| {
            unreadable = true;
            timeout
        });
        let mut hash = |key: KeyBuf| self.seed.hash_one(key);
        let flow = written(&self.fair_by, view).map(&mut hash);
        let key = written(&self.predict_by, view).map(&mut hash);
        unreadable |= flow.is_none() || key.is_none();
        let (flow, key) = (flow.unwrap_or_default(), key.unwrap_or_default());
        Some(Described { class, flow, key, timeout, unreadable })
    }
}

fn written<V: View>(key: &impl Key<V>, view: &V) -> Option<KeyBuf> {
    let mut buf = KeyBuf::new();
    key.write(view, &mut buf).ok().map(|()| buf)
}
