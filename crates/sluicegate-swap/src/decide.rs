//! Decides over rows that were read, and says what to write. No I/O and no clock: rows and the time are passed in.
//!
//! The step is the one that `Memory` runs. Jobs of one swap are decided one after another on the same rows.
//!
//! **A row never goes back.** Processes know the time with different errors. A job is decided at the latest time of its
//! rows, if that is no further ahead than these errors. If it is further ahead, the clock was set back: then the step
//! makes sure that this neither grants nor bans.
//!
//! **Places.** What processes hold of a limit of concurrency is kept for each of them, until it lapses. The step sees the
//! sum of what has not lapsed. The second word of its state, which the algorithm does not use, is the tag of the write
//! that began the entry of this process. So it is in the receipt, and what was taken before the entry was lost takes
//! nothing from a later one.

use sluicegate_core::Limit;
use sluicegate_core::adapter::remote::LimitParameters;
use sluicegate_core::adapter::{Attempt, Charge, Debit, Outcome, Receipt, State, decide, preview};

use crate::row::{Holder, Row, Tag};

/// How far clocks may disagree, in microseconds.
pub(crate) const SKEW: u64 = 10_000_000;

/// What is to be done with some rows.
#[derive(Debug, Clone)]
pub(crate) enum Job {
    Take(Charge),
    Peek(Charge),
    Reset(Charge),
    /// Changes the charge of a debit to this cost.
    Settle(Box<(Debit, Receipt, u64)>),
    /// Keeps what this process holds, and no more.
    Renew,
    /// Finds out what has become of earlier swaps of the row.
    Look,
}

/// Who decides.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Process {
    pub(crate) number: u32,
    /// How long places are held without being renewed, in microseconds.
    pub(crate) lease: u64,
}

/// A row in a decision.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) row: Row,
    /// Whether it has to be written.
    pub(crate) is_changed: bool,
}

impl Draft {
    pub(crate) fn of(row: &Row) -> Self {
        Self { row: row.clone(), is_changed: false }
    }
}

/// Does a job on its rows, `at` these places of `drafts`, for the write that will have this tag. Processes disagree about
/// the time by `skew` at most.
pub(crate) fn run(
    job: &Job,
    (drafts, at): (&mut [Draft], &[usize]),
    (process, tag): (Process, Tag),
    (now, skew): (u64, u64),
) -> Option<Outcome> {
    let seen = at.iter().filter_map(|at| drafts.get(*at)).map(|draft| draft.row.seen);
    let latest = seen.max().unwrap_or(now);
    let is_set_back = latest > now.saturating_add(skew);
    let now = if is_set_back { now } else { now.max(latest) };
    let mut table = Table { drafts, at, process, tag, now };
    match job {
        Job::Take(charge) => {
            let mut states = table.check_out(charge);
            let before = charge.debits().any(may_record_refusals).then(|| states.clone());
            let outcome = with_attempts(&mut states, charge, |attempts| {
                decide(attempts, now, charge.patience(), charge.keys())
            });
            let changes = match outcome.is_admitted() {
                // Also the rows in which nothing changes: their limits have admitted it, too.
                true => charge.debits().any(|debit| debit.cost > 0 || writes_for_nothing(debit)),
                // Most refusals leave even those limits as they are, and a flood of them is no flood of swaps.
                false => is_set_back || before.is_some_and(|before| before != states),
            };
            table.check_in(charge, states, changes);
            Some(outcome)
        }
        Job::Peek(charge) => {
            let mut states = table.check_out(charge);
            let outcome = with_attempts(&mut states, charge, |attempts| {
                preview(attempts, now, charge.patience(), charge.keys())
            });
            table.check_in(charge, states, false);
            Some(outcome)
        }
        Job::Reset(charge) => {
            let mut states = table.check_out(charge);
            // A held place stays held until its holder gives it back.
            let rows = states.iter_mut().zip(charge.debits());
            rows.filter(|(_, debit)| !debit.limit.is_held())
                .for_each(|(state, _)| *state = State::default());
            let outcome = with_attempts(&mut states, charge, |attempts| {
                preview(attempts, now, charge.patience(), charge.keys())
            });
            table.check_in(charge, states, true);
            Some(outcome)
        }
        Job::Settle(settlement) => {
            let (debit, receipt, spent) = &**settlement;
            table.settle(debit, receipt, *spent);
            None
        }
        Job::Renew => {
            table.renew();
            None
        }
        Job::Look => None,
    }
}

struct Table<'t> {
    drafts: &'t mut [Draft],
    at: &'t [usize],
    process: Process,
    tag: Tag,
    now: u64,
}

impl Table<'_> {
    fn each(&mut self, mut each: impl FnMut(&mut Draft)) {
        for at in self.at {
            if let Some(draft) = self.drafts.get_mut(*at) {
                each(draft);
            }
        }
    }

    /// Takes the states out of the rows of a charge.
    fn check_out(&mut self, charge: &Charge) -> Vec<State> {
        let held: Vec<bool> = charge.debits().map(|debit| debit.limit.is_held()).collect();
        let (process, tag, now) = (self.process, self.tag, self.now);
        let mut states = Vec::with_capacity(held.len());
        let mut held = held.into_iter();
        self.each(|draft| {
            let mut state = std::mem::take(&mut draft.row.state);
            if held.next() == Some(true) {
                state.words = draft.row.held_words(process, tag, now);
            }
            states.push(state);
        });
        states
    }

    fn check_in(&mut self, charge: &Charge, states: Vec<State>, changes: bool) {
        let (process, tag, now) = (self.process, self.tag, self.now);
        let mut rows = charge.debits().zip(states);
        self.each(|draft| {
            if let Some((debit, state)) = rows.next() {
                draft.put(&debit.limit, state, changes, (process, tag, now));
            }
        });
    }

    fn settle(&mut self, debit: &Debit, receipt: &Receipt, spent: u64) {
        let (process, tag, now) = (self.process, self.tag, self.now);
        let is_held = debit.limit.is_held();
        self.each(|draft| {
            let own = draft.row.own(process);
            // Places that were lost are not given back a second time.
            let is_lost = is_held && own.is_none_or(|own| own.since != receipt.words()[1]);
            // A forgotten row has nothing to give back, but more may be charged to it.
            let is_gone = draft.row.tags.is_empty() && spent <= debit.cost;
            if is_lost || is_gone {
                return;
            }
            let mut state = std::mem::take(&mut draft.row.state);
            if is_held {
                state.words = draft.row.held_words(process, tag, now);
            }
            debit.limit.settle(&mut state, now, receipt, debit.cost, spent);
            draft.put(&debit.limit, state, true, (process, tag, now));
        });
    }

    fn renew(&mut self) {
        let (process, now) = (self.process, self.now);
        self.each(|draft| {
            let lapses = now.saturating_add(process.lease);
            let own = |holder: &&mut Holder| holder.process == u64::from(process.number);
            if let Some(own) = draft.row.holders.iter_mut().find(own) {
                own.lapses = lapses;
                draft.row.expires = draft.row.expires.max(lapses);
                draft.row.seen = draft.row.seen.max(now);
                draft.is_changed = true;
            }
        });
    }
}

impl Draft {
    /// Lowers what this process holds to the `count` of places that it knows of in its entry. The others were taken or
    /// given back by a swap or a settlement that was lost.
    pub(crate) fn lower_own(&mut self, process: Process, count: impl FnOnce(u64) -> u64) {
        let is_own = |holder: &Holder| holder.process == u64::from(process.number);
        let Some(own) = self.row.holders.iter_mut().find(|holder| is_own(holder)) else { return };
        let count = count(own.since);
        if own.held > count {
            own.held = count;
            self.row.holders.retain(|holder| !is_own(holder) || count > 0);
            self.is_changed = true;
        }
    }

    /// Puts the state back, as far as it has to be kept.
    fn put(
        &mut self,
        limit: &Limit,
        mut state: State,
        changes: bool,
        (process, tag, now): (Process, Tag, u64),
    ) {
        let row = &mut self.row;
        if limit.is_held() {
            let [held, _] = std::mem::take(&mut state.words);
            if changes {
                row.hold(held, (process, tag, now));
            }
        }
        let fresh_in = limit.fresh_in(&state, now).map(|time| time.as_micros() as u64);
        row.state = state;
        if changes {
            let lapses = row.holders.iter().map(|holder| holder.lapses).max().unwrap_or(0);
            let fresh = now.saturating_add(fresh_in.unwrap_or(0));
            row.seen = now;
            row.expires = row.expires.max(fresh).max(lapses);
            self.is_changed = true;
        }
    }
}

impl Row {
    /// What this process holds.
    pub(crate) fn own(&self, process: Process) -> Option<&Holder> {
        self.holders.iter().find(|holder| holder.process == u64::from(process.number))
    }

    /// The words of a limit of concurrency. The places of this process count as long as its entry is there: nobody else
    /// has taken them.
    fn held_words(&self, process: Process, tag: Tag, now: u64) -> [u64; 2] {
        let counts =
            |holder: &&Holder| holder.lapses > now || holder.process == u64::from(process.number);
        let held = self.holders.iter().filter(counts).map(|holder| holder.held).sum();
        [held, self.own(process).map_or(tag.0, |own| own.since)]
    }

    /// Makes all holders together hold `held`, by what this process holds. Drops those that have lapsed.
    fn hold(&mut self, held: u64, (process, tag, now): (Process, Tag, u64)) {
        let number = u64::from(process.number);
        let own = self.own(process).copied();
        self.holders.retain(|holder| holder.process != number && holder.lapses > now);
        for other in &mut self.holders {
            // If the clock was set back, nobody lapses later than the lease says.
            other.lapses = other.lapses.min(now.saturating_add(other.lease));
        }
        let others: u64 = self.holders.iter().map(|holder| holder.held).sum();
        let held = held.saturating_sub(others);
        if held > 0 {
            let since = own.map_or(tag.0, |own| own.since);
            let lapses = now.saturating_add(process.lease);
            let lease = process.lease;
            self.holders.push(Holder { process: number, held, since, lapses, lease });
        }
    }
}

/// Whether a request without a cost may write to the row.
fn writes_for_nothing(debit: &Debit) -> bool {
    let LimitParameters { gap, carried, .. } = LimitParameters::of(&debit.limit);
    gap > 0 || carried
}

/// Whether a refusal may change the row. A limit that is carried over may begin an account then.
fn may_record_refusals(debit: &Debit) -> bool {
    let LimitParameters { ban, count_refused, carried, .. } = LimitParameters::of(&debit.limit);
    ban > 0 || count_refused || carried
}

fn with_attempts(
    states: &mut [State],
    charge: &Charge,
    run: impl FnOnce(&mut [Attempt<'_>]) -> Outcome,
) -> Outcome {
    let attempts = states.iter_mut().zip(charge.debits());
    let mut attempts = attempts.map(|(state, debit)| {
        let (limit, cost) = (&debit.limit, debit.cost);
        Attempt { limit, state, cost }
    });
    match (attempts.next(), charge.len()) {
        // Most charges have one debit, which needs no allocation.
        (Some(mut attempt), 1) => run(std::slice::from_mut(&mut attempt)),
        (first, _) => run(&mut first.into_iter().chain(attempts).collect::<Vec<_>>()),
    }
}

/// What [`decide`] would answer to a charge that is refused by these rows between two times, if it is refused at both.
/// Nothing is charged.
pub(crate) fn refusal(
    charge: &Charge,
    rows: &[&Row],
    (earliest, latest): (u64, u64),
) -> Option<Outcome> {
    let is_kept = |debit: &Debit| {
        let LimitParameters { ban, count_refused, .. } = LimitParameters::of(&debit.limit);
        !debit.limit.is_held() && ban == 0 && !count_refused
    };
    if charge.patience().is_some() || !charge.debits().all(is_kept) {
        return None;
    }
    let seen = rows.iter().map(|row| row.seen).max()?;
    if seen > earliest {
        return None;
    }
    let mut states: Vec<State> = rows.iter().map(|row| row.state.clone()).collect();
    let outcome = with_attempts(&mut states, charge, |attempts| {
        decide(attempts, earliest, None, charge.keys())
    });
    let retry_after = outcome.retry_after()?.as_micros() as u64;
    (retry_after > latest.saturating_sub(earliest)).then_some(outcome)
}
