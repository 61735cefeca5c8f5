use std::fmt;
use std::future::Ready;
use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{
    Answer, Charge, Clock, Limit, LimitError, Mark, Outcome, Owed, Store, StoreError, Verdict,
};

use crate::bucket::{Answer as Asked, Bucket, Row, micros};
use crate::table::{Find, Found, Table};

/// Keys that a store has room for unless told otherwise.
const KEYS: usize = 1 << 18;

/// A store whose token bucket is governor's.
///
/// The table is this crate's: it holds a bounded number of keys, is tidied a little with each key that
/// is added, and never lets go of one that is being limited. When there is no room for a new key, the
/// store answers [`StoreError::full`], unless another limit of the request refuses it anyway. A key
/// takes some 250 bytes.
///
/// Clones are the same store.
#[derive(Clone)]
pub struct Governor(Arc<Inner>);

struct Inner {
    clock: Clock,
    table: Table,
}

impl Governor {
    /// A store for 262,144 keys, by the machine's clock.
    pub fn new() -> Self {
        Self::with_capacity(KEYS)
    }

    /// A store for `keys` keys, each on one limit.
    ///
    /// # Panics
    ///
    /// When `keys` is zero.
    #[track_caller]
    pub fn with_capacity(keys: usize) -> Self {
        Self::with_clock(keys, Clock::machine())
    }

    /// A store for `keys` keys that goes by `clock`.
    ///
    /// ```
    /// use tollgate_core::ManualClock;
    /// use tollgate_governor::Governor;
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
        assert!(keys > 0, "a store with room for 0 keys counts nothing");
        Self(Arc::new(Inner { clock: clock.into(), table: Table::new(keys) }))
    }

    /// How many keys are held at this moment, some of which may owe nothing any more.
    pub fn len(&self) -> usize {
        self.0.table.len()
    }

    /// Whether no key is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn now(&self) -> u64 {
        self.0.clock.now().saturating_mul(1_000)
    }

    fn decided(&self, charge: &Charge, ask: Ask) -> Result<Outcome, StoreError> {
        let buckets: Result<Vec<_>, _> =
            charge.owed().map(|owed| Bucket::new(&owed.limit)).collect();
        let buckets = buckets.map_err(StoreError::unsupported)?;
        let now = self.now();
        let find = if ask == Ask::Take { Find::OrInsert } else { Find::Only };
        let decision = self.0.table.rows(charge, find, now, |rows| match ask {
            Ask::Take => take(charge, &buckets, rows, now),
            Ask::Peek => Some(preview(charge, &buckets, rows, now, Duration::ZERO)),
            Ask::Reset => {
                rows.iter_mut().for_each(|found| found.row = Row::default());
                Some(preview(charge, &buckets, rows, now, Duration::ZERO))
            }
        });
        decision.ok_or_else(StoreError::full)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ask {
    Take,
    Peek,
    Reset,
}

/// Charges every row, or none; books the earliest moment within the charge's patience at which all
/// admit. `None` when there is no room to write the charge down; who is refused anyway is refused all
/// the same, so that no flood frees a key by leaving no room for another of its limits.
fn take(charge: &Charge, buckets: &[Bucket], rows: &mut [Found], now: u64) -> Option<Outcome> {
    rows.iter_mut().for_each(|found| found.row = found.row.follow(now));
    let asked = ask(charge, buckets, rows, now);
    let Some(debts) = admit(charge, buckets, rows, now, &asked) else {
        let patience = charge.patience().unwrap_or_default();
        return Some(preview(charge, buckets, rows, now, patience));
    };
    if !rows.iter().all(|found| found.has_room) {
        return None;
    }
    let wait = longest(&asked).unwrap_or_default();
    let standings = debts.into_iter().zip(rows).zip(buckets).zip(charge.owed()).map(
        |(((debt, found), bucket), owed)| {
            found.row = Row { written: now, debt };
            let mut standing = bucket.standing(debt, owed.cost);
            standing.charged = owed.cost;
            standing.retry = Some(Duration::ZERO);
            standing.mark = found.row.mark();
            standing
        },
    );
    Some(Outcome::from_parts(Verdict::Admit { wait }, standings))
}

/// What would be answered, with nothing written.
fn preview(
    charge: &Charge,
    buckets: &[Bucket],
    rows: &[Found],
    now: u64,
    patience: Duration,
) -> Outcome {
    let asked = ask(charge, buckets, rows, now);
    let wait = longest(&asked);
    // Where one has to wait for too long, those that could have waited do not refuse.
    let patience = if wait.is_none_or(|wait| wait > patience) { patience } else { Duration::ZERO };
    let standings = asked.iter().zip(rows).zip(buckets).zip(charge.owed()).map(
        |(((asked, found), bucket), owed)| {
            let mut standing = bucket.standing(found.row.debt(now), owed.cost);
            standing.refused = match asked {
                Asked::Admit(_) => false,
                // Where one never admits, that is the answer.
                Asked::Wait(micros_wait) => wait.is_some() && micros(*micros_wait) > patience,
                Asked::Never => true,
            };
            standing
        },
    );
    let verdict = match wait {
        Some(Duration::ZERO) => Verdict::Admit { wait: Duration::ZERO },
        None => Verdict::Never,
        retry_after => Verdict::Refuse { retry_after },
    };
    Outcome::from_parts(verdict, standings)
}

fn ask(charge: &Charge, buckets: &[Bucket], rows: &[Found], now: u64) -> Vec<Asked> {
    (charge.owed().zip(buckets).zip(rows))
        .map(|((owed, bucket), found)| bucket.ask(found.row.debt(now), owed.cost))
        .collect()
}

/// Until the last of them admits, and so all: buckets drain and nothing else.
fn longest(asked: &[Asked]) -> Option<Duration> {
    asked.iter().try_fold(Duration::ZERO, |longest, asked| match asked {
        Asked::Admit(_) => Some(longest),
        Asked::Wait(wait) => Some(longest.max(micros(*wait))),
        Asked::Never => None,
    })
}

/// The debts that all have from now on, if the request is admitted or can wait.
fn admit(
    charge: &Charge,
    buckets: &[Bucket],
    rows: &[Found],
    now: u64,
    asked: &[Asked],
) -> Option<Vec<u64>> {
    let wait = longest(asked).filter(|wait| *wait <= charge.patience().unwrap_or_default())?;
    let keys = charge.keys();
    let book = |(((asked, found), bucket), owed): (((&Asked, &Found), &Bucket), &Owed)| match asked
    {
        Asked::Admit(debt) if wait.is_zero() => Some(*debt),
        _ => bucket.book(found.row.debt(now), owed.cost, wait, keys),
    };
    asked.iter().zip(rows).zip(buckets).zip(charge.owed()).map(book).collect()
}

impl Store for Governor {
    type Future = Ready<Result<Outcome, StoreError>>;

    fn take(&self, charge: &Charge) -> Answer<Self::Future> {
        Answer::Now(self.decided(charge, Ask::Take))
    }

    fn peek(&self, charge: &Charge) -> Answer<Self::Future> {
        Answer::Now(self.decided(charge, Ask::Peek))
    }

    fn reset(&self, charge: &Charge) -> Answer<Self::Future> {
        Answer::Now(self.decided(charge, Ask::Reset))
    }

    fn settle(&self, owed: &Owed, mark: &Mark, spent: u64) {
        let Ok(bucket) = Bucket::new(&owed.limit) else { return };
        let now = self.now();
        let charge = Charge::of(owed.limit, owed.key, owed.cost);
        let find = if spent > owed.cost { Find::OrInsert } else { Find::Only };
        self.0.table.rows(&charge, find, now, |rows| {
            for Found { row, .. } in rows {
                *row = row.follow(now);
                *row = if spent > owed.cost {
                    let debt = bucket.add(row.debt(now), spent - owed.cost);
                    Row { written: now, debt }
                } else {
                    bucket.give(*row, mark, now, owed.cost - spent)
                };
            }
        });
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
