//! A model of Envoy 1.40, as observed behind a stub server.

use std::collections::VecDeque;

use crate::rlqs::assignment::Assignment;
use crate::rlqs::quotas::{Order, StreamId};
use crate::rlqs::unit::BucketUsage;

use sluicegate_tests::random::Random;

/// One Envoy with one bucket.
#[derive(Debug)]
pub(super) struct Envoy {
    pub(super) name: Option<String>,
    pub(super) stream: Option<StreamId>,
    /// Requests a second.
    pub(super) demand: f64,
    pub(super) is_dead: bool,
    /// Requests that came and passed since the beginning.
    pub(super) came: u64,
    pub(super) passed: u64,
    due: f64,
    bucket: Option<Bucket>,
    /// When the assignment ends.
    ends: u64,
    used: BucketUsage,
    reported: Option<u64>,
    /// When it reports next.
    pub(super) tick: u64,
    /// Orders on their way, with the time of their arrival.
    on_their_way: VecDeque<(u64, Order)>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    assignment: Assignment,
    tokens: f64,
}

/// Reports come every 5 seconds, whatever is configured.
const PERIOD: u64 = 5_000;

impl Envoy {
    pub(super) fn new(now: u64, demand: f64, name: Option<String>, random: &mut Random) -> Self {
        Self {
            name,
            stream: None,
            demand,
            is_dead: false,
            came: 0,
            passed: 0,
            due: 0.0,
            bucket: None,
            ends: 0,
            used: BucketUsage::default(),
            reported: None,
            tick: now + random.below(PERIOD),
            on_their_way: VecDeque::new(),
        }
    }

    /// Requests come for `millis`. Returns how many pass.
    pub(super) fn serve(&mut self, now: u64, millis: u64, random: &mut Random) -> u64 {
        if now >= self.ends {
            // What is denied without an assignment is configured.
            self.bucket = None;
        }
        if let Some(Bucket { assignment: Assignment::Tokens { most, fill, seconds }, tokens }) =
            &mut self.bucket
        {
            let filled = f64::from(*fill) / f64::from(*seconds) * millis as f64 / 1_000.0;
            *tokens = (*tokens + filled).min(f64::from(*most));
        }
        self.due += self.demand * millis as f64 / 1_000.0 * 2.0 * random.unit();
        let (requests, mut passed) = (self.due as u64, 0);
        self.due -= requests as f64;
        if let Some(bucket) = &mut self.bucket {
            passed = requests.min(bucket.tokens as u64);
            bucket.tokens -= passed as f64;
        }
        self.came += requests;
        self.passed += passed;
        self.used.allowed += passed;
        self.used.denied += requests - passed;
        passed
    }

    /// The rate and the most tokens of the assignment in force.
    pub(super) fn in_force(&self, now: u64) -> (f64, u64) {
        match self.bucket.filter(|_| now < self.ends).map(|bucket| bucket.assignment) {
            Some(Assignment::Tokens { most, fill, seconds }) => {
                (f64::from(fill) / f64::from(seconds), most.into())
            }
            _ => (0.0, 0),
        }
    }

    /// Whether a report is to be sent: at once for a new bucket, then with each tick.
    pub(super) fn report(&mut self, now: u64) -> Option<BucketUsage> {
        let is_new = self.reported.is_none() && self.used != BucketUsage::default();
        let is_due = now >= self.tick;
        if is_due {
            self.tick += PERIOD;
        }
        if !is_new && (self.reported.is_none() || !is_due) {
            return None;
        }
        let since = self.reported.map_or(0, |reported| (now - reported) / 1_000);
        self.reported = Some(now);
        let used = BucketUsage { elapsed: std::time::Duration::from_secs(since), ..self.used };
        self.used = BucketUsage::default();
        Some(used)
    }

    pub(super) fn send(&mut self, arrives: u64, order: Order) {
        let after = self.on_their_way.back().map_or(0, |(arrives, _)| *arrives);
        self.on_their_way.push_back((arrives.max(after), order));
    }

    /// Obeys the orders that have arrived.
    pub(super) fn receive(&mut self, now: u64) {
        while self.on_their_way.front().is_some_and(|(arrives, _)| *arrives <= now) {
            let Some((_, order)) = self.on_their_way.pop_front() else { return };
            let Some((assignment, seconds)) = order.assignment else {
                (self.bucket, self.reported) = (None, None);
                continue;
            };
            self.bucket = Some(match self.bucket.filter(|_| now < self.ends) {
                Some(before) => before.replaced(assignment),
                None => Bucket::full(assignment),
            });
            self.ends = now + seconds * 1_000;
        }
    }

    /// What was on its way is lost with the stream.
    pub(super) fn lose(&mut self) -> Option<StreamId> {
        self.on_their_way.clear();
        self.stream.take()
    }
}

impl Bucket {
    fn full(assignment: Assignment) -> Self {
        let tokens = match assignment {
            Assignment::Tokens { most, .. } => f64::from(most),
            Assignment::Nothing => 0.0,
        };
        Self { assignment, tokens }
    }

    fn replaced(self, assignment: Assignment) -> Self {
        match (self.assignment, assignment) {
            (
                Assignment::Tokens { most, fill, .. },
                Assignment::Tokens { most: new_most, fill: new_fill, .. },
            ) => {
                if (most, fill) == (new_most, new_fill) {
                    // A change of the interval alone is ignored.
                    return self;
                }
                let tokens = self.tokens / f64::from(most) * f64::from(new_most);
                Self { assignment, tokens }
            }
            _ => Self::full(assignment),
        }
    }
}
