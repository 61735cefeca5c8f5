//! A share of a fleet whose members change, compared with states that nothing forgets.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::limit::testing::decide;
use crate::limit::{Attempt, Keys, LimitInternals as _, State};

#[derive(Debug, Clone)]
enum Turn {
    Take {
        limit: usize,
        cost: u64,
    },
    /// Settles the charge that was admitted this many charges ago.
    Settle {
        ago: usize,
        spent: u64,
    },
    See(u64),
    Pass(u64),
}

fn turn() -> impl Strategy<Value = Turn> {
    let cost = prop_oneof![4 => Just(1_u64), 1 => 0_u64..4];
    prop_oneof![
        12 => (0_usize..7, cost).prop_map(|(limit, cost)| Turn::Take { limit, cost }),
        2 => (0_usize..4, 0_u64..4).prop_map(|(ago, spent)| Turn::Settle { ago, spent }),
        2 => prop_oneof![1_u64..6, Just(96)].prop_map(Turn::See),
        4 => prop_oneof![0_u64..200_000, 0_u64..9_000_000].prop_map(Turn::Pass),
    ]
}

fn limits() -> [Limit; 7] {
    [
        Limit::per_second(10),
        Limit::per(7, SECOND * 3).burst(5),
        Limit::leaky_bucket(4, SECOND).queue(3),
        Limit::per_second(9).named("bucket").carried(),
        Limit::fixed_window(8, SECOND),
        Limit::fixed_window(8, SECOND * 2).named("window").carried(),
        Limit::sliding_window(9, SECOND).named("sliding").carried(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_share_of_members_that_come_and_go_decides_like_states_that_nothing_forgets(
        turns in prop::collection::vec(turn(), 1..150),
    ) {
        let clock = ManualClock::at(100 * SECOND);
        let (store, fleet) = member_of(3, &clock);
        let (mut states, mut paid) = (HashMap::<usize, State>::new(), Vec::new());
        for turn in turns {
            let now = clock.now();
            match turn {
                Turn::Pass(micros) => clock.advance(Duration::from_micros(micros)),
                Turn::See(count) => fleet.see(count),
                Turn::Settle { ago, spent } => {
                    let Some(at) = paid.len().checked_sub(ago + 1) else { continue };
                    let (number, part, charge, own, expected): (usize, Part, Charge, _, _) = paid.remove(at);
                    let debit = charge.debits().next().expect("one");
                    Store::settle(&store, debit, &own, spent);
                    let limit = debit.limit.try_part(part, 0).expect("exact").expect("something");
                    let state = states.entry(number).or_default();
                    limit.settle(state, now, &expected, debit.cost, spent);
                }
                Turn::Take { limit: number, cost } => {
                    let limit = limits()[number];
                    let outcome = take(&store, limit, cost);
                    let part = store.part_now().expect("it is a member");
                    let Some(portion) = limit.try_part(part, 0).expect("exact") else {
                        prop_assert!(!outcome.is_admitted());
                        continue;
                    };
                    let state = states.entry(number).or_default();
                    let attempts = &mut [Attempt { limit: &portion, state, cost }];
                    let expected = decide(attempts, now, None, Keys::One);
                    prop_assert_eq!(outcome.is_admitted(), expected.is_admitted(), "{} of {:?}", limit, part);
                    prop_assert_eq!(outcome.retry_after(), expected.retry_after(), "{} of {:?}", limit, part);
                    let whole = charge(limit, cost);
                    let told = outcome.decision(&whole);
                    prop_assert_eq!(told.remaining(), expected.remaining(), "{} of {:?}", limit, part);
                    if outcome.is_admitted() {
                        let own = outcome.receipts().next().expect("one");
                        let expected = expected.statuses().next().expect("one").receipt;
                        paid.push((number, part, whole, own, expected));
                    }
                }
            }
        }
    }
}
