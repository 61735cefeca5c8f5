use super::bucket::Bucket;
use super::concurrent::Concurrent;
use super::exact::EXACT;
use super::fixed::Fixed;
use super::log::Sieve;
use super::sliding::Sliding;
use super::state::{Receipt, State};
use super::stepped::Stepped;
use super::{Cell, Enter};

/// What tells the accounts of a row from each other, where it is carried over.
pub(crate) type Numbers = [u64; 4];

/// Of no account: nothing was written yet, or there is but one whatever the numbers are.
pub(super) const NONE: Numbers = [0; 4];

/// The arithmetic of a limit, ready to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Shape {
    Bucket(Bucket),
    Stepped(Stepped),
    Fixed(Fixed),
    Sliding(Sliding),
    Log(Sieve),
    Concurrent(Concurrent),
}

impl Shape {
    /// The numbers that give a cell its meaning, and say how much it holds; [`NONE`] where it means the same by
    /// all of them.
    #[inline]
    pub(super) const fn numbers(&self) -> Numbers {
        match self {
            Self::Bucket(bucket) => bucket.numbers(),
            Self::Stepped(stepped) => stepped.numbers(),
            Self::Fixed(fixed) => fixed.numbers(),
            Self::Sliding(sliding) => sliding.numbers(),
            Self::Log(_) | Self::Concurrent(_) => NONE,
        }
    }

    /// The shape of those `numbers`.
    pub(super) const fn by(&self, numbers: Numbers) -> Self {
        match self {
            Self::Bucket(_) => Self::Bucket(Bucket::by(numbers)),
            Self::Stepped(_) => Self::Stepped(Stepped::by(numbers)),
            Self::Fixed(_) => Self::Fixed(Fixed::by(numbers)),
            Self::Sliding(_) => Self::Sliding(Sliding::by(numbers)),
            Self::Log(_) | Self::Concurrent(_) => *self,
        }
    }

    /// What is spent by a cell of other `numbers`, as a cell of this shape's, up to all that this one holds;
    /// and whether marks of the one mean the same in the other.
    pub(super) fn taken_over(&self, cell: Cell, numbers: Numbers, now: u64) -> (Cell, bool) {
        match self {
            Self::Bucket(bucket) => (bucket.taken_over(cell, numbers, now), false),
            Self::Stepped(stepped) => (stepped.taken_over(cell, numbers, now), false),
            Self::Fixed(fixed) => fixed.taken_over(cell, numbers, now),
            Self::Sliding(sliding) => (sliding.taken_over(cell, numbers, now), false),
            Self::Log(_) | Self::Concurrent(_) => (cell, true),
        }
    }

    /// A cell of which all is spent.
    pub(super) fn all_spent(&self, now: u64) -> Cell {
        match self {
            Self::Bucket(bucket) => bucket.all_spent(now),
            Self::Stepped(stepped) => stepped.all_spent(now),
            Self::Fixed(fixed) => fixed.all_spent(now),
            Self::Sliding(sliding) => sliding.all_spent(now),
            Self::Log(_) | Self::Concurrent(_) => [0; 2],
        }
    }

    /// Charges what others have admitted, up to all that the cell holds; says whether that was all of it.
    pub(super) fn charge_up_to_all(&self, cell: &mut Cell, now: u64, cost: u64) -> bool {
        match self {
            Self::Bucket(bucket) => bucket.charge_up_to_all(cell, now, cost),
            Self::Stepped(stepped) => stepped.charge_up_to_all(cell, now, cost),
            Self::Fixed(fixed) => fixed.charge_up_to_all(cell, now, cost),
            Self::Sliding(sliding) => {
                sliding.spend(cell, now, cost);
                true
            }
            Self::Log(_) | Self::Concurrent(_) => true,
        }
    }

    /// Gives back what the cell was charged with at `then`, when others admitted it.
    pub(super) fn give_charged(&self, cell: &mut Cell, then: u64, now: u64, cost: u64, back: u64) {
        match self {
            Self::Bucket(bucket) => bucket.give_charged(cell, then, now, cost, back),
            Self::Stepped(stepped) => stepped.give_charged(cell, then, now, cost, back),
            Self::Fixed(fixed) => fixed.give_charged(cell, then, now, back),
            Self::Sliding(sliding) => sliding.give_charged(cell, then, now, back),
            Self::Log(_) | Self::Concurrent(_) => {}
        }
    }

    /// The earliest moment, `from` or more microseconds from `now`, at which `cost` may come in.
    #[inline]
    pub(super) fn enter(&self, state: &State, now: u64, cost: u64, from: u64) -> Enter {
        match self {
            Self::Bucket(bucket) => bucket.enter(state.cell, now, cost, from),
            Self::Stepped(stepped) => stepped.enter(state.cell, now, cost, from),
            Self::Fixed(fixed) => fixed.enter(state.cell, now, cost, from),
            Self::Sliding(sliding) => sliding.enter(state.cell, now, cost, from),
            Self::Log(sieve) => sieve.enter(state.log.as_deref(), now, cost, from),
            Self::Concurrent(concurrent) => concurrent.enter(state.cell, cost, from),
        }
    }

    /// Whether a place `wait` ahead can be written down, for a request that `another` limit may hold
    /// back.
    pub(super) fn books(
        &self,
        state: &State,
        now: u64,
        cost: u64,
        wait: u64,
        another: bool,
    ) -> bool {
        if wait == 0 {
            return true;
        }
        let exact = now + wait < EXACT;
        exact
            && match self {
                Self::Bucket(bucket) => bucket.books(state.cell, now, cost, wait, another),
                Self::Stepped(stepped) => stepped.books(state.cell, now, cost, wait, another),
                Self::Fixed(fixed) => fixed.books(state.cell, now, cost, wait, another),
                Self::Sliding(sliding) => sliding.books(now, wait),
                Self::Log(_) | Self::Concurrent(_) => true,
            }
    }

    #[inline]
    pub(super) fn spend(&self, state: &mut State, now: u64, cost: u64, wait: u64) -> Cell {
        match self {
            Self::Bucket(bucket) => bucket.spend(&mut state.cell, now, cost, wait),
            Self::Stepped(stepped) => stepped.spend(&mut state.cell, now, cost, wait),
            Self::Fixed(fixed) => fixed.spend(&mut state.cell, now, cost, wait),
            Self::Sliding(sliding) => sliding.spend(&mut state.cell, now, cost),
            Self::Log(sieve) => {
                return [sieve.spend(state.log.get_or_insert_default(), now, cost, wait), 0];
            }
            Self::Concurrent(_) => Concurrent::spend(&mut state.cell, cost),
        }
        state.cell
    }

    /// Charges what has been spent already, whether or not it fits.
    pub(super) fn force(&self, state: &mut State, now: u64, cost: u64) {
        match self {
            Self::Bucket(bucket) => bucket.force(&mut state.cell, now, cost),
            Self::Stepped(stepped) => stepped.force(&mut state.cell, now, cost),
            Self::Fixed(fixed) => fixed.force(&mut state.cell, now, cost),
            Self::Sliding(sliding) => sliding.spend(&mut state.cell, now, cost),
            Self::Log(sieve) => {
                sieve.force(state.log.get_or_insert_default(), now, cost);
            }
            // What is held is held: a response cannot turn out to have been two.
            Self::Concurrent(_) => {}
        }
    }

    pub(super) fn record_refused(&self, state: &mut State, now: u64, cost: u64) {
        match self {
            Self::Log(sieve) => sieve.record(state.log.get_or_insert_default(), now, cost),
            Self::Sliding(sliding) => sliding.spend(&mut state.cell, now, cost),
            // No other can be told to.
            _ => {}
        }
    }

    pub(super) fn give(&self, state: &mut State, receipt: &Receipt, now: u64, back: u64) {
        match self {
            Self::Bucket(bucket) => bucket.give(&mut state.cell, receipt.cell, now, back),
            Self::Stepped(stepped) => stepped.give(&mut state.cell, receipt.cell, now, back),
            Self::Fixed(fixed) => fixed.give(&mut state.cell, receipt.cell, now, back),
            Self::Sliding(sliding) => sliding.give(&mut state.cell, receipt.cell, now, back),
            Self::Log(sieve) => {
                if let Some(log) = &mut state.log {
                    sieve.give(log, receipt.cell[0], now, back);
                }
            }
            Self::Concurrent(_) => Concurrent::give(&mut state.cell, back),
        }
    }

    /// Whether a charge still counted at `then`.
    pub(super) fn counted(&self, receipt: &Receipt, then: u64) -> bool {
        match self {
            Self::Log(sieve) => receipt.cell[0].saturating_add(sieve.period) > then,
            Self::Concurrent(_) => true,
            _ => self.fresh_in(&State { cell: receipt.cell, ..State::default() }, then) > Some(0),
        }
    }

    /// Follows a clock that stepped back, and drops what a log holds in vain.
    #[inline]
    pub(super) fn tidy(&self, state: &mut State, now: u64) {
        match self {
            Self::Bucket(bucket) => bucket.follow(&mut state.cell, now),
            Self::Stepped(stepped) => stepped.follow(&mut state.cell, now),
            Self::Fixed(fixed) => fixed.follow(&mut state.cell, now),
            Self::Sliding(sliding) => sliding.follow(&mut state.cell, now),
            Self::Log(sieve) => {
                if let Some(log) = &mut state.log {
                    sieve.tidy(log, now);
                }
            }
            Self::Concurrent(_) => {}
        }
    }

    /// The earliest moment at which a state of two words can have been written.
    #[inline]
    pub(super) fn since(&self, cell: Cell) -> u64 {
        match self {
            Self::Bucket(bucket) => bucket.since(cell),
            Self::Stepped(_) | Self::Fixed(_) => cell[0],
            Self::Sliding(sliding) => sliding.since(cell),
            Self::Log(_) | Self::Concurrent(_) => 0,
        }
    }

    #[inline]
    pub(super) fn remaining(&self, state: &State, now: u64) -> u64 {
        match self {
            Self::Bucket(bucket) => bucket.remaining(state.cell, now),
            Self::Stepped(stepped) => stepped.remaining(state.cell, now),
            Self::Fixed(fixed) => fixed.remaining(state.cell, now),
            Self::Sliding(sliding) => sliding.remaining(state.cell, now),
            Self::Log(sieve) => sieve.remaining(state.log.as_deref(), now),
            Self::Concurrent(concurrent) => concurrent.remaining(state.cell),
        }
    }

    /// Microseconds until the state equals a fresh one; `None`: when it is given back.
    #[inline]
    pub(super) fn fresh_in(&self, state: &State, now: u64) -> Option<u64> {
        match self {
            Self::Bucket(bucket) => Some(bucket.fresh_in(state.cell, now)),
            Self::Stepped(stepped) => Some(stepped.fresh_in(state.cell, now)),
            Self::Fixed(fixed) => Some(fixed.fresh_in(state.cell, now)),
            Self::Sliding(sliding) => Some(sliding.fresh_in(state.cell, now)),
            Self::Log(sieve) => Some(sieve.fresh_in(state.log.as_deref(), now)),
            Self::Concurrent(_) => (state.cell[0] == 0).then_some(0),
        }
    }
}
