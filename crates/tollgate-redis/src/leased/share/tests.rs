//! Several processes whose clocks differ, before a server that is the limit itself.

mod by_hand;
mod fleet;

use std::ops::RangeInclusive;
use std::time::Duration;

use tollgate_core::remote::{Held, Numbers, Shape};
use tollgate_core::{Charge, KeyBuf, Limit, Mark, State};

use super::*;
use crate::script::lease::Lease;

/// A server with one row.
struct Server {
    limit: Limit,
    state: State,
}

impl Server {
    fn new(limit: Limit) -> Self {
        Self { limit, state: limit.fresh() }
    }

    /// What the script does.
    fn lease(&mut self, wanted: Wanted, now: u64) -> Lease {
        let least = self.limit.peek(&self.state, now, wanted.least);
        let left = least.remaining().expect("one limit");
        let taken = if left >= wanted.least { left.min(wanted.most) } else { 0 };
        if taken > 0 {
            assert!(self.limit.take(&mut self.state, now, taken).is_admitted());
        }
        Lease { taken, cell: self.cell(), now, retry_after: least.retry_after() }
    }

    fn cell(&self) -> [u64; 2] {
        Held::from(&self.state).cell
    }

    fn give_back(&mut self, part: &Part, now: u64) {
        let (mark, spent) = (Mark::from_words(part.cell), part.taken - part.unspent);
        self.limit.settle(&mut self.state, now, &mark, part.taken, spent);
    }
}

fn owed(limit: Limit) -> Owed {
    let charge = Charge::of(limit, KeyBuf::of("alice"), 1);
    charge.owed().next().expect("one limit").clone()
}

fn share(limit: Limit, batch: &RangeInclusive<u64>) -> Share {
    let worth = Worth::of(&limit).expect("can be leased");
    Share::new(&owed(limit), worth, batch)
}

/// By a clock that shows what it should.
fn at(now: u64) -> Moment {
    Moment { now, slack: 0, is_manual: true }
}
