//! Working out the charge of a request does not allocate.

use http::Request;
use sluicegate::adapter::{HttpView, Peer};
use sluicegate_config::{Environment, Policies, read_toml};
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
