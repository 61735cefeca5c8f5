//! A store of two: one counts limits of a second, which change at every call, and the other counts all others.

use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::{Answer, Charge, Debit, Outcome, Receipt, remote};
use sluicegate_core::clock::Clock;
use sluicegate_core::limit::{LimitError, LimitStatus, Verdict};
use sluicegate_core::store::{BoxStoreFuture, Store, StoreError};

/// Counts limits whose period is a second in one store, and all others in another. Clones are the same store.
///
/// A charge of both kinds is asked of one store after the other, all or none: what the first has charged is given back if
/// the second one refuses, or fails.
#[derive(Debug, Clone)]
pub(crate) struct PerSecond<S> {
    pub(crate) second: S,
    pub(crate) others: S,
}

type Ask<S> = fn(&S, &Charge) -> Answer<<S as Store>::Future>;

impl<S> PerSecond<S>
where
    S: Store<Future: Send + 'static> + Clone + Send + Sync + 'static,
{
    fn of(&self, limit: &Limit) -> &S {
        if is_of_a_second(limit) { &self.second } else { &self.others }
    }

    /// Asks the store of all limits of a charge. `None` if they are of both.
    fn ask_one(&self, ask: Ask<S>, charge: &Charge) -> Option<Answer<BoxStoreFuture>> {
        let seconds = charge.debits().filter(|debit| is_of_a_second(&debit.limit)).count();
        let answer = match seconds {
            0 => ask(&self.others, charge),
            all if all == charge.len() => ask(&self.second, charge),
            _ => return None,
        };
        Some(match answer {
            Answer::Now(outcome) => Answer::Now(outcome),
            Answer::Later(future) => Answer::Later(Box::pin(future)),
        })
    }

    fn ask(&self, ask: Ask<S>, charge: &Charge) -> Answer<BoxStoreFuture> {
        self.ask_one(ask, charge).unwrap_or_else(|| {
            let (stores, charge) = (self.clone(), charge.clone());
            Answer::Later(Box::pin(async move { stores.ask_both(ask, &charge).await }))
        })
    }

    /// Asks both stores without charging, or resets both.
    async fn ask_both(&self, ask: Ask<S>, charge: &Charge) -> Result<Outcome, StoreError> {
        let [others, seconds] = divided(charge);
        let first = told(ask(&self.others, &others), &others).await?;
        let second = told(ask(&self.second, &seconds), &seconds).await?;
        Ok(joined(charge, [first, second]))
    }

    /// Charges both stores, or none.
    async fn take_both(&self, charge: &Charge) -> Result<Outcome, StoreError> {
        let [others, seconds] = divided(charge);
        let first = told(self.others.take(&others), &others).await?;
        if !first.0.is_admitted() {
            // It is refused, whatever the second store would have said: it only says what is left.
            let second = told(self.second.peek(&seconds), &seconds).await.ok();
            let left = second.map_or_else(|| fresh(&seconds), |second| second.1);
            return Ok(joined(charge, [first, (NOW, left)]));
        }
        let mut charged = Charged { store: &self.others, paid: Vec::new() };
        let receipts = first.1.iter().map(|status| status.receipt);
        charged.paid.extend(others.debits().cloned().zip(receipts));
        // If this fails, or the future is dropped here, `charged` gives back.
        let second = told(self.second.take(&seconds), &seconds).await?;
        if second.0.is_admitted() {
            charged.paid.clear();
            return Ok(joined(charge, [first, second]));
        }
        drop(charged);
        // A refusal must not take more calls than an admission, or it would be too late where that is just in time.
        Ok(joined(charge, [(NOW, given_back(first.1)), second]))
    }
}

const NOW: Verdict = Verdict::Admit { wait: Duration::ZERO };

fn is_of_a_second(limit: &Limit) -> bool {
    limit.period() == Some(Duration::from_secs(1))
}

/// The part of each store, without patience: a place in one store would be a place at another moment.
fn divided(charge: &Charge) -> [Charge; 2] {
    [false, true].map(|is_of_seconds| {
        let mut part = Charge::new();
        for debit in charge.debits().filter(|debit| is_of_a_second(&debit.limit) == is_of_seconds) {
            let added = part.add_debit(debit.clone());
            added.expect("a part is no larger than the charge");
        }
        part
    })
}

/// What a store says of its part.
type Told = (Verdict, Vec<LimitStatus>);

/// What a store would say that knows nothing.
fn fresh(part: &Charge) -> Vec<LimitStatus> {
    part.debits().map(|debit| LimitStatus::fresh(debit.limit)).collect()
}

/// What is left once a charge is given back. Times stay as they were with it.
fn given_back(mut statuses: Vec<LimitStatus>) -> Vec<LimitStatus> {
    for status in &mut statuses {
        let remaining = status.remaining.saturating_add(std::mem::take(&mut status.charged));
        status.remaining = remaining.min(status.limit.capacity());
        status.receipt = Receipt::default();
    }
    statuses
}

async fn told<F>(answer: Answer<F>, part: &Charge) -> Result<Told, StoreError>
where
    F: Future<Output = Result<Outcome, StoreError>>,
{
    let outcome = match answer {
        Answer::Now(outcome) => outcome,
        Answer::Later(future) => future.await,
    }?;
    Ok((outcome.verdict(), outcome.decision(part).statuses().cloned().collect()))
}

/// The outcome in the order of the whole charge.
fn joined(charge: &Charge, [others, seconds]: [Told; 2]) -> Outcome {
    let verdict = remote::joined([others.0, seconds.0].into_iter());
    let (mut others, mut seconds) = (others.1.into_iter(), seconds.1.into_iter());
    let statuses = charge.debits().filter_map(|debit| {
        if is_of_a_second(&debit.limit) { seconds.next() } else { others.next() }
    });
    Outcome::from_parts(verdict, statuses)
}

/// What one store has charged. It is given back when this is dropped.
struct Charged<'s, S: Store> {
    store: &'s S,
    paid: Vec<(Debit, Receipt)>,
}

impl<S: Store> Drop for Charged<'_, S> {
    fn drop(&mut self) {
        for (debit, receipt) in &self.paid {
            self.store.settle(debit, receipt, 0);
        }
    }
}

impl<S> Store for PerSecond<S>
where
    S: Store<Future: Send + 'static> + Clone + Send + Sync + 'static,
{
    type Future = BoxStoreFuture;

    fn take(&self, charge: &Charge) -> Answer<BoxStoreFuture> {
        self.ask_one(S::take, charge).unwrap_or_else(|| {
            let (stores, charge) = (self.clone(), charge.clone());
            Answer::Later(Box::pin(async move { stores.take_both(&charge).await }))
        })
    }

    fn peek(&self, charge: &Charge) -> Answer<BoxStoreFuture> {
        self.ask(S::peek, charge)
    }

    fn reset(&self, charge: &Charge) -> Answer<BoxStoreFuture> {
        self.ask(S::reset, charge)
    }

    fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) {
        self.of(&debit.limit).settle(debit, receipt, spent);
    }

    fn follow(&self, debit: &Debit, charged: u64, spent: u64) {
        self.of(&debit.limit).follow(debit, charged, spent);
    }

    fn follow_status(&self, debit: &Debit, status: &LimitStatus) {
        self.of(&debit.limit).follow_status(debit, status);
    }

    fn clock(&self) -> Clock {
        self.others.clock()
    }

    fn check(&self, limit: &Limit) -> Result<(), LimitError> {
        self.of(limit).check(limit)
    }
}

#[cfg(test)]
mod tests {
    use sluicegate_core::key::KeyBuf;
    use sluicegate_core::{ManualClock, Memory};

    use super::*;

    const SECOND: &str = "fixed 2/s named a";
    const MINUTE: &str = "fixed 3/min named b";

    fn stores() -> PerSecond<Memory> {
        let clock = ManualClock::new();
        let memory = || Memory::builder().clock(&clock).build();
        PerSecond { second: memory(), others: memory() }
    }

    fn charge(limits: &[&str]) -> Charge {
        let mut charge = Charge::new();
        for limit in limits {
            let limit = limit.parse().expect("a limit");
            charge.add(limit, KeyBuf::of("alice"), 1).expect("few limits");
        }
        charge
    }

    /// Whether the charge is admitted, and what is left of each limit.
    async fn take(stores: &PerSecond<Memory>, limits: &[&str]) -> (bool, Vec<u64>) {
        let charge = charge(limits);
        let (verdict, statuses) = told(stores.take(&charge), &charge).await.expect("a memory");
        (verdict.is_admitted(), statuses.iter().map(|status| status.remaining).collect())
    }

    #[tokio::test]
    async fn limits_of_a_second_are_counted_in_their_store_and_others_in_the_other() {
        let stores = stores();
        assert_eq!(take(&stores, &[MINUTE]).await, (true, vec![2]));
        assert_eq!((stores.second.about_len(), stores.others.about_len()), (0, 1));
        assert_eq!(take(&stores, &[SECOND]).await, (true, vec![1]));
        assert_eq!((stores.second.about_len(), stores.others.about_len()), (1, 1));
    }

    #[tokio::test]
    async fn a_charge_of_both_stores_is_charged_by_both_or_by_none() {
        let stores = stores();
        assert_eq!(take(&stores, &[SECOND, MINUTE]).await, (true, vec![1, 2]));
        assert_eq!(take(&stores, &[MINUTE, SECOND]).await, (true, vec![1, 0]));
        // The second is spent, and the minute has not paid for it.
        assert_eq!(take(&stores, &[MINUTE, SECOND]).await, (false, vec![1, 0]));
        assert_eq!(take(&stores, &[MINUTE]).await, (true, vec![0]));
        stores.second.reset(&charge(&[SECOND])).now().expect("a memory");
        // And the other way round.
        assert_eq!(take(&stores, &[SECOND, MINUTE]).await, (false, vec![2, 0]));
        // Both are asked and reset together.
        let both = charge(&[SECOND, MINUTE]);
        let (verdict, _) = told(stores.peek(&both), &both).await.expect("a memory");
        assert!(!verdict.is_admitted());
        told(stores.reset(&both), &both).await.expect("a memory");
        assert_eq!(take(&stores, &[SECOND, MINUTE]).await, (true, vec![1, 2]));
    }

    #[tokio::test]
    async fn what_was_charged_is_given_back_if_nobody_waits_for_the_rest() {
        let stores = stores();
        let both = charge(&[SECOND, MINUTE]);
        drop(stores.take(&both));
        assert_eq!(take(&stores, &[SECOND, MINUTE]).await, (true, vec![1, 2]));
        let paid = told(stores.others.take(&charge(&[MINUTE])), &charge(&[MINUTE])).await;
        let paid = paid.expect("a memory").1.into_iter().map(|status| status.receipt);
        let paid = charge(&[MINUTE]).debits().cloned().zip(paid).collect();
        drop(Charged { store: &stores.others, paid });
        assert_eq!(take(&stores, &[MINUTE]).await, (true, vec![1]));
    }

    /// A store that is gone for everything but charges.
    #[derive(Debug, Clone)]
    struct Takes(Memory);

    impl Store for Takes {
        type Future = BoxStoreFuture;

        fn take(&self, charge: &Charge) -> Answer<BoxStoreFuture> {
            Answer::Now(self.0.take(charge).now())
        }

        fn peek(&self, _: &Charge) -> Answer<BoxStoreFuture> {
            Answer::Now(Err(StoreError::unavailable("it is away")))
        }

        fn reset(&self, charge: &Charge) -> Answer<BoxStoreFuture> {
            self.peek(charge)
        }

        fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) {
            self.0.settle(debit, receipt, spent);
        }

        fn follow(&self, _: &Debit, _: u64, _: u64) {}

        fn follow_status(&self, _: &Debit, _: &LimitStatus) {}

        fn clock(&self) -> Clock {
            self.0.clock()
        }

        fn check(&self, limit: &Limit) -> Result<(), LimitError> {
            self.0.check(limit)
        }
    }

    /// Otherwise it would be an error, which lets the request pass.
    #[tokio::test]
    async fn what_one_store_has_refused_stays_refused_though_the_other_does_not_answer() {
        let memory = stores();
        let stores = PerSecond { second: Takes(memory.second), others: Takes(memory.others) };
        let both = charge(&[SECOND, MINUTE]);
        let take = async || {
            let (verdict, statuses) = told(stores.take(&both), &both).await.expect("an answer");
            let left: Vec<_> = statuses.iter().map(|status| status.remaining).collect();
            (verdict.is_admitted(), left)
        };
        assert_eq!(take().await, (true, vec![1, 2]));
        assert_eq!(take().await, (true, vec![0, 1]));
        // Refused by the limit of a second, and given back to the other.
        assert_eq!(take().await, (false, vec![0, 1]));
        let minute = charge(&[MINUTE]);
        assert!(told(stores.take(&minute), &minute).await.expect("an answer").0.is_admitted());
        // Refused by the limit of a minute. The other one does not tell what is left.
        assert_eq!(take().await, (false, vec![2, 0]));
    }
}
