//! What was spent is carried over when the numbers of a limit change. Each set of numbers keeps an account of its own
//! in the row. Whatever one account admits is charged to all of them.
//!
//! A request is admitted by the account of its own numbers, which is an ordinary bucket or window. It is then charged
//! to all other accounts, up to their capacity. So the requests admitted by one set of numbers never exceed these
//! numbers, whatever other numbers are used in between. All admissions together stay within the most generous
//! numbers. A refusal changes nothing, and a client waits no longer than its own numbers require. Converting one debt
//! between numbers cannot give all of that: what was spent under tight numbers would drain at the generous rate
//! between two requests.
//!
//! A new account takes over the largest amount spent in any other account, token for token. It is written even if the
//! request is refused, so that the announced moment does not change. An account that has recovered is kept while
//! there is room. A fresh one would take over what other accounts have spent, so a refusal would have changed
//! something for its numbers. The account of a sliding window serves every count, because both counts mean the same.
//! A ninth account replaces the one that recovers first. Until that one would have recovered, a new account begins
//! with at least what was spent in that one, and with all that was charged since: nothing of it drains, because it is
//! unknown by which numbers it would. That is too strict, never too generous. Buckets are charged until they are full, fractions of a
//! token included, because a fraction left out at each change adds up to a second rate.
//!
//! The price: while generous numbers admit more than the tight rate, the tight account stays full, so a request under
//! the tight numbers is admitted only after a pause of its own interval.
//!
//! A charge is given back to the account that admitted it, as without carrying over. The other accounts get back what
//! the charge added to them, as if that had drained first. An account that began after the charge gets nothing back.
//! Neither does an account that has since been too full for a charge of other numbers: it is then unknown how much of
//! earlier charges it took, and giving that back would mint credit. Logs and concurrency limits have no accounts and
//! always give back.

use crate::exact::{bounded, time_left};
use crate::limit::Limit;
use crate::state::{
    Account, MOST_ACCOUNTS, NO_PARAMETERS, OtherAccounts, Receipt, State, Words, WrittenBy,
};

impl Limit {
    /// Moves the account of this limit's numbers into the state's own words. Begins one if there is none.
    pub(crate) fn meet(&self, state: &mut State, now: u64) {
        let parameters = self.algorithm.parameters();
        if !self.carried || parameters == NO_PARAMETERS {
            return;
        }
        let is_own = state.written.parameters == parameters;
        // The row has this account and no other. Nearly every row is like this, and nothing more is looked at.
        if is_own && state.others.as_ref().is_none_or(|others| others.accounts.is_empty()) {
            return;
        }
        if self.fresh_in_micros(state, now) == Some(0) {
            // A store may have forgotten such a row already, so it is treated as forgotten in either case.
            if let Some(others) = &mut state.others {
                others.accounts.clear();
                (others.shut, others.owed) = ([0; 2], 0);
            }
            if !is_own {
                (state.words, state.written) = ([0; 2], WrittenBy::default());
            }
        }
        if state.written.parameters == NO_PARAMETERS {
            state.written = WrittenBy { parameters, since: now };
            return;
        }
        if !self.find(state) {
            let front = Account { words: state.words, written: state.written };
            let own = self.begin(front, state.others.get_or_insert_default(), now);
            (state.words, state.written) = (own.words, own.written);
        }
    }

    /// Moves the account of this limit's numbers into the state's own words, if there is one.
    fn find(&self, state: &mut State) -> bool {
        let parameters = self.algorithm.parameters();
        if state.written.parameters == parameters {
            return true;
        }
        let others = state.others.iter_mut().flat_map(|others| &mut others.accounts);
        let Some(own) = { others }.find(|other| other.written.parameters == parameters) else {
            return false;
        };
        // Swapped and not copied: the account that was in front takes the place of the one that comes forward, so none
        // is lost and none is there twice.
        core::mem::swap(&mut own.words, &mut state.words);
        core::mem::swap(&mut own.written, &mut state.written);
        true
    }

    /// Begins an account that takes over what the others have spent. `front`, the account in the state's own words,
    /// joins the others.
    fn begin(&self, front: Account, others: &mut OtherAccounts, now: u64) -> Account {
        let OtherAccounts { accounts, shut, owed } = others;
        // Receipts of charges that this account takes over only in part must not be given back to it, so it begins
        // later than all of them, also where the clock has not moved on.
        let latest = accounts.iter().map(|other| other.written.since).fold(now, u64::max);
        // Later than every charge that is not taken over in full.
        let since = bounded(latest.max(front.written.since) + 1);
        // The fullest account decides: the others hold a part of the same charges, because each admission is charged to
        // all. Their sum would count a charge several times.
        let (mut words, mut is_same) =
            self.algorithm.taken_over(front.words, front.written.parameters, now);
        let mut begun = if is_same { front.written.since } else { since };
        for other in accounts.iter() {
            let taken = self.algorithm.taken_over(other.words, other.written.parameters, now);
            // By any of these numbers, what is spent is in the second word.
            if taken.0[1] > words[1] {
                (words, is_same) = taken;
                begun = if is_same { other.written.since } else { since };
            }
        }
        // What an account held that had to make room is known only as a number of tokens.
        if time_left(*shut, now) > 0 {
            let least = self.algorithm.spent_up_to_all(now, *owed);
            if least[1] > words[1] {
                (words, begun) = (least, since);
            }
        }
        let fresh_in = |account: &Account| {
            let algorithm = self.algorithm.with_parameters(account.written.parameters);
            algorithm.fresh_in(&State::of(account.words), now).unwrap_or(0)
        };
        // An account that has recovered is kept while there is room. If it began anew, it would take over what others
        // have spent, and a refusal would have changed something for its numbers.
        if accounts.len() == MOST_ACCOUNTS {
            accounts.retain(|account| fresh_in(account) > 0);
        }
        // Still full: the account that recovers first goes, because it would keep the least for the shortest time.
        let is_full = accounts.len() == MOST_ACCOUNTS;
        let mut joins = Some(front).filter(|front| !is_full || fresh_in(front) > 0);
        if let (true, Some(front)) = (is_full, &joins) {
            let soonest =
                accounts.iter().copied().enumerate().map(|(at, one)| (fresh_in(&one), at));
            let (ends, at) = soonest.min().unwrap_or_default();
            let own = fresh_in(front);
            // The account that makes room: one of the others, or the one that would join them.
            let gone = match ends <= own {
                true => accounts.remove(at),
                false => *front,
            };
            if ends > own {
                joins = None;
            }
            let algorithm = self.algorithm.with_parameters(gone.written.parameters);
            // Two that made room may have held different charges. The larger one is a bound for both, and so is the
            // later end of their times.
            let before = if time_left(*shut, now) > 0 { *owed } else { 0 };
            *owed = before.max(algorithm.spent(gone.words, now));
            *shut = [now, time_left(*shut, now).max(ends.min(own))];
        }
        accounts.extend(joins);
        Account {
            words,
            written: WrittenBy { parameters: self.algorithm.parameters(), since: begun },
        }
    }

    /// Charges the other accounts with what this one admitted. Returns what the receipt needs: when it was charged,
    /// never before the account began, and whether every account took all of it.
    pub(crate) fn charge_others(&self, state: &mut State, now: u64, cost: u64) -> (u64, bool) {
        if !self.carried || self.algorithm.parameters() == NO_PARAMETERS {
            return (0, false);
        }
        let since = now.max(state.written.since);
        let Some(others) = &mut state.others else { return (since, true) };
        // The account that made room would have been charged as well, and nobody knows what would have drained of it.
        if time_left(others.shut, now) > 0 {
            others.owed = bounded(others.owed.saturating_add(cost));
        }
        let mut took_all = true;
        for other in &mut others.accounts {
            let algorithm = self.algorithm.with_parameters(other.written.parameters);
            // Up to its capacity, and not beyond: debts that these numbers would never have admitted must not keep
            // their clients out for longer than their own limit does.
            if !algorithm.charge_up_to_all(&mut other.words, now, cost) {
                took_all = false;
                // Whether an earlier charge was taken in full is unknown from here on.
                other.written.since = bounded(now.max(other.written.since) + 1);
            }
        }
        (since, took_all)
    }

    /// Gives back to the other accounts what they took of a charge.
    pub(crate) fn give_others(
        &self,
        state: &mut State,
        receipt: &Receipt,
        now: u64,
        cost: u64,
        back: u64,
    ) {
        // An account that was too full took only a part, and no receipt says how much.
        let Some(others) = state.others.as_mut().filter(|_| receipt.by_all) else { return };
        for other in &mut others.accounts {
            if other.written.since <= receipt.since {
                let algorithm = self.algorithm.with_parameters(other.written.parameters);
                // Not from `since`, which may be later: less would have drained by then.
                algorithm.give_charged(&mut other.words, receipt.at, now, cost, back);
            }
        }
    }

    /// Whether the state still has the account that this receipt's charge was made to. If so, the account is moved
    /// into the state's own words.
    pub(crate) fn knows(&self, state: &mut State, receipt: &Receipt) -> bool {
        !self.carried || self.find(state) && state.written.since <= receipt.since
    }

    /// Microseconds until every account has recovered; `None` if that happens only when a held place is given back.
    pub(crate) fn accounts_fresh_in(&self, state: &State, now: u64) -> Option<u64> {
        if !self.carried || state.written.parameters == NO_PARAMETERS {
            return self.algorithm.fresh_in(state, now);
        }
        let fresh_in = |words: Words, written: WrittenBy| {
            self.algorithm
                .with_parameters(written.parameters)
                .fresh_in(&State::of(words), now)
                .unwrap_or(0)
        };
        let front = fresh_in(state.words, state.written);
        let Some(others) = &state.others else { return Some(front) };
        let others_fresh = others.accounts.iter().map(|other| fresh_in(other.words, other.written));
        Some(others_fresh.fold(front.max(time_left(others.shut, now)), u64::max))
    }

    /// Adjusts the other accounts to a clock that stepped back.
    pub(crate) fn follow_others(&self, state: &mut State, now: u64) {
        let Some(others) = &mut state.others else { return };
        for other in &mut others.accounts {
            let mut of = State::of(other.words);
            self.algorithm.with_parameters(other.written.parameters).tidy(&mut of, now);
            other.words = of.words;
        }
        others.shut[0] = others.shut[0].min(now);
    }
}
