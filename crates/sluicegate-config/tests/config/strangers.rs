//! The budget of requests that name no client, and of clients behind a translator.

use http::Request;
use sluicegate::adapter::{HttpView, Peer};
use sluicegate_config::{Environment, Policies, read_toml};
use sluicegate_core::adapter::Charge;
use sluicegate_core::key::{Claims, Key, KeyBuf};
use sluicegate_core::rule::Rule;
use sluicegate_core::{Claim, First, Ip, Limit};

fn policies(text: &str) -> Policies {
    let document = read_toml(text).expect("a document");
    Policies::new(&document, &Environment::new()).expect("policies")
}

fn request(peer: &str) -> Request<()> {
    let mut request = Request::get("/").body(()).expect("a request");
    request.extensions_mut().insert(Peer(peer.parse().expect("an address")));
    request
}

fn debit(policies: &Policies, request: &Request<()>) -> (Limit, KeyBuf) {
    let mut charge = Charge::new();
    policies.charge(&HttpView::<_>::new(request), &mut charge).expect("no error");
    let debit = charge.debits().next().expect("a limit");
    (debit.limit, debit.key)
}

#[test]
fn a_stranger_without_claims_is_in_the_default_tier() {
    let policies = policies(
        r#"
        [tiers.free]
        limits = ["5/second"]
        [tiers.paid]
        limits = ["50/second"]
        [customers]
        acme = "paid"
        [[rules]]
        name = "a"
        key = { first = [{ claim = "customer" }, "ip"] }
        tiers = { customer = { claim = "customer" }, default = "free" }
        "#,
    );
    let stranger = request("192.0.2.1");
    let (limit, key) = debit(&policies, &stranger);
    assert_eq!(limit.count(), 5);
    let mut expected = KeyBuf::new();
    First((Claim("customer"), Ip::peer()))
        .write(&HttpView::<_>::new(&stranger), &mut expected)
        .expect("a key");
    assert_eq!(key, expected);
}

/// Claims that are absent are claims without a name, in every place where a file reads one.
#[test]
fn a_stranger_is_charged_like_a_client_whose_claims_are_empty() {
    for rule in [
        "key = 'ip'\nlimits = ['5/second']\nwhen = { claim = { customer = true } }",
        "key = 'ip'\nlimits = ['5/second']\nwhen = { claim = { customer = false } }",
        "key = 'ip'\nlimits = ['5/second']\nwhen = { claim = { customer = 'a' } }",
        "key = 'ip'\nlimits = ['5/second']\nwhen = { not = { claim = { customer = ['a', 'b'] } } }",
        "key = 'ip'\nlimits = ['5/second']\nwhen = { any = [{ claim = { a = 'b' } }, { method = 'GET' }] }",
        "key = 'ip'\nlimits = ['5/second']\ncases = [{ when = { claim = { a = true } }, limits = ['7/second'] }]",
        "key = { optional = { claim = 'customer' } }\nlimits = ['5/second']",
        "key = { first = [{ claim = 'a' }, { claim = 'b' }, 'ip'] }\nlimits = ['5/second']",
        "key = { claim = 'customer' }\nlimits = ['5/second']",
        "key = 'ip'\ntiers = { by = { claim = 'plan' }, default = 'free' }",
        "key = 'ip'\ntiers = { customer = { claim = 'customer' }, default = 'free' }",
    ] {
        let text = format!("[tiers.free]\nlimits = ['5/second']\n[[rules]]\nname = 'a'\n{rule}");
        let policies = policies(&text);
        let charged = |request: &Request<()>| {
            let mut charge = Charge::new();
            let charged = policies.charge(&HttpView::<_>::new(request), &mut charge);
            let debits: Vec<_> = charge.debits().map(|debit| (debit.limit, debit.key)).collect();
            format!("{charged:?} {debits:?}")
        };
        let stranger = request("192.0.2.1");
        let mut client = request("192.0.2.1");
        client.extensions_mut().insert(Claims::new());
        assert_eq!(charged(&stranger), charged(&client), "{rule}");
    }
}

#[test]
fn an_address_that_a_translator_made_is_the_one_within() {
    let policies = policies(
        r#"
        nat64 = ["64:ff9b::/96", "64:ff9b:1::/48"]
        [[rules]]
        name = "a"
        key = "ip"
        limits = ["5/second"]
        "#,
    );
    let of = |peer: &str| debit(&policies, &request(peer)).1;
    assert_eq!(of("64:ff9b::192.0.2.1"), of("192.0.2.1"));
    assert_eq!(of("64:ff9b:1:c000:2:100::"), of("192.0.2.1"));
    assert_ne!(of("64:ff9b::192.0.2.1"), of("64:ff9b::192.0.2.2"));
}

#[test]
fn what_is_no_prefix_of_a_translator_is_a_problem_of_its_line() {
    for (wrong, column) in [("\"64:ff9b::/97\"", 9), ("[\"64:ff9b::/96\", \"10.0.0.0/8\"]", 26)] {
        let text = format!(
            "nat64 = {wrong}\n[[rules]]\nname = \"a\"\nkey = \"ip\"\nlimits = [\"5/second\"]"
        );
        let document = read_toml(&text).expect("a document");
        let problems = Policies::new(&document, &Environment::new()).expect_err("a problem");
        let said = problems.to_string();
        assert!(said.contains("no prefix of a translator"), "{said}");
        assert!(said.starts_with(&format!("1:{column}: ")), "{said}");
    }
}
