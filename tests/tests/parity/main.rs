//! One table of scenarios, sent over real sockets to a server of each adapter: tower under hyper, axum,
//! and actix-web with four workers. What one answers, all answer.

mod client;
mod servers;
mod table;

/// Runs a scenario of the table against each adapter.
macro_rules! parity {
    ($($scenario:ident)*) => {
        mod tower {
            $(#[test] fn $scenario() { crate::table::$scenario::run(&crate::servers::Tower); })*
        }
        mod axum {
            $(#[test] fn $scenario() { crate::table::$scenario::run(&crate::servers::Axum); })*
        }
        mod actix {
            $(#[test] fn $scenario() { crate::table::$scenario::run(&crate::servers::Actix); })*
        }
    };
}

parity! {
    limits_each_client_and_says_when_to_come_back
    limits_by_the_peers_address
    believes_only_named_proxies
    several_limits_are_charged_all_or_none
    a_missing_key_is_the_clients_mistake
    a_route_counts_for_itself
    old_fields_on_request
    no_fields_on_request
    counts_only_failures
    settles_to_what_it_cost
    redirects
    degrades
    shadows
    bans
    waits_in_order
    exactly_the_limit_is_admitted_from_many_connections
    a_full_store_is_503_when_told_to_refuse
}
