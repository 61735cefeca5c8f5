//! The conformance suite, on each engine.

use sluicegate_core::ManualClock;
use sluicegate_tests::conformance;

use crate::engine::{Lies, MadeUp};
use crate::store::{by_hand, open, settled};

conformance!(
    a_made_up_engine,
    |clock: &ManualClock| open(by_hand(MadeUp::new(clock), clock)),
    settled
);
conformance!(
    an_engine_that_swaps_one_row,
    |clock: &ManualClock| open(by_hand(MadeUp::new(clock).rows_at_once(1), clock)),
    settled
);
conformance!(
    an_engine_whose_swaps_are_sent_twice,
    |clock: &ManualClock| {
        let lies = Lies { twice: 300, ..Lies::default() };
        open(by_hand(MadeUp::new(clock).lies(lies, 1), clock))
    },
    settled
);
conformance!(
    nothing_is_remembered,
    |clock: &ManualClock| open(by_hand(MadeUp::new(clock), clock).remember_rows(0)),
    settled
);
