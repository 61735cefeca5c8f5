//! Working out the charge of a request does not allocate, and compiling a large file takes little memory.

use http::Request;
use sluicegate::adapter::{HttpView, Peer};
use sluicegate_config::{Diagnostic, Environment, Policies, PolicyError, read_toml};
use sluicegate_core::adapter::Charge;
use sluicegate_core::key::Claims;
use sluicegate_core::rule::Rule;

const POLICIES: &str = "
    [tiers.free]
    limits = [\"5/second\"]
    [tiers.partner]
    unlimited = true

    [[rules]]
    name = \"login\"
    key = \"ip\"
    limits = [\"log 5/minute\"]
    when = { method = \"POST\", path = \"/login\" }

    [[rules]]
    name = \"search\"
    key = [{ first = [{ header = \"x-api-key\" }, \"ip\"] }, \"method\"]
    limits = [\"10/second\"]
    when = { path = [\"/search\", \"/find/{what}/*\"], host = \"*.example.com\", query = { q = true } }

    [[rules]]
    name = \"api\"
    key = { claim = \"customer\" }
    tiers = { by = { claim = \"plan\" }, default = \"free\" }
    when = { path = \"/api/*\", not = { header = { x-internal = \"1\" } } }

    [[rules]]
    name = \"nights\"
    key = \"global\"
    limits = [\"10/second\"]
    cases = [{ when = { hours = { between = [\"22:00\", \"06:00\"] } }, limits = [\"20/second\"] }]
    when = { path = \"/nights\" }
";

#[test]
fn nothing_is_allocated_for_a_charge_of_one_limit() {
    let document = read_toml(POLICIES).expect("a document");
    let policies = Policies::new(&document, &Environment::new()).expect("policies");
    for (method, path) in [
        ("POST", "/login"),
        ("GET", "/search?q=rust"),
        ("GET", "/api/7"),
        ("GET", "/nights"),
        ("GET", "/"),
    ] {
        let mut request =
            Request::builder().method(method).uri(path).header("host", "www.example.com");
        let extensions = request.extensions_mut().expect("a request");
        extensions.insert(Peer("192.0.2.7".parse().expect("an address")));
        extensions.insert(Claims::new().with("customer", "acme").with("plan", "free"));
        let request = request.body(()).expect("a request");
        let view: HttpView<'_, ()> = HttpView::new(&request);
        let debit = || {
            let mut charge = Charge::new();
            policies.charge(&view, &mut charge).expect("a charge");
            charge.len()
        };
        // The first looks at the clock and the time zone.
        let expected = usize::from(path != "/");
        assert_eq!(debit(), expected, "{path}");
        let counted = allocation_counter::measure(|| assert_eq!(debit(), expected));
        assert_eq!(counted.count_total, 0, "{method} {path}");
    }
}

/// The most bytes that were in use while a file with this number of rules and customers was compiled.
fn compiled(rules: usize, customers: usize, tiers: &str, tier: &str) -> (u64, Option<PolicyError>) {
    let rule = |at| {
        format!(
            "[[rules]]\nname = \"r{at}\"\nkey = {{ claim = \"c\" }}\n\
             tiers = {{ customer = {{ claim = \"c\" }}, default = \"t0\" }}\n"
        )
    };
    let rules: String = (0..rules).map(rule).collect();
    let customer = |at| format!("customer{at} = \"{tier}\"\n");
    let customers: String = (0..customers).map(customer).collect();
    let text = format!("{rules}{tiers}[customers]\n{customers}");
    let document = read_toml(&text).expect("a document");
    let mut error = None;
    let used = allocation_counter::measure(|| {
        error = Policies::new(&document, &Environment::new()).err();
    });
    (used.bytes_max, error)
}

#[test]
fn the_customers_of_a_file_are_kept_once_for_all_its_rules() {
    const CUSTOMERS: usize = 10_000;
    let tiers = "[tiers.t0]\nlimits = [\"5/second\"]\n[tiers.t1]\nlimits = [\"9/second\"]\n";
    let (one, none) = compiled(1, CUSTOMERS, tiers, "t1");
    assert_eq!(none, None);
    let (many, none) = compiled(16, CUSTOMERS, tiers, "t1");
    assert_eq!(none, None);
    assert!(many < one + one / 2, "{one} bytes for one rule, {many} for 16");
}

#[test]
fn very_many_errors_take_little_memory_and_the_first_are_told() {
    const CUSTOMERS: usize = 10_000;
    let tier = |at| format!("[tiers.t{at}]\nlimits = [\"5/second\"]\n");
    let tiers: String = (0..1_000).map(tier).collect();
    let (used, error) = compiled(1, CUSTOMERS, &tiers, "renamed");
    assert!(used < 4 << 20, "{used} bytes");
    let error = error.expect("there is no such tier");
    assert_eq!((error.iter().count(), error.more()), (100, CUSTOMERS - 100));
    let paths: Vec<_> = error.iter().take(3).map(Diagnostic::path).collect();
    assert_eq!(paths, ["customers.customer0", "customers.customer1", "customers.customer2"]);
    let first = error.iter().next().map(Diagnostic::message).expect("one");
    assert!(first.ends_with("`t114` or `t115` or one of 980 more"), "{first}");
}
