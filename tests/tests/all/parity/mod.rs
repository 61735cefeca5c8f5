//! One table of scenarios, sent over real sockets to a server of each adapter: tower under hyper, axum, and actix-web
//! with four workers. All adapters give the same answers, with every store.

mod client;
mod hazards;
mod servers;
#[cfg(unix)]
mod sockets;
mod stores;
mod table;

/// Runs the scenarios of a table against each adapter, over a store.
macro_rules! parity {
    ($adapter:ident in $store:expr; $($table:ident: $($scenario:ident)*;)*) => {$(
        mod $table {$(
            #[test]
            fn $scenario() {
                crate::parity::$table::$scenario::run(&crate::parity::servers::$adapter($store));
            }
        )*}
    )*};
    ($store:expr; $($rest:tt)*) => {
        mod tower { parity! { Tower in $store; $($rest)* } }
        mod axum { parity! { Axum in $store; $($rest)* } }
        mod actix { parity! { Actix in $store; $($rest)* } }
    };
}

/// Scenarios for every store.
macro_rules! everywhere {
    ($store:expr) => {
        parity! { $store;
            table:
                limits_each_client_and_says_when_to_come_back
                limits_by_the_peers_address
                believes_only_named_proxies
                several_limits_are_charged_all_or_none
                a_missing_key_is_the_clients_mistake
                a_route_counts_for_itself
                fields_stay_out_of_responses_that_shared_caches_store
                old_fields_on_request
                no_fields_on_request
                counts_only_failures
                settles_to_what_it_cost
                redirects
                degrades
                shadows
                bans
                what_never_fits_is_told_so
                what_a_limit_within_refuses_costs_nothing
                exactly_the_limit_is_admitted_from_many_connections;
            hazards:
                ipv4_mapped_ipv6_all_in_one_bucket
                leftmost_or_first_line_of_a_forwarding_header
                an_unparseable_hop_is_skipped_and_the_attackers_believed
                client_sent_forwarded_is_preferred_over_the_proxys_header
                key_extractor_ignored
                absolute_form_names_another_host_than_the_field
                two_host_fields
                a_host_in_a_file_of_policies_is_read_as_in_code
                a_spelling_of_the_path_is_a_fresh_budget
                no_key_means_no_limit
                retry_after_rounded_down
                sub_second_windows_become_0_s
                per_second_60_means_one_a_minute;
        }
    };
}

everywhere!(crate::parity::stores::InMemory);

/// Scenarios for a full memory, and those that count sleepers while the clock is turned; the store in Redis sleeps
/// for each request.
mod in_memory {
    parity! { crate::parity::stores::InMemory;
        table:
            waits_in_order
            a_place_is_held_until_the_body_has_ended
            what_was_never_served_is_given_back
            a_full_store_is_503_when_told_to_refuse;
        hazards:
            store_failure_answered_as_429
            a_limit_that_refuses_when_full_answers_503;
    }
}

mod redis {
    everywhere!(crate::parity::stores::InRedis);
}

mod nowhere {
    parity! { crate::parity::stores::Nowhere;
        hazards:
            store_that_is_gone_answered_as_429;
    }
}
