//! What is stored in the server, and for how long.

use std::time::Duration;

use sluicegate_core::adapter::{Charge, Outcome};
use sluicegate_core::store::Store;
use sluicegate_core::{Limit, ManualClock};
use sluicegate_redis::Redis;
use sluicegate_tests::servers::{Reply, Server};
use sluicegate_tests::{answer, key};

use super::DAY;
use super::store::{by_hand, open, own_prefix, patient, rows, settled, shared};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
/// Windows of the clock are so long that none ends during a test.
const CENTURY: Duration = Duration::from_secs(36_500 * 86_400);

/// A key that no other test uses on the shared server, and the store that writes its row.
struct Kept {
    store: Redis,
    prefix: String,
    charge: Charge,
}

impl Kept {
    fn new(limit: Limit, cost: u64) -> Self {
        let prefix = own_prefix();
        let store = open(patient().url(&shared().url()).prefix(&prefix));
        Self { store, prefix, charge: Charge::of(limit, key("alice"), cost) }
    }

    fn take(&self) -> Outcome {
        answer(self.store.take(&self.charge)).expect("the store answers")
    }

    fn row(&self) -> Option<String> {
        let mut rows = rows(shared(), &self.prefix);
        assert!(rows.len() <= 1, "{rows:?}");
        rows.pop()
    }

    /// Milliseconds; −1 if the row is kept for ever.
    fn expiry(&self) -> i64 {
        shared().cli(["PTTL", &self.row().expect("a row")]).number()
    }

    fn bytes(&self) -> Vec<u8> {
        let value = shared().cli(["GET", &self.row().expect("a row")]);
        match value {
            Reply::Bytes(bytes) => bytes,
            other => panic!("a row is a string, not {other:?}"),
        }
    }
}

/// The number of plain buckets in the following list. They come first.
const BUCKETS: usize = 4;

/// A limit, a cost, and how long the row matters after that charge.
fn worths() -> [(Limit, u64, Duration); 12] {
    [
        (Limit::per_minute(60), 10, SECOND * 10),
        (Limit::per_minute(60), 30, SECOND * 30),
        (Limit::per_minute(60).refill(60, MINUTE), 5, MINUTE),
        (Limit::leaky_bucket(60, MINUTE).queue(10), 7, SECOND * 7),
        (Limit::fixed_window(10, CENTURY), 3, CENTURY),
        (Limit::fixed_window(10, HOUR).from_first(), 3, HOUR),
        (Limit::sliding_log(10, HOUR), 3, HOUR),
        (Limit::sliding_log(10, HOUR).resolution(MINUTE), 3, HOUR + MINUTE),
        (Limit::sliding_window(10, CENTURY), 3, CENTURY * 2),
        (Limit::per_minute(60).min_gap(SECOND * 10), 1, SECOND * 10),
        (Limit::per_minute(60).ban(DAY), 30, SECOND * 30),
        // As long as a process that holds a place may be alive.
        (Limit::concurrent(10), 3, SECOND * 10),
    ]
}

/// A bucket's row may be kept up to twice as long, so that its expiry need not be written each time.
#[test]
fn a_row_is_kept_no_longer_than_it_matters() {
    for (at, (limit, cost, worth)) in worths().into_iter().enumerate() {
        let worth = if at < BUCKETS { 2 * worth } else { worth };
        let kept = Kept::new(limit, cost);
        assert!(kept.take().is_admitted());
        let expiry = kept.expiry();
        let worth = worth.as_millis() as i64;
        assert!(0 < expiry && expiry <= worth, "{limit}: {expiry} ms of {worth}");
    }
}

/// However often it is written, and by whichever script: rows of buckets are mostly written without their expiry.
#[test]
fn a_row_that_is_written_repeatedly_is_kept_as_long_as_it_matters() {
    let limit = Limit::per_minute(60).burst(1_000);
    let kept = Kept::new(limit, 1);
    let began = std::time::Instant::now();
    assert!(kept.take().is_admitted());
    let row = kept.row().expect("a row");
    let patient = kept.charge.clone().patient(SECOND);
    for spent in 2..=200 {
        let charge = if spent % 7 == 0 { &patient } else { &kept.charge };
        assert!(answer(kept.store.take(charge)).expect("an answer").is_admitted());
        let expiry = shared().cli(["PTTL", &row]).number();
        let least = SECOND * spent - began.elapsed().min(SECOND * spent);
        assert!(expiry >= least.as_millis() as i64, "{spent}: {expiry} ms of {least:?}");
        assert!(expiry <= (2 * SECOND * spent).as_millis() as i64, "{spent}: {expiry} ms");
    }
}

/// Otherwise a request would be admitted too early. Windows that end at a border of the clock are left out: what they are
/// worth depends on when the border is.
#[test]
fn a_row_is_kept_as_long_as_it_matters() {
    let at_a_border = [Limit::fixed_window(10, CENTURY), Limit::sliding_window(10, CENTURY)];
    for (limit, cost, worth) in worths() {
        if at_a_border.contains(&limit) {
            continue;
        }
        let kept = Kept::new(limit, cost);
        let before = std::time::Instant::now();
        kept.take();
        let (expiry, passed) = (kept.expiry(), before.elapsed());
        // What was rounded up to a whole minute may have been exact.
        let slack = if limit.to_string().contains("resolution") { MINUTE } else { Duration::ZERO };
        let least = worth - slack - passed.min(worth - slack);
        assert!(expiry >= least.as_millis() as i64, "{limit}: {expiry} ms of {worth:?}");
    }
}

#[test]
fn a_ban_is_kept_until_it_ends() {
    let kept = Kept::new(Limit::per_minute(1).ban(HOUR), 1);
    assert!(kept.take().is_admitted());
    assert!(!kept.take().is_admitted());
    let expiry = kept.expiry();
    let worth = (HOUR + MINUTE).as_millis() as i64;
    assert!(worth - 30_000 < expiry && expiry <= worth, "{expiry} ms of {worth}");
}

/// The bucket recovers in a microsecond, and Redis expires rows in milliseconds.
#[test]
fn a_row_that_matters_for_less_than_a_millisecond_is_no_error() {
    let kept = Kept::new(Limit::per_second(1_000_000), 1);
    for _ in 0..50 {
        assert!(kept.take().is_admitted());
    }
    if let Some(row) = kept.row() {
        assert!(shared().cli(["PTTL", &row]).number() <= 1);
    }
}

#[test]
fn no_row_is_kept_for_a_key_that_has_recovered() {
    for (limit, _, _) in worths() {
        if limit.to_string().contains("gap") {
            continue;
        }
        let kept = Kept::new(limit, 0);
        assert!(kept.take().is_admitted());
        assert_eq!(kept.row(), None, "{limit}: for a cost of nothing");
        let kept = Kept::new(limit, 2);
        let outcome = kept.take();
        let (debit, receipt) = (kept.charge.debits().next(), outcome.receipts().next());
        kept.store.settle(debit.expect("one"), &receipt.expect("one"), 0);
        settled(&kept.store);
        assert_eq!(kept.row(), None, "{limit}: given back");
    }
}

#[test]
fn a_refusal_writes_nothing() {
    for (limit, _, _) in worths() {
        // A ban has to be remembered after a refusal.
        if limit.to_string().contains("ban") {
            continue;
        }
        let kept = Kept::new(limit, limit.capacity());
        assert!(kept.take().is_admitted(), "{limit}");
        let (bytes, expiry) = (kept.bytes(), kept.expiry());
        for _ in 0..3 {
            assert!(!kept.take().is_admitted(), "{limit}");
        }
        assert_eq!(kept.bytes(), bytes, "{limit}");
        assert!(kept.expiry() <= expiry, "{limit}");
    }
}

/// A test's clock may stand still while the server's clock goes on.
#[test]
fn a_row_does_not_expire_while_the_clock_stands_still() {
    let clock = ManualClock::new();
    let store = open(by_hand(&clock).url(&shared().url()));
    let limits = [
        Limit::fixed_window(2, SECOND / 1_000),
        Limit::per_second(2_000).burst(2),
        Limit::sliding_log(2, SECOND / 1_000),
        Limit::per_second(2_000).burst(2).min_gap(SECOND / 1_000),
    ];
    for limit in limits {
        let charge = Charge::of(limit, key("alice"), 2);
        assert!(answer(store.take(&charge)).expect("the store answers").is_admitted(), "{limit}");
        for _ in 0..100 {
            let again = answer(store.take(&charge)).expect("the store answers");
            assert!(!again.is_admitted(), "{limit}");
        }
    }
}

/// One small string.
#[test]
fn two_words_take_sixteen_bytes() {
    for limit in [
        Limit::per_minute(60),
        Limit::per_minute(60).refill(60, MINUTE),
        Limit::leaky_bucket(60, MINUTE).queue(10),
        Limit::fixed_window(60, CENTURY),
        Limit::sliding_window(60, CENTURY),
    ] {
        let kept = Kept::new(limit, 7);
        kept.take();
        assert_eq!(kept.bytes().len(), 16, "{limit}");
    }
}

/// Other tests of this program may use the server at the same time.
#[test]
fn unbounded_keys() {
    for (limit, cost, _) in worths() {
        Kept::new(limit, cost).take();
        Kept::new(limit.named("counted"), limit.capacity()).take();
    }
    let eternal = |server: &Server| {
        let rows = rows(server, "");
        assert!(!rows.is_empty());
        // Each mastership has two rows that stay, because no fence may be used twice. No request makes more of them.
        let is_of_mastership = |row: &str| row.ends_with("}master") || row.ends_with("}clients");
        let of_limits = rows.into_iter().filter(|row| !is_of_mastership(row));
        of_limits.filter(|row| server.cli(["PTTL", row]).number() == -1).collect::<Vec<_>>()
    };
    assert_eq!(eternal(shared()), Vec::<String>::new());
}
