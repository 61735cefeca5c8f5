//! Random reloads and requests on many threads. Each request is decided by one whole document.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use sluicegate_core::clock::Clock;
use sluicegate_core::store::Store;
use sluicegate_core::{ManualClock, Memory};

use super::{Place, policies};
use crate::live::Live;
use sluicegate_tests::Request;

const THREADS: usize = 3;

/// Each document has this many rules, whose windows all have one count. The count identifies the document.
fn document(count: u64, rules: usize) -> String {
    let rule = |name| {
        format!(
            "[[rules]]\nname = \"r{name}\"\nkey = \"global\"\nlimits = [\"fixed {count}/hour\"]\n"
        )
    };
    (0..rules).map(rule).collect()
}

/// The counts of the limits that a request is charged to.
fn counts(live: &Live) -> Vec<u64> {
    Request::default().charge(live).debits().map(|debit| debit.limit.capacity()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn no_request_sees_half_of_a_document(sizes in prop::collection::vec(1..9_usize, 2..6)) {
        let documents: Vec<_> =
            sizes.iter().enumerate().map(|(at, rules)| (at as u64 + 1, *rules)).collect();
        let known: BTreeSet<_> =
            documents.iter().map(|(count, rules)| vec![*count; *rules]).collect();
        let live = Live::of(policies(&document(documents[0].0, documents[0].1)));
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        let counts = counts(&live);
                        assert!(known.contains(&counts), "{counts:?} is no document");
                    }
                });
            }
            for (count, rules) in documents.iter().cycle().take(40) {
                live.replace(policies(&document(*count, *rules))).expect("any store keeps them");
            }
            done.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn threads_together_spend_no_more_than_the_documents_say(
        all in prop::collection::vec(1..300_u64, 2..10),
    ) {
        let place = Place::with(&document(all[0], 2));
        let live = place.open();
        let clock = Clock::from(ManualClock::at(Duration::from_secs(1_000_000)));
        let store = Memory::builder().capacity(64).clock(clock).build();
        let admitted = AtomicU64::new(0);
        let request = || {
            let outcome = store.take(&Request::default().charge(&live)).now().expect("room");
            if outcome.is_admitted() {
                admitted.fetch_add(1, Ordering::Relaxed);
            }
            outcome.is_admitted()
        };
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| (0..200).for_each(|_| { request(); }));
            }
            for count in &all {
                place.write(&document(*count, 2));
                live.reload().expect("valid rules");
                place.write("rules = 7");
                live.reload().expect_err("a broken file");
            }
        });
        // Time stands still, so what is spent stays spent, whichever document was in force.
        let spent = admitted.load(Ordering::Relaxed);
        let most = all.iter().copied().max().expect("two at least");
        prop_assert!(spent <= most, "{} were admitted, {} at most", spent, most);
        while request() {}
        let last = *all.last().expect("two at least");
        prop_assert_eq!(admitted.load(Ordering::Relaxed), spent.max(last));
    }
}
