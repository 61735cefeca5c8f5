use std::fmt;
use std::future::Ready;
use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::{Answer, Charge, Debit, Outcome, Receipt, remote};
use sluicegate_core::clock::Clock;
use sluicegate_core::limit::{LimitError, LimitStatus, Verdict, WhenFull};
use sluicegate_core::store::{Store, StoreError};

use crate::bucket::{Answer as BucketAnswer, Bucket, Row, micros};
use crate::table::{Find, RowSlot, Table};

/// The default capacity in keys.
const KEYS: usize = 1 << 18;

/// A store in which governor's token bucket decides.
///
/// The table is part of this crate. It holds a bounded number of keys, removes some idle keys whenever a key is added, and
/// never removes a key that is being limited. If there is no room for a new key, the other limits of the request are
/// charged all the same, and each limit decides what happens to the key ([`Limit::answer_when_full`]). There are no rows
/// that keys share: a limit that would count new keys together refuses them, unless another limit of the request refuses
/// it anyway. A key takes about 250 bytes.
///
/// Clones are the same store.
#[derive(Clone)]
pub struct Governor(Arc<Inner>);

struct Inner {
    clock: Clock,
    table: Table,
}

impl Governor {
    /// Makes a store for 262,144 keys that uses the machine's clock.
    pub fn new() -> Self {
        Self::with_capacity(KEYS)
    }

    /// Makes a store for `keys` keys, each with one limit.
    ///
    /// # Panics
    ///
    /// When `keys` is zero.
    #[track_caller]
    pub fn with_capacity(keys: usize) -> Self {
        Self::with_clock(keys, Clock::machine())
    }

    /// Makes a store for `keys` keys that uses `clock`.
    ///
    /// ```
    /// use sluicegate_core::ManualClock;
    /// use sluicegate_governor::Governor;
    ///
    /// let clock = ManualClock::new();
    /// let store = Governor::with_clock(1_000, &clock);
    /// ```
    ///
    /// # Panics
    ///
    /// When `keys` is zero.
    #[track_caller]
    pub fn with_clock(keys: usize, clock: impl Into<Clock>) -> Self {
        assert!(keys > 0, "the capacity is 0 keys");
        Self(Arc::new(Inner { clock: clock.into(), table: Table::new(keys) }))
    }

    /// The number of keys in the table. Some may be idle.
    pub fn len(&self) -> usize {
        self.0.table.len()
    }

    /// Whether the table has no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn now(&self) -> u64 {
        self.0.clock.now().saturating_mul(1_000)
    }

    /// Replaces the row of a debit.
    fn change(&self, debit: &Debit, find: Find, change: impl Fn(Row, u64) -> Row) {
        let now = self.now();
        let charge = Charge::of(debit.limit, debit.key, debit.cost);
        self.0.table.rows(&charge, find, now, |rows| {
            rows.iter_mut().for_each(|found| found.row = change(found.row.follow(now), now));
        });
    }

    fn decided(&self, charge: &Charge, operation: Operation) -> Result<Outcome, StoreError> {
        let buckets: Result<Vec<_>, _> =
            charge.debits().map(|debit| Bucket::new(&debit.limit)).collect();
        let buckets = buckets.map_err(StoreError::unsupported)?;
        let now = self.now();
        let find = if operation == Operation::Take { Find::OrInsert } else { Find::Only };
        self.0.table.rows(charge, find, now, |rows| match operation {
            Operation::Take => take_what_has_room(charge, &buckets, rows, now),
            Operation::Peek => Ok(peek(charge, &buckets, rows, now)),
            Operation::Reset => {
                rows.iter_mut().for_each(|found| found.row = Row::default());
                Ok(peek(charge, &buckets, rows, now))
            }
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Take,
    Peek,
    Reset,
}

/// Charges the limits for which there is room, all or none of them. A limit without room does not take part, unless it
/// could never admit the cost. A request that another limit refuses is refused, so that a flood cannot free a key by
/// filling the table of another of its limits.
fn take_what_has_room(
    charge: &Charge,
    buckets: &[Bucket],
    rows: &mut [RowSlot],
    now: u64,
) -> Result<Outcome, StoreError> {
    let left_out = |(found, debit): (&RowSlot, &Debit)| {
        !found.has_room && debit.cost <= debit.limit.capacity()
    };
    let left_out: Vec<bool> = rows.iter().zip(charge.debits()).map(left_out).collect();
    if !left_out.contains(&true) {
        return Ok(take(charge, buckets, rows, now));
    }
    let refuses = (charge.debits().zip(&left_out))
        .any(|(debit, left_out)| *left_out && debit.answer_when_full() != WhenFull::Admit);
    let full = if refuses { StoreError::full_and_refusing } else { StoreError::full };
    if !left_out.contains(&false) {
        return Err(full());
    }

    let is_counted = |at: &usize| !left_out[*at];
    let counted: Vec<usize> = (0..rows.len()).filter(is_counted).collect();
    let mut part = Charge::new();
    for debit in
        charge.debits().zip(&left_out).filter(|(_, left_out)| !**left_out).map(|(debit, _)| debit)
    {
        part.add(debit.limit, debit.key, debit.cost).expect("a part of a charge that was made");
    }
    if let Some(patience) = charge.patience() {
        part = part.patient(patience);
    }
    let part_buckets: Vec<Bucket> = counted.iter().map(|at| buckets[*at]).collect();
    let mut part_rows: Vec<RowSlot> = counted.iter().map(|at| rows[*at]).collect();
    let outcome = take(&part, &part_buckets, &mut part_rows, now);
    if refuses && outcome.is_admitted() {
        return Err(full());
    }
    counted.iter().zip(part_rows).for_each(|(at, row)| rows[*at] = row);

    let decision = outcome.decision(&part);
    let mut counted = decision.statuses().cloned();
    let statuses = charge.debits().zip(&left_out).filter_map(|(debit, left_out)| match left_out {
        false => counted.next(),
        true => Some(uncounted(debit.limit)),
    });
    let statuses: Vec<LimitStatus> = statuses.collect();
    Ok(Outcome::from_parts(outcome.verdict(), statuses))
}

/// The status of a limit for which there is no room.
fn uncounted(limit: Limit) -> LimitStatus {
    let mut status = LimitStatus::fresh(limit);
    status.uncounted = true;
    status.receipt = remote::void();
    status
}

/// Charges every row, or none. Books the earliest moment at which all rows admit, if the charge may wait that long.
fn take(charge: &Charge, buckets: &[Bucket], rows: &mut [RowSlot], now: u64) -> Outcome {
    rows.iter_mut().for_each(|found| found.row = found.row.follow(now));
    let asked = ask_all(charge, buckets, rows, now);
    let Some(debts) = admit(charge, buckets, rows, now, &asked) else {
        let patience = charge.patience().unwrap_or_default();
        return preview(charge, buckets, rows, now, patience);
    };
    let wait = longest(&asked).unwrap_or_default();
    let statuses = debts.into_iter().zip(rows).zip(buckets).zip(charge.debits()).map(
        |(((debt, found), bucket), debit)| {
            found.row = Row { written: now, debt };
            let mut status = bucket.status(debt, debit.cost);
            status.charged = debit.cost;
            status.retry = Some(Duration::ZERO);
            status.receipt = found.row.receipt();
            status
        },
    );
    Outcome::from_parts(Verdict::Admit { wait }, statuses)
}

/// The answer that [`take`] would give.
fn peek(charge: &Charge, buckets: &[Bucket], rows: &mut [RowSlot], now: u64) -> Outcome {
    rows.iter_mut().for_each(|found| found.row = found.row.follow(now));
    let patience = charge.patience().unwrap_or_default();
    let asked = ask_all(charge, buckets, rows, now);
    let mut outcome = preview(charge, buckets, rows, now, patience);
    if admit(charge, buckets, rows, now, &asked).is_some() {
        let wait = longest(&asked).unwrap_or_default();
        let decision = outcome.decision(charge);
        let statuses = decision.statuses().cloned();
        outcome = Outcome::from_parts(Verdict::Admit { wait }, statuses);
    }
    outcome
}

/// The answer of a refusal. Writes nothing.
fn preview(
    charge: &Charge,
    buckets: &[Bucket],
    rows: &[RowSlot],
    now: u64,
    patience: Duration,
) -> Outcome {
    let asked = ask_all(charge, buckets, rows, now);
    let wait = longest(&asked);
    // If one limit has to wait for too long, those that could have waited do not refuse.
    let patience = if wait.is_none_or(|wait| wait > patience) { patience } else { Duration::ZERO };
    let statuses = asked.iter().zip(rows).zip(buckets).zip(charge.debits()).map(
        |(((asked, found), bucket), debit)| {
            let mut status = bucket.status(found.row.debt(now), debit.cost);
            status.refused = match asked {
                BucketAnswer::Admit(_) => false,
                // If one limit never admits, only that one refuses.
                BucketAnswer::Wait(micros_wait) => {
                    wait.is_some() && micros(*micros_wait) > patience
                }
                BucketAnswer::Never => true,
            };
            status
        },
    );
    let verdict = match wait {
        Some(Duration::ZERO) => Verdict::Admit { wait: Duration::ZERO },
        None => Verdict::Never,
        retry_after => Verdict::Refuse { retry_after },
    };
    Outcome::from_parts(verdict, statuses)
}

fn ask_all(charge: &Charge, buckets: &[Bucket], rows: &[RowSlot], now: u64) -> Vec<BucketAnswer> {
    (charge.debits().zip(buckets).zip(rows))
        .map(|((debit, bucket), found)| bucket.ask(found.row.debt(now), debit.cost))
        .collect()
}

/// The time until all buckets admit: the longest of all, because buckets only drain.
fn longest(asked: &[BucketAnswer]) -> Option<Duration> {
    asked.iter().try_fold(Duration::ZERO, |longest, asked| match asked {
        BucketAnswer::Admit(_) => Some(longest),
        BucketAnswer::Wait(wait) => Some(longest.max(micros(*wait))),
        BucketAnswer::Never => None,
    })
}

/// The new debts, if the request is admitted or can wait.
fn admit(
    charge: &Charge,
    buckets: &[Bucket],
    rows: &[RowSlot],
    now: u64,
    asked: &[BucketAnswer],
) -> Option<Vec<u64>> {
    let wait = longest(asked).filter(|wait| *wait <= charge.patience().unwrap_or_default())?;
    let keys = charge.keys();
    let book =
        |(((asked, found), bucket), debit): (((&BucketAnswer, &RowSlot), &Bucket), &Debit)| {
            match asked {
                BucketAnswer::Admit(debt) if wait.is_zero() => Some(*debt),
                _ => bucket.book(found.row.debt(now), debit.cost, wait, keys),
            }
        };
    asked.iter().zip(rows).zip(buckets).zip(charge.debits()).map(book).collect()
}

impl Store for Governor {
    type Future = Ready<Result<Outcome, StoreError>>;

    fn take(&self, charge: &Charge) -> Answer<Self::Future> {
        Answer::Now(self.decided(charge, Operation::Take))
    }

    fn peek(&self, charge: &Charge) -> Answer<Self::Future> {
        Answer::Now(self.decided(charge, Operation::Peek))
    }

    fn reset(&self, charge: &Charge) -> Answer<Self::Future> {
        Answer::Now(self.decided(charge, Operation::Reset))
    }

    fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) {
        let Ok(bucket) = Bucket::new(&debit.limit) else { return };
        let find = if spent > debit.cost { Find::OrInsert } else { Find::Only };
        self.change(debit, find, |row, now| match spent.checked_sub(debit.cost) {
            Some(more) => Row { written: now, debt: bucket.add(row.debt(now), more) },
            None => bucket.give(row, receipt, now, debit.cost - spent),
        });
    }

    fn follow(&self, debit: &Debit, charged: u64, spent: u64) {
        let Ok(bucket) = Bucket::new(&debit.limit) else { return };
        let find = if spent > charged { Find::OrInsert } else { Find::Only };
        self.change(debit, find, |row, now| match spent.checked_sub(charged) {
            Some(more) => Row { written: now, debt: bucket.follow(row.debt(now), more) },
            // The latest charge is given back: there is no receipt of the other store's.
            None => bucket.give(row, &row.receipt(), now, charged - spent),
        });
    }

    fn follow_status(&self, debit: &Debit, status: &LimitStatus) {
        let (Ok(part), Ok(whole)) = (Bucket::new(&debit.limit), Bucket::new(&status.limit)) else {
            return;
        };
        if !status.uncounted {
            self.change(debit, Find::OrInsert, |row, now| {
                let debt = part.follow_status(row.debt(now), &whole, status.reset);
                Row { written: now, debt }
            });
        }
    }

    fn clock(&self) -> Clock {
        self.0.clock.clone()
    }

    fn check(&self, limit: &Limit) -> Result<(), LimitError> {
        Bucket::new(limit).map(drop)
    }
}

impl Default for Governor {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Governor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Governor").field("len", &self.len()).finish_non_exhaustive()
    }
}
