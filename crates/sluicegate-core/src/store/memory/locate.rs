//! Finding the rows of a charge. All of them are locked together, in the same order in every thread.

use smallvec::SmallVec;

use super::Inner;
use super::bucket::Bucket;
use super::checkout::{Checkout, Target};
use super::locked::{FindMode, LockedBuckets, RowIndex, SearchResult};
use super::log_budget::reserved_by;
use super::moment::Moment;
use super::one_word::OneWord;
use super::shared_rows::{ENTRIES, LockedSharedRows};
use super::table::{CHOICES, Table, USUAL_LIMITS};
use super::word_rows::{RowKind, WordRows};
use crate::limit::{Limit, LimitInternals as _, MOST_ENTRIES, State, Words};
use crate::store::charge::{Charge, Debit};

/// Where the state of a limit was found.
#[derive(Default)]
struct Location {
    own: Option<RowIndex>,
    shared_row: Option<RowIndex>,
    /// Whether its own row was made for this charge.
    is_new: bool,
    /// What a new row begins with.
    seed: Option<Box<State>>,
}

impl Inner {
    /// Runs `run` on the states of all debits, under their locks, at one moment. If there is no room for a row, its
    /// state is a fresh one and is dropped afterwards.
    pub(super) fn rows<R>(
        &self,
        charge: &Charge,
        find: FindMode,
        run: impl FnOnce(&mut [Checkout], u64) -> R,
    ) -> R {
        let target = match charge.only() {
            // Three paths, from the cheapest to the general one, because a decision under the lock is mostly about one
            // limit in its first bucket. Each returns `run` uncalled where it does not suffice, so an operation runs
            // exactly once.
            Some(debit) if !debit.limit.has_extra_state() => {
                let target = self.target(debit);
                let run = match debit.limit.fits_one_word() {
                    true => self.one(&self.one_word, &target, find, run),
                    false => self.one(&self.two_words, &target, find, run),
                };
                match run {
                    Ok(result) => return result,
                    Err(run) => return self.everywhere(&[target], find, run),
                }
            }
            Some(debit) => {
                let target = self.target(debit);
                match self.with_one_full_state(&target, find, run) {
                    Ok(result) => return result,
                    Err(run) => return self.within_first(&[target], find, run),
                }
            }
            None => charge
                .debits()
                .map(|debit| self.target(debit))
                .collect::<SmallVec<[_; USUAL_LIMITS]>>(),
        };
        self.within_first(&target, find, run)
    }

    fn within_first<R>(
        &self,
        target: &[Target<'_>],
        find: FindMode,
        run: impl FnOnce(&mut [Checkout], u64) -> R,
    ) -> R {
        // Most rows are in their first bucket, so the other buckets are locked only if necessary.
        match self.within(target, find, 1, run) {
            Ok(result) => result,
            Err(run) => self.everywhere(target, find, run),
        }
    }

    /// Allocates the table for rows of `limit`, if that has not been done.
    pub(super) fn make_for(&self, limit: &Limit) {
        match RowKind::of(limit) {
            RowKind::OneWord => self.one_word.make(),
            RowKind::TwoWords => self.two_words.make(),
            RowKind::FullState => self.full_state.make(),
        }
    }

    pub(super) fn target<'a>(&self, debit: &'a Debit) -> Target<'a> {
        let limit = &debit.limit;
        Target { debit, limit, fingerprint: self.fingerprint(limit.id(), &debit.key) }
    }

    /// Finds one row in its first bucket, under the lock, without allocating. Returns `run` if the other buckets have
    /// to be searched.
    fn one<R, B: WordRows, F: FnOnce(&mut [Checkout], u64) -> R>(
        &self,
        table: &Table<B>,
        &Target { limit, fingerprint, .. }: &Target<'_>,
        find: FindMode,
        run: F,
    ) -> Result<R, F> {
        let bucket = table.lock(table.choice(fingerprint, 0));
        // Read under the lock, so that no decision about a row uses an older time than the one before it.
        let moment = self.moment();
        let tick = table.tick(B::time(moment));
        let has_displaced = bucket.has_displaced(tick);
        let mut row = bucket.find_own(fingerprint, tick);
        if row.is_none() {
            // A key may have been counted in a shared row. That must not be forgotten.
            let is_shared = find != FindMode::Existing && self.shared_rows.is_live(moment.now);
            // Only where nothing says that the key is counted elsewhere. Two rows of one key would each admit the whole
            // limit.
            if find == FindMode::OrInsert && !has_displaced && !is_shared {
                row = bucket.claim_free(fingerprint, tick, |_| false).map(|(row, _)| row);
            }
            if row.is_none() && (has_displaced || is_shared || find == FindMode::OrInsert) {
                return Err(run);
            }
        }
        let words = row.map_or([0; 2], |row| B::words(bucket.take(row), moment));
        let now = self.clock.at_least(moment.now, limit.since(words));
        // The index of the bucket is never used here: this path has only the one bucket.
        let mut found = [Checkout::of_words(words, row.map(|row| (0, row)))];
        let result = run(&mut found, now);
        if let Some(row) = row {
            let [Checkout { state: State { words, .. }, .. }] = found;
            let (content, expiry) = B::content(table, limit, words, moment, now);
            bucket.put(row, content, expiry);
        }
        Ok(result)
    }

    /// Finds the row of a limit with more than two words in its first bucket, under the lock, without allocating. Returns
    /// `run` if there is none.
    fn with_one_full_state<R, F: FnOnce(&mut [Checkout], u64) -> R>(
        &self,
        &Target { limit, fingerprint, .. }: &Target<'_>,
        find: FindMode,
        run: F,
    ) -> Result<R, F> {
        let table = &self.full_state;
        let bucket = table.lock(table.choice(fingerprint, 0));
        // Read under the lock, so that no decision about a row uses an older time than the one before it.
        let Moment { now, .. } = self.moment_in_order();
        let Some(row) = bucket.find_own(fingerprint, table.tick(now)) else { return Err(run) };
        let mut found = [self.take_out(limit, (0, row), bucket.take(row), find, now)];
        let result = run(&mut found, now);
        let [found] = found;
        let (content, expiry) = self.put_away(limit, found, now);
        bucket.put(row, content, expiry);
        Ok(result)
    }

    fn everywhere<R>(
        &self,
        target: &[Target<'_>],
        find: FindMode,
        run: impl FnOnce(&mut [Checkout], u64) -> R,
    ) -> R {
        let result = self.within(target, find, CHOICES, run);
        result.unwrap_or_else(|_| unreachable!("all choices were searched"))
    }

    /// Searches the first `choices` buckets of each row. Returns `run` if more of them have to be searched.
    fn within<R, F: FnOnce(&mut [Checkout], u64) -> R>(
        &self,
        target: &[Target<'_>],
        find: FindMode,
        choices: usize,
        run: F,
    ) -> Result<R, F> {
        let fingerprints = |kind| {
            let of_kind = move |target: &&Target<'_>| RowKind::of(target.limit) == kind;
            target.iter().filter(of_kind).map(|target| target.fingerprint)
        };
        // The tables are locked in the order in which they stand here, and the shared rows after them. Within a table,
        // buckets are locked in ascending order. So all locks of the store have one order, and no two threads wait for
        // each other.
        let mut one_word =
            LockedBuckets::lock(&self.one_word, fingerprints(RowKind::OneWord), choices);
        let mut two_words =
            LockedBuckets::lock(&self.two_words, fingerprints(RowKind::TwoWords), choices);
        let mut full_state =
            LockedBuckets::lock(&self.full_state, fingerprints(RowKind::FullState), choices);
        // Read under the locks, so that no decision about a row uses an older time than the one before it.
        let moment = self.moment_in_order();
        let Moment { now, since } = moment;

        // Locking the shared rows too would slow down every decision about several limits. As long as no key was
        // without room, two loads of atomics say that they can be left out. Relaxed is enough: a decision by a shared
        // row is noted while the buckets of its key are locked, and one of these is locked here.
        let is_live = find != FindMode::Existing && self.shared_rows.is_live(now);
        let mut shared = is_live.then(|| self.shared(target, now));
        // Two limits of one charge must not share a row, or each would undo what the other writes.
        let used = |located: &[Location]| -> SmallVec<[Option<RowIndex>; USUAL_LIMITS]> {
            located.iter().map(|located| located.shared_row).collect()
        };
        // All rows are found before any is taken out: if a search has to lock more buckets, nothing has to be put back.
        let mut located = SmallVec::<[Location; USUAL_LIMITS]>::new();
        for one in target {
            let Target { limit, fingerprint, .. } = *one;
            let shared_row = shared.as_ref().and_then(|shared| self.live_in(shared, one));
            // A place held in a shared row is given back there, so the key keeps using that row until then.
            let find = if shared_row.is_some() && limit.is_held() {
                FindMode::ExistingOrShared
            } else {
                find
            };
            let found_at = match RowKind::of(limit) {
                RowKind::OneWord => one_word.seek(fingerprint, find, choices, since, drop),
                RowKind::TwoWords => two_words.seek(fingerprint, find, choices, now, drop),
                RowKind::FullState => {
                    full_state.seek(fingerprint, find, choices, now, |row| self.release(row))
                }
            };
            located.push(match found_at {
                SearchResult::Found(place) => Location { own: Some(place), ..Location::default() },
                SearchResult::Inserted(place) => {
                    // The key may have spent in the shared row. Without the seed, waiting for room would be a way to a
                    // fresh budget.
                    let seed = |shared: &LockedSharedRows<'_>| self.seed_of(shared, shared_row?);
                    let seed = shared.as_ref().and_then(seed);
                    Location { own: Some(place), shared_row: None, is_new: true, seed }
                }
                SearchResult::Absent => {
                    let is_used = used(&located).contains(&shared_row);
                    let shared_row = shared_row.filter(|_| !is_used);
                    Location { shared_row, ..Location::default() }
                }
                SearchResult::Full => Location::default(),
                SearchResult::NotLocked => {
                    // The search begins again with more locks. It would take a row that was made here for an old row of
                    // the key, which needs no seed, and the key would be rid of what it has spent in the shared row.
                    for (Target { limit, .. }, location) in target.iter().zip(&located) {
                        let Some(place) = location.own.filter(|_| location.is_new) else {
                            continue;
                        };
                        match RowKind::of(limit) {
                            RowKind::OneWord => one_word.give_up(place),
                            RowKind::TwoWords => two_words.give_up(place),
                            RowKind::FullState => full_state.give_up(place),
                        }
                    }
                    return Err(run);
                }
            });
        }
        for (at, one) in target.iter().enumerate() {
            // After all own rows were sought: only then is it known which keys are without room, and which shared rows
            // are taken.
            if find == FindMode::OrInsert
                && located[at].own.is_none()
                && located[at].shared_row.is_none()
            {
                let shared = shared.get_or_insert_with(|| self.shared(target, now));
                located[at].shared_row = self.insert_in(shared, one, &used(&located));
            }
        }

        let taken = target.iter().zip(located).map(|(Target { limit, .. }, located)| {
            let Location { own, shared_row, seed, .. } = located;
            let of_words =
                |words| Checkout::of_words(seed.as_ref().map_or(words, |seed| seed.words), own);
            let found = match (own, shared_row, RowKind::of(limit)) {
                (None, None, _) => return Checkout::of_words(Words::default(), None),
                (None, Some(at), _) => {
                    let shared = shared.as_ref().expect("a row was found there");
                    return self.take_shared(shared, limit, at, find, now);
                }
                // A claimed row had its content released when it was claimed, so the seed replaces nothing.
                (Some(at), _, RowKind::FullState) => {
                    let row = full_state.take(at);
                    self.take_out(limit, at, seed.clone().or(row), find, now)
                }
                (Some(at), _, RowKind::OneWord) => {
                    of_words(OneWord::words(one_word.take(at), moment))
                }
                (Some(at), _, RowKind::TwoWords) => of_words(two_words.take(at)),
            };
            found.begun_with(seed)
        });
        let mut found: SmallVec<[_; USUAL_LIMITS]> = taken.collect();

        // A clock that was set back may show an earlier time than the words were written at. Rows with more state follow
        // it by themselves; for two words the decision moves to the later time.
        let plain = found.iter().zip(target).filter(|(_, target)| !target.limit.has_extra_state());
        let since = plain.map(|(found, target)| target.limit.since(found.state.words));
        let now = self.clock.at_least(now, since.max().unwrap_or(0));
        let result = run(&mut found, now);

        for (one, found) in target.iter().zip(found) {
            let Target { limit, fingerprint, .. } = one;
            if let (Some(place), Some(shared)) = (found.shared_row, &shared) {
                self.put_shared(shared, one, place, found, now);
                continue;
            }
            // No room, and no shared row: the state was a fresh one, for the answer only.
            let Some(place) = found.place else { continue };
            // A new row that nothing was written to would take the place of a key that spends. It is freed without being
            // written: a thread could spend from a word between the two, and that would be forgotten.
            let is_in_vain = found.is_in_vain();
            match RowKind::of(limit) {
                RowKind::OneWord if is_in_vain => one_word.give_up(place),
                RowKind::TwoWords if is_in_vain => two_words.give_up(place),
                RowKind::OneWord => {
                    let (content, expiry) =
                        WordRows::content(&self.one_word, limit, found.state.words, moment, now);
                    one_word.put(place, *fingerprint, content, expiry);
                }
                RowKind::TwoWords => {
                    let (content, expiry) =
                        WordRows::content(&self.two_words, limit, found.state.words, moment, now);
                    two_words.put(place, *fingerprint, content, expiry);
                }
                RowKind::FullState => {
                    let (content, expiry) = self.put_away(limit, found, now);
                    if is_in_vain {
                        self.release(content);
                        full_state.give_up(place);
                    } else {
                        full_state.put(place, *fingerprint, content, expiry);
                    }
                }
            }
        }
        Ok(result)
    }

    fn take_out(
        &self,
        limit: &Limit,
        place: RowIndex,
        row: Option<Box<State>>,
        find: FindMode,
        now: u64,
    ) -> Checkout {
        self.take_out_with(limit, place, row, (find, MOST_ENTRIES), now)
    }

    /// Like [`take_out`](Self::take_out), for a log that gets room for at most `most` entries.
    pub(super) fn take_out_with(
        &self,
        limit: &Limit,
        place: RowIndex,
        row: Option<Box<State>>,
        (find, most): (FindMode, usize),
        now: u64,
    ) -> Checkout {
        // The box is put back with the new state in it, so a decision about a known key does not allocate.
        let mut kept = row.unwrap_or_default();
        let mut state = std::mem::take(&mut *kept);
        // Entries that have left the window make room before more is taken from the budget.
        limit.tidy_log(&mut state, now);
        if find == FindMode::OrInsert {
            self.reserve_entries(1, limit, &mut state, most);
        }
        let (counted, held) = (reserved_by(&state), state.words[0]);
        let (place, kept) = (Some(place), Some(kept));
        Checkout { place, has_room: true, shared_row: None, held, seed: None, counted, state, kept }
    }

    /// Makes sure that a log can take what is owed beyond the limit: an entry for what still fits, and one ahead.
    pub(super) fn reserve_debt(&self, limit: &Limit, found: &mut Checkout) {
        let most = if found.is_shared() { ENTRIES } else { MOST_ENTRIES };
        self.reserve_entries(2, limit, &mut found.state, most);
        found.counted = reserved_by(&found.state);
    }

    /// The content of a row with more than two words, and the tick at which it has recovered.
    pub(super) fn put_away(
        &self,
        limit: &Limit,
        found: Checkout,
        now: u64,
    ) -> (Option<Box<State>>, u32) {
        let Checkout { state, counted, mut kept, .. } = found;
        self.recount(counted, reserved_by(&state));
        let expiry = self.full_state.expiry(limit.fresh_in_micros(&state, now), now);
        if let Some(kept) = &mut kept {
            **kept = state;
        }
        (kept, expiry)
    }
}
