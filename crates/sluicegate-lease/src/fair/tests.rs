use proptest::prelude::*;

use super::{Division, Want, max_min, proportional};
use crate::amount::Amount;

fn wants<const N: usize>(wants: [(u64, u64); N]) -> Vec<Want> {
    wants.iter().map(|&(wants, weight)| Want { wants: Amount::units(wants), weight }).collect()
}

fn shares(division: Division, wants: &[Want]) -> Vec<f64> {
    wants.iter().map(|want| division.share(*want).as_f64()).collect()
}

#[track_caller]
fn assert_shares(capacity: u64, participants: &[Want], expected: &[f64]) {
    let division = max_min(Amount::units(capacity), &mut participants.to_vec());
    for (share, expected) in shares(division, participants).iter().zip(expected) {
        assert!((share - expected).abs() < 0.05, "{share}, not {expected}");
    }
}

#[test]
fn fair_shares_are_max_min() {
    // The tables of Doorman's own test of its fair share.
    assert_shares(120, &wants([(1000, 1), (60, 1), (10, 1)]), &[55.0, 55.0, 10.0]);
    assert_shares(120, &wants([(1000, 1), (50, 1), (10, 1)]), &[60.0, 50.0, 10.0]);
    assert_shares(120, &wants([(1000, 6), (500, 4), (200, 2)]), &[60.0, 40.0, 20.0]);
    assert_shares(1000, &wants([(2000, 10), (500, 10), (700, 30)]), &[200.0, 200.0, 600.0]);
}

#[test]
fn what_doormans_two_passes_leave_over_is_handed_out() {
    let five = wants([(10, 1), (31, 1), (36, 1), (1000, 1), (1000, 1)]);
    assert_shares(150, &five, &[10.0, 31.0, 36.0, 36.5, 36.5]);
    assert_shares(1200, &wants([(2000, 10), (150, 1), (10, 1)]), &[1081.8, 108.2, 10.0]);
    assert_shares(300, &wants([(500, 2), (90, 1), (10, 3)]), &[200.0, 90.0, 10.0]);
}

#[test]
fn a_participant_without_a_weight_gets_what_the_others_leave_or_nothing() {
    let participants = wants([(100, 1), (100, 0)]);
    assert_shares(90, &participants, &[90.0, 0.0]);
    assert_shares(150, &participants, &[100.0, 0.0]);
    assert_shares(200, &participants, &[100.0, 100.0]);
}

#[test]
fn proportional_shares_are_doormans() {
    let table = [
        (wants([(60, 1), (60, 1), (10, 1)]), [55.0, 55.0, 10.0]),
        (wants([(65, 3), (45, 2), (20, 1)]), [60.0, 40.0, 20.0]),
    ];
    for (wants, expected) in table {
        let division = proportional(Amount::units(120), &wants);
        assert_eq!(shares(division, &wants), expected);
    }
}

#[test]
fn wants_that_do_not_fit_together_are_divided_by_proportion_all_the_same() {
    let greedy = Want { wants: Amount::MAX, weight: 1 };
    let idle = Want { wants: Amount::ZERO, weight: 1 };
    let wants = [vec![greedy; 200_000], vec![idle; 200_000]].concat();
    let division = proportional(Amount::units(400_000), &wants);
    assert_eq!((division.share(greedy), division.share(idle)), (Amount::units(2), Amount::ZERO));
}

fn any_wants() -> impl Strategy<Value = Vec<Want>> {
    let want = (0_u64..2_000_000_000, 1_u64..1_000_000)
        .prop_map(|(wants, weight)| Want { wants: Amount::from_millionths(wants), weight });
    prop::collection::vec(want, 1..40)
}

proptest! {
    #[test]
    fn no_division_hands_out_more_than_there_is_or_is_wanted(
        capacity in 0_u64..20_000_000_000, wants in any_wants(),
    ) {
        let capacity = Amount::from_millionths(capacity);
        let fair = max_min(capacity, &mut wants.clone());
        for division in [fair, proportional(capacity, &wants)] {
            let shares: Vec<Amount> = wants.iter().map(|want| division.share(*want)).collect();
            let sum: Amount = shares.iter().copied().sum();
            let all: Amount = wants.iter().map(|want| want.wants).sum();
            prop_assert!(sum <= capacity);
            prop_assert!(shares.iter().zip(&wants).all(|(share, want)| *share <= want.wants));
            // A share is rounded down by at most two millionths: twice in a proportional one.
            let lost = capacity.min(all).saturating_sub(sum).millionths();
            prop_assert!(lost <= 2 * wants.len() as u64, "{lost} millionths are lost");
        }
    }

}
