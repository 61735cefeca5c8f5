//! What every store must do, wherever it keeps its counts.
//!
//! The suite tests the store that the factory given to [`conformance!`](crate::conformance!) makes. Time is turned
//! with the manual clock that the factory gets. A scenario is left out only if the store refuses its limit.
//! [`Subject::keeps`](crate::Subject::keeps) then makes sure that the store also refuses to be charged.

use std::time::Duration;

use sluicegate_core::Limit;

pub mod changes;
pub mod counting;
pub mod options;
pub mod settling;
pub mod several;
pub mod threads;
pub mod time;
pub mod waiting;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
/// The smallest step of a clock.
const TICK: Duration = Duration::from_micros(1);

/// A limit of every algorithm that recovers with time, each admitting `count` at once, per minute.
fn timed(count: u64) -> [Limit; 8] {
    [
        Limit::per_minute(count),
        Limit::per_minute(count).refill(count, MINUTE),
        Limit::leaky_bucket(count, MINUTE).queue(count - 1).delay_after(count - 1),
        Limit::fixed_window(count, MINUTE),
        Limit::fixed_window(count, MINUTE).from_first(),
        Limit::sliding_log(count, MINUTE),
        Limit::sliding_log(count, MINUTE).resolution(SECOND),
        Limit::sliding_window(count, MINUTE),
    ]
}

/// A limit of every algorithm, each admitting `count` at once.
fn shapes(count: u64) -> impl Iterator<Item = Limit> {
    timed(count).into_iter().chain([Limit::concurrent(count)])
}

/// Makes a module with a test for each scenario, for the store that the factory makes: `conformance!(memory, |clock|
/// Memory::builder().clock(clock).build())`.
///
/// A store that settles in the background takes a third argument: `fn(&Store)`, which returns when everything has
/// arrived.
#[macro_export]
macro_rules! conformance {
    ($name:ident, $factory:expr) => {
        $crate::conformance!($name, $factory, |_| {});
    };
    ($name:ident, $factory:expr, $settled:expr) => {
        mod $name {
            use super::*;

            $crate::conformance! { @tests $factory, $settled;
                counting: counts_exactly_to_the_limit;
                counting: keys_are_apart;
                counting: limits_on_one_key_are_apart;
                counting: limits_with_one_name_and_algorithm_share_their_count;
                counting: a_cost_counts_like_that_many_requests;
                counting: a_cost_above_the_capacity_is_refused_for_good;
                counting: a_row_with_two_debits_is_charged_twice;
                counting: a_peek_spends_nothing;
                counting: an_unknown_key_is_fresh;
                counting: a_reset_forgets_what_was_spent;
                counting: a_request_without_charges_is_admitted;
                time: retry_after_is_exact;
                time: the_window_is_announced_exactly;
                time: three_a_second_are_three_a_second_for_ever;
                time: never_more_than_the_burst_however_long_the_idling;
                time: fixed_windows_end_at_the_border;
                time: a_window_of_100_ms_is_one;
                time: no_interval_of_a_log_holds_more_than_the_count;
                time: a_sliding_window_weighs_the_previous_one;
                time: a_clock_that_steps_back_neither_grants_nor_bans;
                several: charges_all_or_none_of_the_limits;
                several: charges_all_or_none_of_the_keys;
                several: a_refusal_names_the_limits_that_refuse;
                several: retry_after_satisfies_every_limit;
                several: limits_with_large_and_small_states_are_charged_together;
                several: sixteen_limits_are_charged_together;
                settling: what_is_given_back_can_be_spent_again;
                settling: a_part_can_be_given_back;
                settling: nothing_is_minted_by_giving_back_twice;
                settling: what_is_given_back_late_is_not_given_to_later_requests;
                settling: a_refund_does_not_reach_the_next_window;
                settling: giving_back_to_a_forgotten_key_does_nothing;
                settling: more_can_be_charged_than_was_estimated;
                settling: a_charge_on_top_reaches_a_key_that_has_recovered;
                settling: what_is_held_is_held_until_it_is_given_back;
                settling: what_nobody_waits_for_is_given_back;
                waiting: patience_books_ahead_in_order_of_arrival;
                waiting: a_request_that_would_wait_too_long_is_refused_at_once;
                waiting: a_booked_place_can_be_given_back;
                waiting: a_leaky_bucket_spreads_its_queue;
                waiting: no_request_waits_for_a_held_place;
                options: refused_attempts_count_if_the_limit_says_so;
                options: a_ban_lasts_and_attempts_do_not_prolong_it;
                options: a_ban_or_a_gap_is_told_where_only_giving_back_makes_room;
                options: a_ban_begins_after_some_refusals_if_the_limit_says_so;
                options: a_soft_limit_warns;
                options: a_shadow_refuses_nothing_and_tells_what_it_would;
                options: a_gap_is_kept_between_any_two;
                changes: what_was_spent_is_carried_over;
                changes: a_debt_drains_at_the_old_rate_until_the_change;
                changes: what_was_charged_before_a_change_mints_nothing;
                changes: what_was_charged_before_a_change_is_given_back;
                threads: threads_on_one_key_get_exactly_the_limit;
                threads: threads_on_several_limits_are_charged_all_or_none;
                threads: threads_that_give_back_leave_nothing_behind;
            }
        }
    };
    (@tests $factory:expr, $settled:expr; $($group:ident: $scenario:ident;)*) => {$(
        #[test]
        fn $scenario() {
            $crate::conformance::$group::$scenario(&$crate::Subject::new($factory, $settled));
        }
    )*};
}
