//! Finding the rows of a charge, all of them locked at once, in one order for everybody.

use smallvec::SmallVec;

use super::Inner;
use super::bucket::Bucket;
use super::locked::{Find, Locked, Place, Sought};
use super::moment::Moment;
use super::room::{Room, room_of};
use super::row::{Four, Narrow};
use super::slim::{LAST, Slim};
use super::table::{CHOICES, Table, ticks};
use super::together::Shared;
use crate::limit::{Limit, MOST_ENTRIES, State, Words};
use crate::store::charge::{Charge, Debit};

/// Requests owe to no more limits than that, mostly: what is known of so many is not allocated.
pub(super) const USUAL: usize = 4;

/// A row's state, taken out for the time of a decision.
pub(super) struct Found {
    pub(super) state: State,
    place: Option<Place>,
    /// Whether one more charge can be written down.
    pub(super) has_room: bool,
    /// The row that is shared with other keys, if the state is that row's.
    common: Option<Place>,
    /// What was held when the state was taken out.
    pub(super) held: u64,
    /// What a row that was made for this decision began with, as a key may have to that was counted together
    /// with others.
    seed: Option<Box<State>>,
    /// What the log is counted with.
    counted: Room,
    /// What the state of a limit that remembers more is kept in, to be put back into it.
    kept: Option<Box<State>>,
}

impl Found {
    fn of_words(words: Words, place: Option<Place>) -> Self {
        let state = State { words, ..State::default() };
        let (has_room, held) = (place.is_some(), words[0]);
        Self {
            state,
            has_room,
            place,
            common: None,
            held,
            seed: None,
            counted: Room::default(),
            kept: None,
        }
    }

    /// The same of a row that keys share.
    pub(super) fn in_common(self, place: Place) -> Self {
        Self { place: None, common: Some(place), ..self }
    }

    /// The same, to be made nobody's row again if nothing is written there.
    fn begun_with(self, seed: Option<Box<State>>) -> Self {
        Self { seed, ..self }
    }

    /// Whether the state is that of a row which several keys share.
    pub(super) fn is_together(&self) -> bool {
        self.common.is_some()
    }

    /// Whether a row was made for it in vain.
    fn is_in_vain(&self) -> bool {
        self.seed.as_ref().is_some_and(|seed| **seed == self.state)
    }
}

pub(super) struct Wanted<'a> {
    pub(super) debit: &'a Debit,
    pub(super) limit: &'a Limit,
    pub(super) print: u64,
}

/// Where the state of a limit is found.
#[derive(Default)]
struct Spot {
    own: Option<Place>,
    common: Option<Place>,
    /// What a new row begins with.
    seed: Option<Box<State>>,
}

/// Rows that hold the two words of a limit, each in its way.
trait WordRows: Bucket {
    fn words(content: Self::Content, moment: Moment) -> Words;

    /// What stands for words that was decided about at `now`, and the tick at which it has recovered.
    fn content(
        table: &Table<Self>,
        limit: &Limit,
        words: Words,
        moment: Moment,
        now: u64,
    ) -> (Self::Content, u32);

    /// The time that expiries go by.
    fn time(moment: Moment) -> u64;
}

impl WordRows for Four<Narrow> {
    fn words(words: Words, _: Moment) -> Words {
        words
    }

    fn content(
        table: &Table<Self>,
        limit: &Limit,
        words: Words,
        _: Moment,
        now: u64,
    ) -> (Words, u32) {
        (words, table.expiry(limit.words_fresh_in(words, now), now))
    }

    fn time(moment: Moment) -> u64 {
        moment.now
    }
}

impl WordRows for Slim {
    fn words(free_at: u64, moment: Moment) -> Words {
        match free_at.saturating_sub(moment.since) {
            0 => [0; 2],
            debt => [moment.now, debt],
        }
    }

    fn content(
        _: &Table<Self>,
        _: &Limit,
        [last, debt]: Words,
        Moment { now, since }: Moment,
        _: u64,
    ) -> (u64, u32) {
        // The words tells when it was written, which may be later than the moment.
        let free_at = match debt {
            0 => 0,
            debt => ((since + last).saturating_sub(now) + debt).min(LAST),
        };
        (free_at, ticks(free_at))
    }

    fn time(moment: Moment) -> u64 {
        moment.since
    }
}

impl Inner {
    /// Runs `run` on the states of all that is owed, under their locks, at one moment. The state of a
    /// row that there is no room for is a fresh one, and not kept.
    pub(super) fn rows<R>(
        &self,
        charge: &Charge,
        find: Find,
        run: impl FnOnce(&mut [Found], u64) -> R,
    ) -> R {
        let wanted = match charge.only() {
            Some(debit) if !debit.limit.has_extra_state() => {
                let wanted = self.wanted(debit);
                let run = match debit.limit.is_slim() {
                    true => self.one(&self.slim, &wanted, find, run),
                    false => self.one(&self.narrow, &wanted, find, run),
                };
                match run {
                    Ok(result) => return result,
                    Err(run) => return self.everywhere(&[wanted], find, run),
                }
            }
            Some(debit) => {
                let wanted = self.wanted(debit);
                match self.one_wide(&wanted, find, run) {
                    Ok(result) => return result,
                    Err(run) => return self.within_first(&[wanted], find, run),
                }
            }
            None => {
                charge.debits().map(|debit| self.wanted(debit)).collect::<SmallVec<[_; USUAL]>>()
            }
        };
        self.within_first(&wanted, find, run)
    }

    fn within_first<R>(
        &self,
        wanted: &[Wanted<'_>],
        find: Find,
        run: impl FnOnce(&mut [Found], u64) -> R,
    ) -> R {
        // Most rows stand in their first bucket: the others are locked only when they must be.
        match self.within(wanted, find, 1, run) {
            Ok(result) => result,
            Err(run) => self.everywhere(wanted, find, run),
        }
    }

    /// Makes the table that rows of `limit` stand in, if there is none yet.
    pub(super) fn make_for(&self, limit: &Limit) {
        match Kind::of(limit) {
            Kind::Slim => self.slim.make(),
            Kind::Narrow => self.narrow.make(),
            Kind::Wide => self.wide.make(),
        }
    }

    pub(super) fn wanted<'a>(&self, debit: &'a Debit) -> Wanted<'a> {
        let limit = &debit.limit;
        Wanted { debit, limit, print: self.seed.print(limit.id(), &debit.key) }
    }

    /// One row in its first bucket, under the lock, without allocating; hands `run` back when the others
    /// have to be looked at.
    fn one<R, B: WordRows, F: FnOnce(&mut [Found], u64) -> R>(
        &self,
        table: &Table<B>,
        &Wanted { limit, print, .. }: &Wanted<'_>,
        find: Find,
        run: F,
    ) -> Result<R, F> {
        let bucket = table.lock(table.choice(print, 0));
        // Read under the lock: no decision on a row goes by an older clock than the one before it.
        let moment = self.moment();
        let tick = table.tick(B::time(moment));
        let passed = bucket.is_passed(tick);
        let mut row = bucket.find(print).filter(|row| !passed || bucket.is_live(*row, tick));
        if row.is_none() {
            // What is counted of the key in a row that it shares must not be forgotten.
            let is_shared = find != Find::Only && self.together.is_live(moment.now);
            if find == Find::OrInsert && !passed && !is_shared {
                row = bucket.claim_free(print, tick, |_| false).map(|(row, _)| row);
            }
            if row.is_none() && (passed || is_shared || find == Find::OrInsert) {
                return Err(run);
            }
        }
        let words = row.map_or([0; 2], |row| B::words(bucket.take(row), moment));
        let now = self.clock.at_least(moment.now, limit.since(words));
        let mut found = [Found::of_words(words, row.map(|row| (0, row)))];
        let result = run(&mut found, now);
        if let Some(row) = row {
            let [Found { state: State { words, .. }, .. }] = found;
            let (content, expiry) = B::content(table, limit, words, moment, now);
            bucket.put(row, content, expiry);
        }
        Ok(result)
    }

    /// The live row of a limit that remembers more, in its first bucket, under the lock, without
    /// allocating; hands `run` back when there is none.
    fn one_wide<R, F: FnOnce(&mut [Found], u64) -> R>(
        &self,
        &Wanted { limit, print, .. }: &Wanted<'_>,
        find: Find,
        run: F,
    ) -> Result<R, F> {
        let table = &self.wide;
        let bucket = table.lock(table.choice(print, 0));
        // Read under the lock: no decision on a row goes by an older clock than the one before it.
        let Moment { now, .. } = self.moment_in_order();
        let Some(row) = bucket.find_live(print, table.tick(now)) else { return Err(run) };
        let mut found = [self.take_out(limit, (0, row), bucket.take(row), find, now)];
        let result = run(&mut found, now);
        let [found] = found;
        let (content, expiry) = self.put_away(limit, found, now);
        bucket.put(row, content, expiry);
        Ok(result)
    }

    fn everywhere<R>(
        &self,
        wanted: &[Wanted<'_>],
        find: Find,
        run: impl FnOnce(&mut [Found], u64) -> R,
    ) -> R {
        let result = self.within(wanted, find, CHOICES, run);
        result.unwrap_or_else(|_| unreachable!("no row stands beyond its last choice"))
    }

    /// Looks in the first `choices` buckets of each row; hands `run` back when more of them have to be
    /// looked at.
    fn within<R, F: FnOnce(&mut [Found], u64) -> R>(
        &self,
        wanted: &[Wanted<'_>],
        find: Find,
        choices: usize,
        run: F,
    ) -> Result<R, F> {
        let prints = |kind| {
            let of_kind = move |wanted: &&Wanted<'_>| Kind::of(wanted.limit) == kind;
            wanted.iter().filter(of_kind).map(|wanted| wanted.print)
        };
        let mut slim = Locked::lock(&self.slim, prints(Kind::Slim), choices);
        let mut narrow = Locked::lock(&self.narrow, prints(Kind::Narrow), choices);
        let mut wide = Locked::lock(&self.wide, prints(Kind::Wide), choices);
        // Read under the locks: no decision on a row goes by an older clock than the one before it.
        let moment = self.moment_in_order();
        let Moment { now, since } = moment;

        let is_live = find != Find::Only && self.together.is_live(now);
        let mut shared = is_live.then(|| self.shared(wanted, now));
        let mut spots = SmallVec::<[Spot; USUAL]>::new();
        for one in wanted {
            let Wanted { limit, print, .. } = *one;
            let common = shared.as_ref().and_then(|shared| self.live_in(shared, one));
            // What is held in a row that keys share is given back there: till then nobody leaves it.
            let find = if common.is_some() && limit.is_held() { Find::Look } else { find };
            let sought = match Kind::of(limit) {
                Kind::Slim => slim.seek(print, find, choices, since, drop),
                Kind::Narrow => narrow.seek(print, find, choices, now, drop),
                Kind::Wide => wide.seek(print, find, choices, now, |row| self.release(row)),
            };
            spots.push(match sought {
                Sought::At(place) => Spot { own: Some(place), ..Spot::default() },
                Sought::New(place) => {
                    let seed = |shared: &Shared<'_>| self.seed_of(shared, common?);
                    let seed = shared.as_ref().and_then(seed);
                    Spot { own: Some(place), common: None, seed }
                }
                Sought::Nowhere => Spot { common, ..Spot::default() },
                Sought::Full => Spot::default(),
                Sought::Further => return Err(run),
            });
        }
        let used = |spots: &[Spot]| -> SmallVec<[Option<Place>; USUAL]> {
            spots.iter().map(|spot| spot.common).collect()
        };
        for (at, one) in wanted.iter().enumerate() {
            if find == Find::OrInsert && spots[at].own.is_none() && spots[at].common.is_none() {
                let shared = shared.get_or_insert_with(|| self.shared(wanted, now));
                spots[at].common = self.insert_in(shared, one, &used(&spots));
            }
        }

        let taken = wanted.iter().zip(spots).map(|(Wanted { limit, .. }, spot)| {
            let Spot { own, common, seed } = spot;
            let found = match (own, common, Kind::of(limit)) {
                (None, None, _) => return Found::of_words(Words::default(), None),
                (None, Some(at), _) => {
                    let shared = shared.as_ref().expect("a row was found there");
                    return self.take_shared(shared, limit, at, find, now);
                }
                (Some(at), _, Kind::Wide) => {
                    let row = wide.take(at);
                    self.take_out(limit, at, seed.clone().or(row), find, now)
                }
                (Some(at), _, kind) => {
                    let words = match kind {
                        Kind::Slim => Slim::words(slim.take(at), moment),
                        _ => narrow.take(at),
                    };
                    Found::of_words(seed.as_ref().map_or(words, |seed| seed.words), own)
                }
            };
            found.begun_with(seed)
        });
        let mut found: SmallVec<[_; USUAL]> = taken.collect();

        let narrow_since =
            found.iter().zip(wanted).filter(|(_, wanted)| !wanted.limit.has_extra_state());
        let since = narrow_since.map(|(found, wanted)| wanted.limit.since(found.state.words));
        let now = self.clock.at_least(now, since.max().unwrap_or(0));
        let result = run(&mut found, now);

        for (one, found) in wanted.iter().zip(found) {
            let Wanted { limit, print, .. } = one;
            if let (Some(place), Some(shared)) = (found.common, &shared) {
                self.put_shared(shared, one, place, found, now);
                continue;
            }
            let Some(place) = found.place else { continue };
            let is_in_vain = found.is_in_vain();
            match Kind::of(limit) {
                Kind::Slim => {
                    let (content, expiry) =
                        WordRows::content(&self.slim, limit, found.state.words, moment, now);
                    slim.put(place, *print, content, expiry);
                    if is_in_vain {
                        slim.give_up(place);
                    }
                }
                Kind::Narrow => {
                    let (content, expiry) =
                        WordRows::content(&self.narrow, limit, found.state.words, moment, now);
                    narrow.put(place, *print, content, expiry);
                    if is_in_vain {
                        narrow.give_up(place);
                    }
                }
                Kind::Wide => {
                    let (content, expiry) = self.put_away(limit, found, now);
                    if is_in_vain {
                        self.release(content);
                        wide.give_up(place);
                    } else {
                        wide.put(place, *print, content, expiry);
                    }
                }
            }
        }
        Ok(result)
    }

    fn take_out(
        &self,
        limit: &Limit,
        place: Place,
        row: Option<Box<State>>,
        find: Find,
        now: u64,
    ) -> Found {
        self.take_out_with(limit, place, row, (find, MOST_ENTRIES), now)
    }

    /// The same of a log that gets room for no more than `most` entries.
    pub(super) fn take_out_with(
        &self,
        limit: &Limit,
        place: Place,
        row: Option<Box<State>>,
        (find, most): (Find, usize),
        now: u64,
    ) -> Found {
        let mut kept = row.unwrap_or_default();
        let mut state = std::mem::take(&mut *kept);
        // What has left the window makes room before more is asked for.
        limit.tidy_log(&mut state, now);
        if find == Find::OrInsert {
            self.give_room(limit, &mut state, most);
        }
        let (counted, held) = (room_of(&state), state.words[0]);
        let (place, kept) = (Some(place), Some(kept));
        Found { place, has_room: true, common: None, held, seed: None, counted, state, kept }
    }

    /// What is kept of a limit that remembers more, and the tick at which it has recovered.
    pub(super) fn put_away(
        &self,
        limit: &Limit,
        found: Found,
        now: u64,
    ) -> (Option<Box<State>>, u32) {
        let Found { state, counted, mut kept, .. } = found;
        self.recount(counted, room_of(&state));
        let expiry = self.wide.expiry(limit.fresh_in_micros(&state, now), now);
        if let Some(kept) = &mut kept {
            **kept = state;
        }
        (kept, expiry)
    }
}

/// Which table the row of a limit stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Slim,
    Narrow,
    Wide,
}

impl Kind {
    fn of(limit: &Limit) -> Self {
        match limit.is_slim() {
            true => Self::Slim,
            false if limit.has_extra_state() => Self::Wide,
            false => Self::Narrow,
        }
    }
}
