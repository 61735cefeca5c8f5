//! Swaps without an answer, until it is known what has become of them.

use std::sync::{Arc, Mutex};

use crate::decide::Job;
use crate::engine::Engine;
use crate::entry::Entry;
use crate::queue::Key;
use crate::row::{MOST_TAGS, Row, Tag};
use crate::shared::{Shared, lock};

/// A swap that was refused or not answered.
#[derive(Debug)]
pub(super) struct Tried {
    pub(super) tag: Tag,
    /// The rows, and the tag that each had before.
    pub(super) rows: Vec<(Key, Option<Tag>)>,
}

/// A swap that may have happened, and the jobs that it would have done. It ends in one of three ways, and each job is
/// treated once, by the first row that ends it.
#[derive(Debug)]
pub(crate) struct Doubt {
    tried: Tried,
    entries: Mutex<Vec<Entry>>,
    /// When it was decided, by the store's clock.
    pub(super) asked: u64,
    /// When nobody looks for it any more, by the store's clock.
    pub(super) until: u64,
}

impl Doubt {
    pub(super) fn new(tried: Tried, entries: Vec<Entry>, (asked, until): (u64, u64)) -> Self {
        Self { tried, entries: Mutex::new(entries), asked, until }
    }

    pub(super) fn tag(&self) -> Tag {
        self.tried.tag
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.tried.rows.iter().map(|(key, _)| key)
    }

    /// Whether this row cannot tell any more: too many others have written it.
    pub(super) fn is_lost_in(&self, key: &Key, row: &Row, process: u32) -> bool {
        let before = self.tried.rows.iter().find(|(other, _)| other == key);
        let before = before.and_then(|(_, tag)| *tag);
        let is_crowded = row.tags.len() == MOST_TAGS && row.tag_of(process).is_none();
        is_crowded && row.tag() != before
    }

    /// The swap has happened. Its callers were answered with an error, so their charges are given back.
    pub(super) fn confirm<E: Engine>(self: &Arc<Self>, shared: &Arc<Shared<E>>) {
        for entry in self.end(shared) {
            match (&entry.job, &entry.tried) {
                (Job::Take(charge), Some(Some(outcome))) => {
                    shared.give_back(charge, outcome, entry.guard.as_ref());
                }
                (Job::Settle(_), _) => {
                    shared.count_places(&entry, None, self.asked);
                    shared.counters.settled.add(1);
                }
                _ => {}
            }
        }
    }

    /// The swap has not happened, and cannot happen any more.
    pub(super) fn prevent<E: Engine>(self: &Arc<Self>, shared: &Arc<Shared<E>>) {
        for entry in self.end(shared) {
            match (&entry.job, &entry.tried) {
                (Job::Take(_), Some(Some(outcome))) => shared.uncount_places(&entry, outcome),
                (Job::Settle(_), _) => shared.later(Entry { tried: None, ..entry }),
                _ => {}
            }
        }
    }

    /// It will not be known what has become of the swap.
    pub(super) fn lose<E: Engine>(self: &Arc<Self>, shared: &Arc<Shared<E>>) {
        for entry in self.end(shared) {
            match (&entry.job, &entry.tried) {
                (Job::Take(_), tried) => {
                    if let Some(Some(outcome)) = tried {
                        shared.uncount_places(&entry, outcome);
                    }
                    shared.counters.unanswered.add(1);
                }
                // Sent twice, it could give back twice.
                (Job::Settle(settlement), _) => shared.drop_settlement(settlement),
                _ => {}
            }
        }
    }

    fn end<E: Engine>(self: &Arc<Self>, shared: &Arc<Shared<E>>) -> Vec<Entry> {
        shared.queue().settle_doubt(self);
        std::mem::take(&mut *lock(&self.entries))
    }
}
