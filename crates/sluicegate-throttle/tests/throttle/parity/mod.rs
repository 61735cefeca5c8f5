//! One table of cases for the throttle, run through tower, axum and actix-web: what one answers, all answer.

mod announcing;
mod client;
mod guarding;
mod handlers;
mod leaving;
mod measuring;
mod nested;
mod refusing;
mod servers;
mod waiting;

/// Runs the cases of each table against each framework.
macro_rules! parity {
    ($server:ident; $($table:ident: $($case:ident)*;)*) => {$(
        mod $table {$(
            #[test]
            fn $case() {
                actix_web::rt::System::new().block_on(crate::parity::$table::$case(&crate::parity::servers::$server));
            }
        )*}
    )*};
    ($($rest:tt)*) => {
        mod tower { parity! { Tower; $($rest)* } }
        mod axum { parity! { Axum; $($rest)* } }
        mod actix { parity! { Actix; $($rest)* } }
    };
}

parity! {
    waiting:
        a_request_is_admitted_and_runs_until_its_body_has_ended
        a_request_waits_until_another_has_ended
        a_more_critical_request_evicts
        the_most_critical_request_is_started_first
        a_stated_criticality_is_believed_from_named_peers_only
        garbage_in_header_fields_is_the_default_and_counted
        a_deadline_that_cannot_be_met_is_refused_at_once
        a_queued_request_is_answered_at_its_deadline
        exempt_requests_pass_a_full_queue_uncounted
        a_handler_can_say_that_its_response_counts_until_its_head;
    refusing:
        a_full_queue_is_503_with_the_time_of_the_backlog_and_a_problem
        a_call_of_grpc_is_unavailable_and_told_when_to_retry
        a_redirect_for_what_is_shed
        the_operator_s_own_response_sees_the_request
        a_degraded_request_is_served_less_up_to_a_bound
        a_request_that_waited_in_vain_is_degraded;
    measuring:
        a_request_costs_the_time_that_its_handler_and_its_body_are_polled
        a_reported_cost_goes_instead_or_on_top
        overload_lowers_the_limit_and_other_errors_do_not
        an_adaptive_limit_hears_of_clients_that_leave_unanswered
        routes_are_predicted_apart;
    announcing:
        every_response_says_which_classes_are_admitted
        no_level_is_in_a_response_that_caches_may_store_for_others
        nothing_is_announced_unless_it_is_asked_for;
    guarding:
        a_shed_request_gives_its_charges_and_places_back
        a_client_that_leaves_the_queue_gives_its_charges_back
        a_refusal_that_panics_gives_its_charges_back
        a_limit_decides_before_anything_queues
        a_limit_is_generous_while_the_throttle_has_room;
    leaving:
        nothing_is_held_after_a_client_leaves_at_any_point
        one_that_leaves_after_it_was_told_to_start_lets_the_next_one_start
        a_handler_that_panics_gives_its_place_back
        a_handler_that_never_ends_gives_its_place_back_when_its_client_leaves;
}
