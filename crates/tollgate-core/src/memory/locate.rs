//! Finding the rows of a charge, all of them locked at once, in one order for everybody.

use super::Inner;
use super::bucket::Bucket;
use super::lock::Seen;
use super::locked::{Find, Locked, Place, Sought};
use super::room::room_of;
use super::row::{Narrow, Row, Wide};
use super::sync::spin;
use super::table::CHOICES;
use crate::charge::{Charge, Owed};
use crate::key::KeyBuf;
use crate::limit::{Cell, Limit, Plain, Spent, State, Stepped};

/// A row's state, taken out for the time of a decision.
pub(super) struct Found {
    pub(super) state: State,
    place: Option<Place>,
    /// Whether one more charge can be written down: there is a row, and room in its log.
    pub(super) has_room: bool,
    /// Entries that the log is counted with.
    counted: usize,
}

impl Found {
    fn narrow(cell: Cell, place: Option<Place>) -> Self {
        let state = State { cell, ..State::default() };
        Self { state, has_room: place.is_some(), place, counted: 0 }
    }
}

/// How often a row is looked at without the lock when others are at work there, and how long the first
/// pause is; each is twice as long as the one before.
const TURNS: u32 = 5;
const PAUSE: u32 = 8;

/// Why a row was not spent from where it was looked for first.
#[derive(Clone, Copy)]
pub(super) enum Passed {
    /// It may stand in another of its choices.
    Elsewhere { print: u64, seen: Seen, now: u64 },
    /// There is none.
    Nowhere,
    /// Somebody else is at work there.
    Busy,
}

struct Wanted<'a> {
    limit: &'a Limit,
    print: u64,
}

impl Inner {
    /// The common case: a plain limit whose row is in the first bucket that it may stand in, with nobody
    /// else at work there.
    #[inline(always)]
    pub(super) fn spend_first(
        &self,
        id: u64,
        limit: &impl Plain,
        key: &KeyBuf,
        cost: u64,
    ) -> Result<Spent, Passed> {
        let table = &self.narrow;
        let print = self.seed.print(id, key);
        let bucket = table.bucket(table.choice(print, 0));
        let Some(seen) = bucket.look().filter(|_| bucket.fetch_rows()) else {
            return Err(Passed::Busy);
        };
        let now = self.clock.now();
        let tick = table.tick(now);
        match bucket.find(print) {
            // A row that has recovered here may be alive elsewhere.
            Some(row) if bucket.is_live(row, tick) || !bucket.is_passed(tick) => {
                let spent = self.spend_there(limit, (bucket, seen), row, now, cost);
                spent.ok_or(Passed::Busy)
            }
            _ if bucket.is_passed(tick) => Err(Passed::Elsewhere { print, seen, now }),
            _ => Err(Passed::Nowhere),
        }
    }

    /// [`spend_first`](Self::spend_first) and [`spend_elsewhere`](Self::spend_elsewhere) for any limit:
    /// `None` where it has to be done under the lock.
    pub(super) fn spend_anywhere(&self, limit: &Limit, key: &KeyBuf, cost: u64) -> Option<Spent> {
        let first = match limit.plain_bucket() {
            Some(bucket) => self.spend_first(limit.id(), bucket, key, cost),
            None if limit.is_plain() => self.spend_first(limit.id(), limit, key, cost),
            None => return None,
        };
        match first {
            Ok(spent) => Some(spent),
            Err(passed) => self.spend_elsewhere(limit, passed, key, cost),
        }
    }

    /// Looks again after a while, in which whoever was at work there can make some more decisions with
    /// the row at hand: taking turns after each would carry it from one processor to the other all the
    /// time.
    #[cold]
    fn spend_later(&self, limit: &Limit, key: &KeyBuf, cost: u64) -> Option<Spent> {
        for turn in 0..TURNS {
            (0..PAUSE << turn).for_each(|_| spin());
            let first = match limit.plain_bucket() {
                Some(bucket) => self.spend_first(limit.id(), bucket, key, cost),
                None => self.spend_first(limit.id(), limit, key, cost),
            };
            match first {
                Ok(spent) => return Some(spent),
                Err(Passed::Busy) => {}
                Err(_) => return None,
            }
        }
        None
    }

    /// A row that stands in another of its choices.
    #[inline(never)]
    pub(super) fn spend_elsewhere(
        &self,
        limit: &Limit,
        passed: Passed,
        key: &KeyBuf,
        cost: u64,
    ) -> Option<Spent> {
        let (print, seen, now) = match passed {
            Passed::Elsewhere { print, seen, now } => (print, seen, now),
            Passed::Busy => return self.spend_later(limit, key, cost),
            Passed::Nowhere => return None,
        };
        let table = &self.narrow;
        let tick = table.tick(now);
        let first = table.bucket(table.choice(print, 0));
        for choice in 1..CHOICES {
            let other = table.bucket(table.choice(print, choice));
            if std::ptr::eq(other, first) {
                continue;
            }
            let seen_there = other.look()?;
            let Some(row) = other.find_live(print, tick) else { continue };

            let before = other.row(row).cell();
            if !other.is_still(seen_there) {
                return None;
            }
            let now = self.not_before(limit.since(before), now)?;
            let stepped = limit.step(before, now, cost);
            if let Stepped::Admit { cell, fresh_in } = stepped {
                let expiry = table.expiry(fresh_in, now);
                // What the first bucket says has to hold for longer, or at least not to have been
                // overtaken: once it does not hold, another row may be made there. Neither lock is
                // waited for, so that nobody waits for somebody who waits.
                let longer = match first.is_passed_until(expiry) {
                    true => None,
                    false => Some(first.lock_if_still(seen)?),
                };
                let other = other.lock_if_still(seen_there)?;
                match longer {
                    // Some longer than need be, so that the next ones find it so.
                    Some(first) => first.pass_until(expiry.saturating_add((expiry - tick) / 4)),
                    None if first.is_still(seen) => {}
                    None => return None,
                }
                other.row(row).put(cell);
                other.expire_at(row, expiry);
            } else if !first.is_still(seen) {
                return None;
            }
            return Some(Spent::new(stepped, before, now));
        }
        None
    }

    /// Spends from a row that was found without the lock.
    #[inline(always)]
    fn spend_there(
        &self,
        limit: &impl Plain,
        (bucket, seen): (&Bucket<Narrow>, Seen),
        row: usize,
        now: u64,
        cost: u64,
    ) -> Option<Spent> {
        let before = bucket.row(row).cell();
        // Words of two states, or of another limit's, must not be calculated with: they may overflow.
        // Measured, it costs nothing.
        if !bucket.is_still(seen) {
            return None;
        }
        let now = self.not_before(limit.since(before), now)?;
        let stepped = limit.step(before, now, cost);
        if let Stepped::Admit { cell, fresh_in } = stepped {
            let bucket = bucket.lock_if_still(seen)?;
            bucket.row(row).put(cell);
            bucket.expire_at(row, self.narrow.expiry(fresh_in, now));
        }
        Some(Spent::new(stepped, before, now))
    }

    /// The clock is read without the lock, so another thread may have come in between with a later time.
    /// Where the clock can be set back, that has to be written down under the lock.
    #[inline]
    fn not_before(&self, since: u64, now: u64) -> Option<u64> {
        if since <= now { Some(now) } else { self.behind(since) }
    }

    #[cold]
    fn behind(&self, since: u64) -> Option<u64> {
        self.clock.as_manual().is_none().then_some(since)
    }

    /// Runs `run` on the states of all that is owed, under their locks, at one moment. The state of a
    /// row that there is no room for is a fresh one, and not kept.
    pub(super) fn rows<R>(
        &self,
        charge: &Charge,
        find: Find,
        run: impl FnOnce(&mut [Found], u64) -> R,
    ) -> R {
        match charge.only() {
            Some(owed) if !owed.limit.is_wide() => self.one_narrow(self.wanted(owed), find, run),
            _ => {
                let wanted: Vec<_> = charge.owed().map(|owed| self.wanted(owed)).collect();
                // Most rows stand in their first bucket: the others are locked only when they must be.
                match self.within(&wanted, find, 1, run) {
                    Ok(result) => result,
                    Err(run) => self.everywhere(&wanted, find, run),
                }
            }
        }
    }

    fn wanted<'a>(&self, owed: &'a Owed) -> Wanted<'a> {
        Wanted { limit: &owed.limit, print: self.seed.print(owed.limit.id(), &owed.key) }
    }

    /// One row of two words in its first bucket, under the lock, without allocating.
    fn one_narrow<R>(
        &self,
        wanted: Wanted<'_>,
        find: Find,
        run: impl FnOnce(&mut [Found], u64) -> R,
    ) -> R {
        let Wanted { limit, print } = wanted;
        let bucket = self.narrow.lock(self.narrow.choice(print, 0));
        // Read under the lock: no decision on a row goes by an older clock than the one before it.
        let now = self.clock.now();
        let tick = self.narrow.tick(now);
        let passed = bucket.is_passed(tick);
        let mut row = bucket.find(print).filter(|row| !passed || bucket.is_live(*row, tick));
        if row.is_none() && find == Find::OrInsert && !passed {
            row = bucket.free(tick, |_| false);
            if let Some(row) = row {
                bucket.claim(row, print);
            }
        }
        if row.is_none() && (passed || find == Find::OrInsert) {
            drop(bucket);
            return self.everywhere(&[wanted], find, run);
        }
        let cell = row.map_or([0; 2], |row| bucket.row(row).cell());
        let now = self.clock.at_least(now, limit.since(cell));
        let mut found = [Found::narrow(cell, row.map(|row| (0, row)))];
        let result = run(&mut found, now);
        if let Some(row) = row {
            let [Found { state: State { cell, .. }, .. }] = found;
            bucket.row(row).put(cell);
            bucket.expire_at(row, self.narrow.expiry(limit.cell_fresh_in(cell, now), now));
        }
        result
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
        let prints = |wide| {
            let of_table = move |wanted: &&Wanted<'_>| wanted.limit.is_wide() == wide;
            wanted.iter().filter(of_table).map(|wanted| wanted.print)
        };
        let mut narrow = Locked::lock(&self.narrow, prints(false), choices);
        let any_wide = wanted.iter().any(|wanted| wanted.limit.is_wide());
        let mut wide = any_wide.then(|| Locked::lock(&self.wide, prints(true), choices));
        // Read under the locks: no decision on a row goes by an older clock than the one before it.
        let now = self.clock.now_in_order();

        let mut places = Vec::with_capacity(wanted.len());
        for Wanted { limit, print } in wanted {
            let sought = match &mut wide {
                Some(wide) if limit.is_wide() => {
                    wide.seek(*print, find, choices, now, |row| self.release(row))
                }
                _ => narrow.seek(*print, find, choices, now, drop),
            };
            match sought {
                Sought::At(place) => places.push(Some(place)),
                Sought::Nowhere | Sought::Full => places.push(None),
                Sought::Further => return Err(run),
            }
        }

        let mut found = Vec::with_capacity(wanted.len());
        for (Wanted { limit, .. }, place) in wanted.iter().zip(places) {
            found.push(match (place, &mut wide) {
                (None, _) => Found::narrow(Cell::default(), None),
                (Some(place), Some(wide)) if limit.is_wide() => {
                    self.take_out(limit, place, wide.row(place), find, now)
                }
                (Some(at), _) => Found::narrow(narrow.row(at).cell(), place),
            });
        }

        let narrow_since = found.iter().zip(wanted).filter(|(_, wanted)| !wanted.limit.is_wide());
        let since = narrow_since.map(|(found, wanted)| wanted.limit.since(found.state.cell));
        let now = self.clock.at_least(now, since.max().unwrap_or(0));
        let result = run(&mut found, now);

        for (Wanted { limit, print }, found) in wanted.iter().zip(found) {
            let Some(place) = found.place else { continue };
            match &mut wide {
                Some(wide) if limit.is_wide() => {
                    self.recount(found.counted, room_of(&found.state));
                    let expiry = wide.table().expiry(limit.fresh_in_micros(&found.state, now), now);
                    wide.expire_at(place, *print, expiry);
                    wide.row(place).put(Some(Box::new(found.state)));
                }
                _ => {
                    let expiry =
                        self.narrow.expiry(limit.cell_fresh_in(found.state.cell, now), now);
                    narrow.expire_at(place, *print, expiry);
                    narrow.row(place).put(found.state.cell);
                }
            }
        }
        Ok(result)
    }

    fn take_out(&self, limit: &Limit, place: Place, row: &Wide, find: Find, now: u64) -> Found {
        let mut state = *row.take().unwrap_or_default();
        // What has left the window makes room before more is asked for.
        limit.tidy(&mut state, now);
        let has_room = find == Find::Only || self.give_room(limit, &mut state);
        Found { place: Some(place), has_room, counted: room_of(&state), state }
    }
}
