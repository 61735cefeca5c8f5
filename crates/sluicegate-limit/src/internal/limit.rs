use alloc::borrow::Cow;

use crate::algorithm::Algorithm;
use crate::algorithm::concurrency::Concurrency;
use crate::algorithm::sliding_log::{Log, SlidingLog};
use crate::algorithm::stepped_bucket::SteppedBucket;
use crate::algorithm::token_bucket::TokenBucket;
use crate::decision::LimitStatus;
use crate::error::LimitError;
use crate::exact::bounded;
use crate::limit::{AlgorithmSpec, Limit, Name};
use crate::part::Part;
use crate::state::{Receipt, State, Step, Words};
use crate::text::NamePiece;

/// What a store asks of a limit.
pub trait LimitInternals: Sized {
    /// Compares like `==`, but faster: the identity already includes the name.
    fn is_same(&self, other: &Self) -> bool;

    /// Whether two limits of one identity show the same name. Limits that are counted in one row may have different names.
    fn is_named_like(&self, other: &Self) -> bool;

    /// Whether one look at two words tells all: no ban, no gap, no log, no queue of its own, nothing to
    /// record of refusals, and no shadow.
    fn is_plain(&self) -> bool;

    /// Whether the account of this limit's numbers tells all, as long as the row has no other: what a
    /// [plain](Self::is_plain) limit becomes when it is [carried](Limit::carried) over.
    fn is_plain_account(&self) -> bool;

    /// Whether the state holds more than two words.
    fn has_extra_state(&self) -> bool;

    /// Whether requests wait in a queue of the limit's own, even where no adapter's queue lets them: a leaky
    /// bucket's.
    fn has_own_queue(&self) -> bool;

    /// Passes on the name in pieces. Header fields are written with each response, and formatting would take longer
    /// than the decision.
    fn each_name_piece(&self, each: &mut impl FnMut(NamePiece<'_>));

    /// The bucket of a plain limit of which a microsecond drains one, as of most.
    fn one_word_bucket(&self) -> Option<&TokenBucket>;

    /// The bucket of a plain limit.
    fn plain_bucket(&self) -> Option<&TokenBucket>;

    /// Whether the state is that of a limit [with a one-word row](Self::one_word_bucket): a shadow's is too, so that it
    /// is the same when it becomes one that refuses.
    fn fits_one_word(&self) -> bool;

    /// The words of a limit that [fits one word](Self::fits_one_word) as `receipt` wrote them, if that is what is left
    /// of them: giving back asks whether anybody was charged since.
    fn as_written(&self, words: Words, receipt: &Receipt) -> Words;

    /// Microseconds until a state of two words equals a fresh one; `None`: not before it is given back.
    fn words_fresh_in(&self, words: Words, now: u64) -> Option<u64>;

    /// [`fresh_in`](Limit::fresh_in), in microseconds.
    fn fresh_in_micros(&self, state: &State, now: u64) -> Option<u64>;

    /// The earliest moment at which a state of two words may have been written.
    fn since(&self, words: Words) -> u64;

    /// Spends `cost` by a limit that is [plain](Self::is_plain), or by its [account](Self::is_plain_account), if that
    /// may come in at once. The words must not be of a later time. Returns also in how many microseconds a state with
    /// the new words equals a fresh one; `None`: when it is given back.
    fn step(&self, words: Words, now: u64, cost: u64) -> (Step, Option<u64>);

    /// [`step`](Self::step) from a state whose only account is that of these numbers, and that holds nothing else.
    /// `None` where there is more to look at, or the state is of a later time.
    fn step_account(&self, state: &mut State, now: u64, cost: u64) -> Option<(Step, Option<u64>)>;

    /// The most entries that a log needs room for, without places booked ahead.
    fn most_entries(&self) -> usize;

    /// The log of a state, where this limit keeps one.
    fn log_of<'s>(&self, state: &'s mut State) -> Option<&'s mut Log>;

    /// Drops what a log holds in vain, and nothing else.
    fn tidy_log(&self, state: &mut State, now: u64);

    /// A part of the limit, for parts that may change from one request to the next. Rows that one part of a bucket or of a
    /// fixed window has written mean the same in every other part, unless the limit is carried: then requests are taken over
    /// one for one. `None` if the part admits nothing.
    ///
    /// The rate of a bucket is divided exactly. What it holds at once is divided too, and is at least one request. The
    /// counts of windows, logs, stepped refills and concurrency are rounded down, but not below `least`.
    ///
    /// # Errors
    ///
    /// If the part would not stay exact.
    fn try_part(&self, part: Part, least: u64) -> Result<Option<Self>, LimitError>;

    /// The period of a window that begins when the wall clock says so, in microseconds.
    fn aligned_window(&self) -> Option<u64>;

    /// Makes a charge of `charged` that was made elsewhere into one of `spent`, as far as a state can hold it
    /// that counts less than that: a bucket up to twice its size, so that what was spent faster than it drains
    /// is made up for; everything else until it is full. What is held is not followed: nobody would give it
    /// back.
    fn follow_charge(&self, state: &mut State, now: u64, charged: u64, spent: u64);

    /// Whether a status says more than is counted by following each charge: where something drains, what is spent
    /// elsewhere counts here too. Of a window, the charges that are followed are enough.
    fn can_follow(&self, status: &LimitStatus) -> bool;

    /// Counts no less than `status` says of another limit, of which this is a part or the whole: a part that is
    /// used as much. Beyond half of it up to twice its size, since a store that has all to give when it is back
    /// must not find that its second has given it as well.
    fn follow_status(&self, state: &mut State, now: u64, status: &LimitStatus);
}

impl LimitInternals for Limit {
    // In a loop over limits, the compiler would load all of the one that is looked for before it compares the first.
    #[inline(never)]
    fn is_same(&self, other: &Self) -> bool {
        // In this order they lie one after another, and are compared several at a time.
        self.count == other.count
            && self.period == other.period
            && self.ban == other.ban
            && self.after == other.after
            && self.within == other.within
            && self.gap == other.gap
            && self.id == other.id
            && self.soft == other.soft
            && self.count_refused == other.count_refused
            && self.shadow == other.shadow
            && self.when_full == other.when_full
            && self.spec == other.spec
    }

    #[inline]
    fn is_named_like(&self, other: &Self) -> bool {
        let of_rate = |limit: &Self| (limit.count, limit.period, limit.spec);
        self.name == other.name && (self.name != Name::NONE || of_rate(self) == of_rate(other))
    }

    #[inline]
    fn is_plain(&self) -> bool {
        self.plain
    }

    #[inline]
    fn is_plain_account(&self) -> bool {
        self.carried_words
    }

    #[inline]
    fn has_extra_state(&self) -> bool {
        Self::has_extra_state(self)
    }

    #[inline]
    fn has_own_queue(&self) -> bool {
        matches!(self.spec, AlgorithmSpec::LeakyBucket { .. })
    }

    fn each_name_piece(&self, each: &mut impl FnMut(NamePiece<'_>)) {
        match self.own_name() {
            Some(name) => each(NamePiece::Text(name)),
            None => self.each_rate_piece(each),
        }
    }

    #[inline]
    fn one_word_bucket(&self) -> Option<&TokenBucket> {
        self.plain_bucket().filter(|bucket| bucket.drains_one_per_microsecond())
    }

    #[inline]
    fn plain_bucket(&self) -> Option<&TokenBucket> {
        let Algorithm::TokenBucket(bucket) = &self.algorithm else { return None };
        self.plain.then_some(bucket)
    }

    #[inline]
    fn fits_one_word(&self) -> bool {
        let Algorithm::TokenBucket(bucket) = &self.algorithm else { return false };
        bucket.drains_one_per_microsecond() && !self.has_extra_state() && !self.has_own_queue()
    }

    fn as_written(&self, words: Words, receipt: &Receipt) -> Words {
        // A row of one word keeps only the moment at which its debt is gone, which both words together say.
        let is_same =
            self.fits_one_word() && words[0] + words[1] == receipt.words[0] + receipt.words[1];
        if is_same { receipt.words } else { words }
    }

    #[inline]
    fn words_fresh_in(&self, words: Words, now: u64) -> Option<u64> {
        self.algorithm.fresh_in(&State::of(words), now)
    }

    fn fresh_in_micros(&self, state: &State, now: u64) -> Option<u64> {
        self.fresh_in(state, now).map(|time| time.as_micros() as u64)
    }

    #[inline]
    fn since(&self, words: Words) -> u64 {
        self.algorithm.since(words)
    }

    #[inline]
    fn step(&self, words: Words, now: u64, cost: u64) -> (Step, Option<u64>) {
        self.algorithm.step(words, now, cost)
    }

    #[inline]
    fn step_account(&self, state: &mut State, now: u64, cost: u64) -> Option<(Step, Option<u64>)> {
        let is_in_order = state.written.since <= now && self.algorithm.since(state.words) <= now;
        if !is_in_order || !state.is_account_of(self.algorithm.parameters()) {
            return None;
        }
        // Neither a charge nor a refusal has anything to do but what it does to two words.
        let (step, fresh_in) = self.algorithm.step(state.words, now, cost);
        state.words = step.words();
        Some((step.of_account(), fresh_in))
    }

    fn most_entries(&self) -> usize {
        let Algorithm::SlidingLog(log) = self.algorithm else { return 0 };
        usize::try_from(log.entries()).unwrap_or(usize::MAX)
    }

    fn log_of<'s>(&self, state: &'s mut State) -> Option<&'s mut Log> {
        let AlgorithmSpec::SlidingLog { .. } = self.spec else { return None };
        Some(state.log.get_or_insert_default())
    }

    fn tidy_log(&self, state: &mut State, now: u64) {
        if self.most_entries() > 0 {
            self.algorithm.tidy(state, now);
        }
    }

    fn try_part(&self, part: Part, least: u64) -> Result<Option<Self>, LimitError> {
        let mut portion = *self;
        if part == Part::WHOLE {
            return Ok(Some(portion));
        }
        let count = part.portion(self.count).max(least);
        // A bucket has a rate, however small its part is: its requests become heavier instead of its count smaller.
        if count == 0 && !matches!(self.algorithm, Algorithm::TokenBucket(_)) {
            return Ok(None);
        }
        portion.algorithm = match self.algorithm {
            Algorithm::TokenBucket(bucket) => {
                let bucket = bucket.in_part(part).ok_or(TOO_SMALL)?;
                let (size, leave) = (bucket.size(), bucket.leave_at_once());
                let is_leaky = matches!(self.spec, AlgorithmSpec::LeakyBucket { .. });
                portion.spec = match is_leaky {
                    true => AlgorithmSpec::LeakyBucket { queue: size - 1, delay_after: leave - 1 },
                    false => AlgorithmSpec::TokenBucket { burst: size },
                };
                Algorithm::TokenBucket(bucket)
            }
            Algorithm::SteppedBucket(_) => {
                let burst = part.portion(self.capacity()).max(least);
                if burst == 0 {
                    return Ok(None);
                }
                portion.spec = AlgorithmSpec::SteppedBucket { burst };
                Algorithm::SteppedBucket(SteppedBucket::new(count, self.period, burst))
            }
            Algorithm::FixedWindow(window) => Algorithm::FixedWindow(window.with_count(count)),
            Algorithm::SlidingWindow(window) => Algorithm::SlidingWindow(window.with_count(count)),
            Algorithm::SlidingLog(log) => Algorithm::SlidingLog(SlidingLog { count, ..log }),
            Algorithm::Concurrency(_) => Algorithm::Concurrency(Concurrency::new(count)),
        };
        if !matches!(self.algorithm, Algorithm::TokenBucket(_)) {
            portion.count = count;
        }
        portion.soft =
            self.soft.map(|soft| part.portion(soft)).filter(|soft| *soft < portion.capacity());
        Ok(Some(portion))
    }

    fn aligned_window(&self) -> Option<u64> {
        let AlgorithmSpec::FixedWindow { from_first } = self.spec else { return None };
        (!from_first).then_some(self.period)
    }

    fn follow_charge(&self, state: &mut State, now: u64, charged: u64, spent: u64) {
        if self.is_held() {
            return;
        }
        if spent <= charged {
            let latest = latest(state);
            self.settle(state, now, &latest, charged, spent);
            return;
        }
        let more = (spent - charged).min(room(self, state, bounded(now)));
        if more > 0 {
            self.settle(state, now, &Receipt::default(), 0, more);
        }
    }

    fn can_follow(&self, status: &LimitStatus) -> bool {
        !status.uncounted && is_bucket(self) && is_bucket(&status.limit)
    }

    fn follow_status(&self, state: &mut State, now: u64, status: &LimitStatus) {
        let (Algorithm::TokenBucket(part), Algorithm::TokenBucket(whole)) =
            (&self.algorithm, &status.limit.algorithm)
        else {
            return;
        };
        let now = bounded(now);
        let (used, all) = status.reset.map_or((0, 1), |reset| whole.used_until(reset));
        // `all` is below 2^73 and a size below 2^52, so that twice their product fits.
        let size = u128::from(part.size());
        let spent = (size * used / all).max((size * (3 * used).saturating_sub(all)).div_ceil(all));
        let known = (2 * part.size()).saturating_sub(part.room_twice(state.words, now));
        let more = u64::try_from(spent).unwrap_or(u64::MAX).saturating_sub(known);
        let more = more.min(room(self, state, now));
        if more > 0 {
            self.settle(state, now, &Receipt::default(), 0, more);
        }
    }
}

impl Limit {
    /// The part of the limit with these bits. It existed when it decided.
    pub(crate) fn in_part(&self, bits: u32) -> Cow<'_, Self> {
        let Some(part) = Part::from_bits(bits) else { return Cow::Borrowed(self) };
        match self.try_part(part, 0) {
            Ok(Some(portion)) => Cow::Owned(portion),
            _ => Cow::Borrowed(self),
        }
    }
}

const TOO_SMALL: LimitError = LimitError::new(
    "the part is too small to stay exact: the time in which it admits one request times the burst must stay below \
     2^52 microseconds",
);

fn is_bucket(limit: &Limit) -> bool {
    matches!(limit.algorithm, Algorithm::TokenBucket(_))
}

/// How much more can be counted of what was decided elsewhere.
fn room(limit: &Limit, state: &State, now: u64) -> u64 {
    if let (Algorithm::TokenBucket(bucket), false) = (&limit.algorithm, limit.carried) {
        return bucket.room_twice(state.words, now);
    }
    LimitStatus::left(limit, state, now, limit.is_banned(state, now)).0
}

/// The receipt of the latest charge.
fn latest(state: &State) -> Receipt {
    let newest = state.log.as_deref().and_then(|log| log.newest());
    let words: Words = newest.map_or(state.words, |stamp| [stamp, 0]);
    Receipt { since: state.written.since, ..Receipt::from_words(words) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NOW: u64 = 1_700_000_000_000_000;
    const MINUTE: Duration = Duration::from_secs(60);

    fn limits() -> [Limit; 6] {
        [
            Limit::per_minute(8),
            Limit::per_minute(8).refill(8, MINUTE),
            Limit::fixed_window(8, MINUTE),
            Limit::sliding_log(8, MINUTE),
            Limit::sliding_window(8, MINUTE),
            Limit::per_minute(8).named("a").carried(),
        ]
    }

    fn left(limit: Limit, state: &State) -> Option<u64> {
        limit.peek(state, NOW, 1).remaining()
    }

    #[test]
    fn what_was_charged_and_given_back_elsewhere_counts_here() {
        for limit in limits() {
            let mut state = limit.fresh();
            limit.follow_charge(&mut state, NOW, 0, 3);
            assert_eq!(left(limit, &state), Some(5), "{limit}");
            limit.follow_charge(&mut state, NOW, 3, 1);
            assert_eq!(left(limit, &state), Some(7), "{limit}");
            limit.follow_charge(&mut state, NOW, 1, 2);
            assert_eq!(left(limit, &state), Some(6), "{limit}");
        }
    }

    #[test]
    fn a_part_that_is_followed_beyond_its_size_is_free_again_after_twice_its_time() {
        for limit in limits() {
            let mut state = limit.fresh();
            for _ in 0..1_000 {
                limit.follow_charge(&mut state, NOW, 0, 5);
            }
            assert_eq!(left(limit, &state), Some(0), "{limit}");
            let fresh = limit.fresh_in(&state, NOW).expect("time heals it");
            assert!(fresh <= 2 * MINUTE, "{limit}: {fresh:?}");
        }
    }

    #[test]
    fn a_part_is_used_as_much_as_the_whole() {
        let (whole, part) = (Limit::per_minute(100), Limit::per_minute(20));
        // Of the whole, what is spent; of the part, what is left, and what is left a third of the time later.
        for (spent, left_now, left_later) in
            [(0, 20, 20), (5, 19, 20), (50, 10, 16), (75, 0, 1), (100, 0, 0)]
        {
            let (mut used, mut state) = (whole.fresh(), part.fresh());
            let answer = whole.take(&mut used, NOW, spent);
            let status = answer.statuses().next().expect("one limit").clone();
            assert!(part.can_follow(&status));
            // Twice is no more than once.
            part.follow_status(&mut state, NOW, &status);
            part.follow_status(&mut state, NOW, &status);
            assert_eq!(left(part, &state), Some(left_now), "{spent}");
            let later = NOW + 20_000_000;
            assert_eq!(part.peek(&state, later, 1).remaining(), Some(left_later), "{spent}");
        }
        let window = Limit::fixed_window(100, MINUTE);
        assert!(!window.can_follow(&LimitStatus::fresh(window)), "nothing drains");
    }

    #[test]
    fn what_is_held_elsewhere_is_not_held_here() {
        let limit = Limit::concurrent(3);
        let mut state = limit.fresh();
        limit.follow_charge(&mut state, NOW, 0, 2);
        assert_eq!(left(limit, &state), Some(3));
    }
}
