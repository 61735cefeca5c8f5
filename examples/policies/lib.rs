//! The policies of a public API, in code: the same as `product.toml` says.

use std::time::Duration;

use sluicegate::adapter::{Framework, HttpView};
use sluicegate::clock::Clock;
use sluicegate::condition::Hours;
use sluicegate::cost::{cost_from, reply_header};
use sluicegate::key::{Method, Path};
use sluicegate::rule::Rule;
use sluicegate::{Claim, First, Global, Header, Ip, Limit, Tiers, when};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);
const MONTH: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The rules of `product.toml`. `clock` is the clock for hours.
pub fn in_code<B, W: Framework>(clock: impl Into<Clock>) -> impl for<'a> Rule<HttpView<'a, B, W>> {
    let customer = Claim("customer");
    // Clients that are not known are told apart by their addresses.
    let who = || First((customer, Ip::peer()));

    // Paying customers may do more. Limits are named after the tiers and their periods: `api/second`.
    let tiers = Tiers::new("api")
        .tier("free", [Limit::per_second(5).burst(10), monthly(10_000)])
        .tier("paid", [Limit::per_second(50).burst(100), monthly(1_000_000)])
        .unlimited("partner")
        .otherwise("free");
    tiers.assign_all([("acme", "paid"), ("initech", "partner")]).expect("these tiers are there");
    let api = tiers.by_customer(customer).by(who()).when(Path.matches("/v1/{*rest}"));

    // A budget of tokens: what the client expects is reserved, then settled to what the answer took.
    let tokens = Limit::per_minute(20_000)
        .soft(16_000)
        .named("tokens")
        .carried()
        .by(who())
        .cost(cost_from(Header("x-expected-tokens")).default(500).at_most(4_000))
        .settle_cost(reply_header("x-tokens-used"))
        .when((Method.is("POST"), Path.matches("/v1/completions")));

    // Guessing passwords: five failures in a quarter of an hour. A client that is refused three more times is banned.
    let login = Limit::sliding_log(5, 15 * MINUTE)
        .ban(HOUR)
        .ban_after(3, 10 * MINUTE)
        .named("login")
        .carried()
        .by(Ip::peer())
        .count_if(|status| status == 401)
        .when((Method.is("POST"), Path.matches("/login")));

    // Expensive work for the database has to wait for the night, or go slowly.
    let night = Hours::in_zone("Europe/Berlin")
        .and_then(|hours| hours.between("22:00", "06:00"))
        .expect("there is such a place, and there are such hours")
        .clock(clock);
    let export = when(night, Limit::per_second(20).named("export"))
        .otherwise(Limit::per_second(2).named("export"))
        .by(Global)
        .when(Path.matches("/v1/export"));

    (api, tokens, login, export)
}

/// A number of requests a month, with a warning from four fifths on.
fn monthly(requests: u64) -> Limit {
    Limit::fixed_window(requests, MONTH).soft(requests / 5 * 4)
}
