//! Heartbeats of a fleet: one view for each round, whenever it is read.

use std::cell::RefCell;

use super::super::Call;
use super::super::fleet::{Heartbeat, View};
use super::redis::Redis;

const ROUND: u64 = 1_000_000;
const START: u64 = 1_700_000_000 * ROUND;
const KEY: &[u8] = b"t:{fleet}members";

struct Group(RefCell<Redis>);

impl Group {
    fn new() -> Self {
        Self(RefCell::new(Redis::new()))
    }

    /// A heartbeat in thousandths of a round from the start. The view, without rounds.
    fn beat(&self, at: u64, member: u64, wants: Option<u64>) -> Vec<(u64, u64, u32)> {
        self.view(at, member, wants).members
    }

    fn view(&self, at: u64, member: u64, wants: Option<u64>) -> View {
        let now = START + at * ROUND / 1_000;
        self.0.borrow_mut().turn_to(now);
        let beat = Heartbeat { now: Some(now), member, round: ROUND, kept: 3, wants, weight: 1 };
        let answer = self.0.borrow_mut().run(&Call::beat(KEY.to_vec(), beat)).expect("an answer");
        View::parse(&answer).expect("a view")
    }
}

#[test]
fn a_member_counts_from_the_round_after_its_first_heartbeat() {
    let group = Group::new();
    assert_eq!(group.beat(100, 1, Some(7)), []);
    assert_eq!(group.beat(900, 2, Some(8)), []);
    assert_eq!(group.beat(1_000, 1, Some(70)), [(1, 7, 1), (2, 8, 1)]);
    let view = group.view(1_250, 2, Some(80));
    assert_eq!((view.round, view.left), (START / ROUND + 1, 750_000));
}

#[test]
fn the_view_of_a_round_is_the_same_whenever_it_is_read() {
    let group = Group::new();
    for member in 1..=3 {
        group.beat(500, member, Some(member));
    }
    let view = group.beat(1_000, 1, Some(50));
    // Heartbeats of this round, of a new member, and of one that leaves count in the next.
    assert_eq!(group.beat(1_200, 4, Some(9)), view);
    assert_eq!(group.beat(1_300, 2, None), view);
    assert_eq!(group.beat(1_400, 1, Some(60)), view);
    assert_eq!(group.beat(1_999, 3, Some(3)), view);
    assert_eq!(group.beat(2_000, 3, Some(3)), [(1, 60, 1), (3, 3, 1), (4, 9, 1)]);
}

#[test]
fn a_member_that_is_silent_counts_for_as_many_rounds_as_it_is_kept() {
    let group = Group::new();
    group.beat(500, 1, Some(1));
    let counts = |at: u64| group.beat(at, 2, Some(2)).iter().any(|(member, ..)| *member == 1);
    assert_eq!([1_500, 2_500, 3_999, 4_000].map(counts), [true, true, true, false]);
    // When it is back, it begins anew: others of this round have seen that it is gone.
    assert!(!group.beat(4_100, 1, Some(1)).iter().any(|(member, ..)| *member == 1));
    assert!(group.beat(5_000, 1, Some(1)).iter().any(|(member, ..)| *member == 1));
}

#[test]
fn a_clock_that_steps_back_drops_nobody() {
    let group = Group::new();
    group.beat(5_500, 1, Some(1));
    group.beat(6_500, 1, Some(1));
    assert_eq!(group.beat(3_500, 1, Some(5)), [(1, 1, 1)]);
    assert_eq!(group.beat(4_500, 1, Some(6)), [(1, 5, 1)]);
}

#[test]
fn a_row_that_holds_something_else_is_an_error() {
    for reply in [&[0_u8; 7][..], &[0; 20], &[0; 41]] {
        assert!(View::parse(reply).is_err());
    }
}
