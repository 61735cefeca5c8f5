//! One exchange with the engine about some rows: load what is not known, decide, swap, and try again if a row has changed.
//!
//! **Nothing is charged for an error.** A swap without an answer may have happened, or may still happen. Its callers get an
//! error, and its rows are in doubt. The next flight of such a row loads it. If the row has the tag of that swap, it has
//! happened, and its charges are given back. Otherwise the flight writes the row in any case, so that the earlier swap
//! cannot happen any more; when that is answered, the doubt is gone.
//!
//! **An engine need not tell the truth about a refused swap.** A client library may have sent it twice, so that the second
//! found the version that the first had written. So the rows are searched for the tag of a swap that was refused, too. This
//! needs a load that sees the first swap, as every engine has to give.
//!
//! **Only what was seen is believed.** A decision that admits is proved by the swap that writes it. A decision that writes
//! nothing is only given from rows that this flight has loaded, or that another job of it has swapped.

mod doubt;

use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::adapter::Outcome;
use sluicegate_core::adapter::breaker::{Permit, Transition};
use sluicegate_core::store::StoreError;
use tokio::sync::oneshot;

pub(crate) use self::doubt::Doubt;
use self::doubt::Tried;
use crate::decide::{Draft, Job, SKEW, run};
use crate::engine::{Engine, EngineError, Loaded, Stored, Swapped, Write};
use crate::entry::{Entry, Reply};
use crate::observe;
use crate::queue::{Key, Known};
use crate::row::{Malformed, Row, Tag};
use crate::runtime::before;
use crate::shared::{Shared, limit_of, lock};

/// The longest pause before a swap is tried again after a row had changed. The first retry does not wait.
const LONGEST_PAUSE: Duration = Duration::from_millis(8);

/// The pause before the second retry, which doubles from then on. It is random, so that processes take turns.
const FIRST_PAUSE: Duration = Duration::from_micros(250);

/// A test's clock does not turn with the engine's, so its rows are kept for longer.
const KEEP_IN_TESTS: Duration = Duration::from_secs(3_600);

/// Some jobs, and their rows.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    pub(crate) entries: Vec<Entry>,
    pub(crate) rows: Vec<FlightRow>,
}

#[derive(Debug)]
pub(crate) struct FlightRow {
    pub(crate) key: Key,
    pub(crate) known: Option<Known>,
    /// Whether this flight has seen the engine's row.
    pub(crate) is_loaded: bool,
    /// Swaps of the row that may have happened.
    pub(crate) doubts: Vec<Arc<Doubt>>,
    /// Why the row cannot be read.
    pub(crate) malformed: Option<Malformed>,
}

/// A flight under way. Its rows are free again when this is dropped.
struct Airborne<E: Engine> {
    shared: Arc<Shared<E>>,
    flight: Flight,
    /// The last swap, if it was refused or not answered.
    tried: Option<Tried>,
    /// When the last swap was decided, by the store's clock: leases that it begins or renews last from then.
    asked: u64,
    /// The breaker's permit for a load that was answered. It goes on to the swap: an engine that reads and cannot write
    /// does not work, and its loads must not say that it does.
    permit: Option<Permit>,
}

impl<E: Engine> Drop for Airborne<E> {
    fn drop(&mut self) {
        if !self.flight.entries.is_empty() {
            // The last swap may have happened all the same.
            self.fail(&StoreError::unavailable("the engine has panicked, or the runtime ends"));
        }
        self.land();
    }
}

/// Flies until all jobs are done, or have failed.
pub(crate) async fn fly<E: Engine>(shared: Arc<Shared<E>>, flight: Flight) {
    let mut air = Airborne { shared, flight, tried: None, asked: 0, permit: None };
    let mut refused = 0;
    loop {
        air.join();
        if let Err(failure) = air.load().await {
            return air.fail(&failure);
        }
        air.look_for_tried();
        air.resolve();
        air.leave_behind();
        if air.flight.entries.is_empty() {
            return air.succeed();
        }
        let tag = air.shared.tag();
        air.asked = air.shared.runtime.clock.now();
        let (drafts, outcomes) = air.decide(tag);
        if !air.is_proved(&drafts) {
            continue;
        }
        let writes = air.writes(&drafts, tag);
        if writes.is_empty() {
            air.count_places(&outcomes);
            return air.answer(outcomes);
        }
        if let Err(failure) = air.enter() {
            return air.fail(&failure);
        }
        for (entry, outcome) in air.flight.entries.iter_mut().zip(&outcomes) {
            entry.tried = Some(outcome.clone());
        }
        air.tried = Some(Tried { tag, rows: air.before(&writes) });
        match air.swap(&writes).await {
            Err(failure) => return air.fail(&failure),
            Ok(Swapped::Written { versions, .. }) => {
                air.tried = None;
                air.written(writes, drafts, &versions, &outcomes);
                return air.answer(outcomes);
            }
            Ok(Swapped::Changed(loaded)) => {
                air.changed(&writes, loaded);
                refused += 1;
                air.pause(refused).await;
            }
        }
    }
}

impl<E: Engine> Airborne<E> {
    fn join(&mut self) {
        let shared = Arc::clone(&self.shared);
        shared.queue().join(&mut self.flight);
    }

    /// Loads the rows that are not known.
    async fn load(&mut self) -> Result<(), StoreError> {
        let now = self.shared.now();
        // A row that has expired may have been forgotten, and made anew with the same version.
        let is_stale = |known: &Known| {
            known.version.is_some() && now >= known.row.expires.saturating_add(SKEW / 2)
        };
        for row in &mut self.flight.rows {
            row.known.take_if(|known| !row.is_loaded && is_stale(known));
        }
        let is_missing = |row: &&mut FlightRow| row.known.is_none() && row.malformed.is_none();
        let missing: Vec<_> = self.flight.rows.iter_mut().filter(is_missing).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let keys: Vec<Key> = missing.iter().map(|row| Arc::clone(&row.key)).collect();
        let shared = Arc::clone(&self.shared);
        shared.counters.loads.add(1);
        let calling = shared.engine.load(&keys);
        let loaded = call(&shared, &mut self.permit, calling, |loaded| loaded.now).await?;
        if loaded.rows.len() != keys.len() {
            let rows = loaded.rows.len();
            let message = format!("the engine has loaded {rows} rows, not {}", keys.len());
            return Err(StoreError::unavailable(message));
        }
        let at = shared.runtime.clock.now();
        for (row, stored) in missing.into_iter().zip(loaded.rows) {
            row.learn(stored, at);
        }
        Ok(())
    }

    /// Whether the last swap has happened, though the engine has not said so.
    fn look_for_tried(&mut self) {
        let Some(Tried { tag, rows }) = self.tried.take() else { return };
        let process = self.shared.process;
        let is_tried = |row: &&FlightRow| rows.iter().any(|(key, _)| *key == row.key);
        let has_tag = |row: &FlightRow| {
            let known = row.known.as_ref();
            known.is_some_and(|known| known.row.tag_of(process.number) == Some(tag))
        };
        let has_happened = self.flight.rows.iter().filter(is_tried).any(has_tag);
        if !has_happened {
            self.flight.entries.iter_mut().for_each(|entry| entry.tried = None);
            return;
        }
        for entry in &self.flight.entries {
            if let Some(outcome) = &entry.tried {
                self.shared.count_places(entry, outcome.as_ref(), self.asked);
            }
        }
        for (key, _) in &rows {
            let row = self.flight.rows.iter().find(|row| row.key == *key);
            if let Some(known) = row.and_then(|row| row.known.as_ref()) {
                self.shared.see_places(key, known.row.own(process), self.asked);
            }
        }
        let entries = std::mem::take(&mut self.flight.entries);
        for mut entry in entries {
            match entry.tried.take() {
                // Earlier swaps of the row are still in doubt.
                Some(outcome) if !matches!(entry.job, Job::Look) => self.answer_one(entry, outcome),
                _ => self.flight.entries.push(entry),
            }
        }
    }

    /// Settles the doubts about swaps that are seen to have happened.
    fn resolve(&mut self) {
        let process = self.shared.process;
        for row in &mut self.flight.rows {
            let Some(known) = &row.known else { continue };
            let own = known.row.tag_of(process.number);
            let Some(at) = row.doubts.iter().position(|doubt| Some(doubt.tag()) == own) else {
                continue;
            };
            let doubt = row.doubts.swap_remove(at);
            self.shared.see_places(&row.key, known.row.own(process), doubt.asked);
            doubt.confirm(&self.shared);
        }
    }

    /// Drops the jobs that nobody waits for, and those whose row cannot be read.
    fn leave_behind(&mut self) {
        let now = self.shared.runtime.clock.now();
        let entries = std::mem::take(&mut self.flight.entries);
        for entry in entries {
            let malformed = entry.rows.iter().find_map(|key| {
                self.flight.rows.iter().find(|row| row.key == *key).and_then(|row| row.malformed)
            });
            if let Some(malformed) = malformed {
                self.fail_one(entry, &StoreError::unavailable(malformed), true);
            } else if matches!(entry.job, Job::Look) && !self.is_in_doubt(&entry) {
                // Another flight has found out.
                drop(entry);
            } else if entry.is_gone(now) {
                self.fail_one(entry, &StoreError::too_slow(), true);
            } else {
                self.flight.entries.push(entry);
            }
        }
    }

    fn is_in_doubt(&self, entry: &Entry) -> bool {
        let rows = self.flight.rows.iter().filter(|row| entry.rows.contains(&row.key));
        { rows }.any(|row| !row.doubts.is_empty())
    }

    fn decide(&self, tag: Tag) -> (Vec<Draft>, Vec<Option<Outcome>>) {
        let rows = &self.flight.rows;
        let draft = |row: &FlightRow| match &row.known {
            Some(known) => Draft::of(&known.row),
            None => Draft::of(&Row::default()),
        };
        let mut drafts: Vec<Draft> = rows.iter().map(draft).collect();
        for (draft, row) in drafts.iter_mut().zip(rows) {
            draft.lower_own(self.shared.process, |since| {
                lock(&self.shared.places).count(&row.key, since)
            });
        }
        let (now, skew) = (self.shared.now(), self.shared.skew());
        let outcomes = self.flight.entries.iter().map(|entry| {
            let at: Vec<usize> = self.at(entry).collect();
            run(&entry.job, (&mut drafts, &at), (self.shared.process, tag), (now, skew))
        });
        let outcomes = outcomes.collect();
        let grace = now.saturating_add(self.shared.grace_micros());
        for (draft, row) in drafts.iter_mut().zip(rows) {
            // Writing it keeps earlier swaps from happening after all. Until then the row must not be forgotten.
            if !row.doubts.is_empty() && row.malformed.is_none() {
                draft.is_changed = true;
                draft.row.expires = draft.row.expires.max(grace);
            }
        }
        (drafts, outcomes)
    }

    /// The indices of an entry's rows.
    fn at(&self, entry: &Entry) -> impl Iterator<Item = usize> {
        let rows = &self.flight.rows;
        entry.rows.iter().filter_map(|key| rows.iter().position(|row| row.key == *key))
    }

    /// Whether each answer is proved by rows that are written or were loaded. The other rows are to be loaded.
    fn is_proved(&mut self, drafts: &[Draft]) -> bool {
        let mut unseen: Vec<usize> =
            self.flight.entries.iter().flat_map(|entry| self.at(entry)).collect();
        unseen.retain(|at| {
            let is_written = drafts.get(*at).is_some_and(|draft| draft.is_changed);
            let is_loaded = self.flight.rows.get(*at).is_some_and(|row| row.is_loaded);
            !is_written && !is_loaded
        });
        for at in &unseen {
            if let Some(row) = self.flight.rows.get_mut(*at) {
                row.known = None;
            }
        }
        unseen.is_empty()
    }

    fn writes(&self, drafts: &[Draft], tag: Tag) -> Vec<Write> {
        let now = self.shared.now();
        let rows = self.flight.rows.iter().zip(drafts).filter(|(_, draft)| draft.is_changed);
        let write = |(row, draft): (&FlightRow, &Draft)| {
            let mut signed = draft.row.clone();
            signed.sign(tag);
            let kept =
                Duration::from_micros(signed.expires.saturating_sub(now).saturating_add(2 * SKEW));
            let keep = match self.shared.runtime.clock.as_manual() {
                Some(_) => kept.max(KEEP_IN_TESTS),
                None => kept,
            };
            Write {
                key: Arc::clone(&row.key),
                expected: row.known.as_ref().and_then(|known| known.version),
                version: tag.0,
                bytes: signed.write(limit_of(&row.key)),
                keep,
            }
        };
        rows.map(write).collect()
    }

    /// The rows that are written, and the tags that they have before.
    fn before(&self, writes: &[Write]) -> Vec<(Key, Option<Tag>)> {
        let tag = |write: &Write| {
            let row = self.flight.rows.iter().find(|row| row.key == write.key);
            row.and_then(|row| row.known.as_ref()).and_then(|known| known.row.tag())
        };
        writes.iter().map(|write| (Arc::clone(&write.key), tag(write))).collect()
    }

    /// Asks the breaker before anything counts as tried: a swap that is never sent has not happened.
    fn enter(&mut self) -> Result<(), StoreError> {
        if self.permit.is_none() {
            self.permit = Some(enter(&self.shared)?);
        }
        Ok(())
    }

    async fn swap(&mut self, writes: &[Write]) -> Result<Swapped, StoreError> {
        let shared = &self.shared;
        shared.counters.swaps.add(1);
        let now = |swapped: &Swapped| match swapped {
            Swapped::Written { now, .. } => *now,
            Swapped::Changed(loaded) => loaded.as_ref().and_then(|loaded| loaded.now),
        };
        let swapped = call(shared, &mut self.permit, shared.engine.swap(writes), now).await;
        self.succeed();
        swapped
    }

    /// The engine has done what it was asked, as far as it was asked for anything.
    fn succeed(&mut self) {
        let Some(mut permit) = self.permit.take() else { return };
        if permit.succeed() == Transition::Closed {
            observe::closed(&self.shared.prefix);
        }
    }

    /// The swap has happened.
    fn written(
        &mut self,
        writes: Vec<Write>,
        drafts: Vec<Draft>,
        versions: &[u64],
        outcomes: &[Option<Outcome>],
    ) {
        let (process, at) = (self.shared.process, self.shared.runtime.clock.now());
        let mut versions = versions.iter().copied();
        let mut written = Vec::new();
        let mut writes = writes.into_iter().peekable();
        for (row, draft) in self.flight.rows.iter_mut().zip(drafts) {
            let Some(write) = writes.next_if(|write| write.key == row.key) else { continue };
            for doubt in std::mem::take(&mut row.doubts) {
                // This write has replaced the version that the earlier swap expected, so that can never happen now.
                let before = row.known.as_ref().map(|known| &known.row);
                let is_lost =
                    before.is_some_and(|row| doubt.is_lost_in(&write.key, row, process.number));
                match is_lost {
                    true => doubt.lose(&self.shared),
                    false => doubt.prevent(&self.shared),
                }
            }
            let mut signed = draft.row;
            signed.sign(Tag(write.version));
            row.known = versions.next().map(|version| Known {
                version: Some(version),
                row: Arc::new(signed),
                learnt: at,
            });
            row.is_loaded = true;
            written.push(Arc::clone(&row.key));
        }
        self.count_places(outcomes);
        for row in self.flight.rows.iter().filter(|row| written.contains(&row.key)) {
            if let Some(known) = &row.known {
                self.shared.see_places(&row.key, known.row.own(process), self.asked);
            }
        }
    }

    /// These jobs were done. Before the rows are free, so that the next flight of a row lowers nothing of them.
    fn count_places(&self, outcomes: &[Option<Outcome>]) {
        for (entry, outcome) in self.flight.entries.iter().zip(outcomes) {
            self.shared.count_places(entry, outcome.as_ref(), self.asked);
        }
    }

    /// The swap was refused: some row has another version than expected.
    fn changed(&mut self, writes: &[Write], loaded: Option<Loaded>) {
        self.shared.counters.conflicts.add(1);
        let at = self.shared.runtime.clock.now();
        let mut rows = loaded.map(|loaded| loaded.rows).filter(|rows| rows.len() == writes.len());
        for (i, write) in writes.iter().enumerate() {
            let Some(row) = self.flight.rows.iter_mut().find(|row| row.key == write.key) else {
                continue;
            };
            match rows.as_mut().and_then(|rows| rows.get_mut(i)) {
                Some(stored) => row.learn(stored.take(), at),
                None => (row.known, row.is_loaded) = (None, false),
            }
        }
    }

    async fn pause(&self, refused: u32) {
        if refused < 2 {
            return;
        }
        let longest = FIRST_PAUSE.saturating_mul(1 << refused.min(16)).min(LONGEST_PAUSE);
        self.shared.runtime.timer(longest.mul_f64(fastrand::f64())).await;
    }

    fn answer(&mut self, outcomes: Vec<Option<Outcome>>) {
        self.succeed();
        let entries = std::mem::take(&mut self.flight.entries);
        for entry in entries.iter().filter(|entry| matches!(entry.job, Job::Renew)) {
            self.check_places(entry);
        }
        // The rows are free before the callers know, who may ask about them again at once.
        self.land();
        for (entry, outcome) in entries.into_iter().zip(outcomes) {
            self.answer_one(entry, outcome);
        }
    }

    /// What was renewed is lost if the row has nothing of this process.
    fn check_places(&self, entry: &Entry) {
        for row in self.flight.rows.iter().filter(|row| entry.rows.contains(&row.key)) {
            let known = row.known.as_ref();
            if known.is_none_or(|known| known.row.own(self.shared.process).is_none()) {
                self.shared.lose_places(&row.key);
            }
        }
    }

    fn land(&mut self) {
        let rows = std::mem::take(&mut self.flight.rows);
        let flights = self.shared.queue().land(rows);
        self.shared.launch(flights);
    }

    fn answer_one(&self, entry: Entry, outcome: Option<Outcome>) {
        let shared = &self.shared;
        let Entry { job, caller, guard, .. } = entry;
        match (job, outcome, caller) {
            (job, Some(outcome), Some(caller)) => {
                let Job::Take(charge) = job else {
                    let _ = caller.send(Ok(outcome));
                    return;
                };
                let counters = &shared.counters;
                let counter =
                    if outcome.is_admitted() { &counters.admitted } else { &counters.refused };
                counter.add(1);
                if let Err(Ok(outcome)) = caller.send(Ok(outcome)) {
                    shared.give_back(&charge, &outcome, guard.as_ref());
                }
            }
            (Job::Settle(_), ..) => shared.counters.settled.add(1),
            _ => {}
        }
        // It counts until what follows of it is under way.
        drop(guard);
    }

    /// The engine has failed. What may have been written is in doubt; other work of the background is tried again.
    fn fail(&mut self, failure: &StoreError) {
        let entries = std::mem::take(&mut self.flight.entries);
        let mut doubtful = Vec::new();
        for mut entry in entries {
            // What charges nothing may happen or not. So a look is no reason for another one.
            let may_charge = matches!(entry.job, Job::Take(_) | Job::Settle(_));
            if self.tried.is_none() || entry.tried.is_none() || !may_charge {
                self.fail_one(entry, failure, false);
                continue;
            }
            // Before the caller knows, who may wait for the background at once.
            if let Some(guard) = &entry.guard {
                guard.leave();
            }
            if let (Job::Take(_), Some(Some(outcome))) = (&entry.job, &entry.tried) {
                self.shared.doubt_places(&entry, outcome, self.asked);
            }
            if let Some(caller) = entry.caller.take() {
                self.tell(caller, failure);
            }
            doubtful.push(entry);
        }
        for row in &mut self.flight.rows {
            row.known = None;
        }
        let Some(tried) = self.tried.take().filter(|_| !doubtful.is_empty()) else { return };
        let keys: Vec<Key> = tried.rows.iter().map(|(key, _)| Arc::clone(key)).collect();
        let until = self.shared.until();
        let doubt = Arc::new(Doubt::new(tried, doubtful, (self.asked, until)));
        self.shared.queue().doubt(&doubt);
        // Somebody has to look, also if no request comes.
        for key in keys {
            self.shared.later(Entry::background(Job::Look, vec![key], (until, None)));
        }
    }

    /// A job that was not tried has failed, for good or for now.
    fn fail_one(&self, entry: Entry, failure: &StoreError, for_good: bool) {
        let shared = &self.shared;
        let for_good = for_good || entry.is_gone(shared.runtime.clock.now());
        match (entry.caller, &entry.job) {
            (Some(caller), _) => self.tell(caller, failure),
            (None, Job::Look) if for_good => self.give_up(&entry.rows),
            (None, Job::Settle(settlement)) if for_good => shared.drop_settlement(settlement),
            (None, Job::Settle(_) | Job::Look) => shared.later(Entry { caller: None, ..entry }),
            // It is renewed again in a moment.
            (None, _) => {}
        }
    }

    /// Tells a caller of a failure, which counts unless it has counted as one that was too late.
    fn tell(&self, caller: oneshot::Sender<Reply>, failure: &StoreError) {
        if caller.send(Err(failure.clone())).is_ok() {
            self.shared.counters.failures.add(1);
        }
    }

    /// It will not be known what has become of earlier swaps of these rows, for which there is no time left.
    fn give_up(&self, keys: &[Key]) {
        let now = self.shared.runtime.clock.now();
        for row in self.flight.rows.iter().filter(|row| keys.contains(&row.key)) {
            for doubt in &row.doubts {
                if doubt.until < now || row.malformed.is_some() {
                    doubt.lose(&self.shared);
                }
            }
        }
    }
}

impl FlightRow {
    pub(crate) fn new(key: &Key, known: Option<Known>, doubts: &[Arc<Doubt>]) -> Self {
        let (key, doubts) = (Arc::clone(key), doubts.to_vec());
        Self { key, known, is_loaded: false, doubts, malformed: None }
    }

    /// The engine has shown the row.
    fn learn(&mut self, stored: Option<Stored>, learnt: u64) {
        self.is_loaded = true;
        let read = |stored: Stored| {
            let row = Row::read(limit_of(&self.key), &stored.bytes)?;
            Ok((Some(stored.version), row))
        };
        match stored.map_or(Ok((None, Row::default())), read) {
            Ok((version, row)) => {
                self.known = Some(Known { version, row: Arc::new(row), learnt });
            }
            Err(malformed) => (self.known, self.malformed) = (None, Some(malformed)),
        }
    }
}

/// A permit of the breaker for a call.
fn enter<E>(shared: &Shared<E>) -> Result<Permit, StoreError> {
    let why = "the engine failed repeatedly and its breaker is open";
    shared.breaker.enter(shared.runtime.clock.now()).ok_or_else(|| StoreError::unavailable(why))
}

/// One call of the engine, within the deadline and with a permit of the breaker. If it is answered, the permit is kept: the
/// caller says what the answer is worth.
async fn call<E: Engine, T>(
    shared: &Arc<Shared<E>>,
    kept: &mut Option<Permit>,
    calling: impl Future<Output = Result<T, EngineError>>,
    now: impl FnOnce(&T) -> Option<Duration>,
) -> Result<T, StoreError> {
    use std::sync::atomic::Ordering;
    let clock = &shared.runtime.clock;
    let sent = clock.now();
    let mut permit = match kept.take() {
        Some(permit) => permit,
        None => enter(shared)?,
    };
    let epoch = shared.epoch.load(Ordering::Relaxed);
    let answer = before(shared.runtime.sleep(shared.deadline), calling).await;
    observe::called(clock, sent);
    let (failure, group) = match answer {
        Some(Ok(answer)) => {
            shared.learn(sent, now(&answer));
            *kept = Some(permit);
            return Ok(answer);
        }
        // What breaks a connection fails all calls on it, which is one failure.
        Some(Err(error)) => (StoreError::unavailable(error), Some(u64::from(epoch))),
        None => (StoreError::too_slow(), None),
    };
    shared.epoch.fetch_max(epoch.saturating_add(1), Ordering::Relaxed);
    if let Transition::Opened(pause) = permit.fail(clock.now(), group) {
        shared.counters.breaker_openings.add(1);
        observe::opened(&shared.prefix, &failure, pause);
    }
    Err(failure)
}
