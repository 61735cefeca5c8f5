//! Random requests.

use http::Request;
use sluicegate::adapter::{MatchedRoute, Peer};
use sluicegate_core::key::Claims;

/// Pseudo-random numbers, the same in every run.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        of[(self.0 >> 33) as usize % of.len()]
    }
}

/// A random request, in which each part that documents read is present or absent, valid or not.
pub(super) fn request(dice: &mut Dice) -> Request<()> {
    let path = dice.one_of(&[
        "/",
        "/login",
        "/LOGIN",
        "/%6cogin",
        "/api/7",
        "/api/7/items",
        "/pay?amount=2.5",
    ]);
    let query = dice.one_of(&[
        "",
        "?debug=1",
        "?debug",
        "?debug=1&debug=",
        "?amount=0.251",
        "?amount=much",
        "?k=a&k=b",
    ]);
    let target = if path.contains('?') { path.to_owned() } else { format!("{path}{query}") };
    let mut request = Request::builder().method(dice.one_of(&["GET", "POST", "PUT"])).uri(target);
    for (name, values) in [
        (
            "host",
            &["", "api.example.com", "API.example.com:8080", "example.com", "a.b.example.com"][..],
        ),
        ("x-api-key", &["", "", "secret", "other"]),
        ("x-beta", &["", "", "0", "1"]),
        ("x-tokens", &["", "7", "700", "70000", "-7", "seven"]),
        ("content-length", &["", "0", "1024", "1025", "9999999"]),
        ("cookie", &["", "session=a", "session=a; session=b", "lang=de"]),
        ("x-forwarded-for", &["", "192.0.2.7", "198.51.100.9, 10.0.0.2", "unknown"]),
    ] {
        match dice.one_of(values) {
            "" => {}
            value => request = request.header(name, value),
        }
    }
    let mut request = request.body(()).expect("a request");
    let extensions = request.extensions_mut();
    let peer = dice.one_of(&["192.0.2.1", "10.0.0.1", "2001:db8::1", "::ffff:198.51.100.1"]);
    extensions.insert(Peer(peer.parse().expect("an address")));
    if let route @ "/" | route @ "/api/{id}" = dice.one_of(&["", "/", "/api/{id}"]) {
        extensions.insert(MatchedRoute(route.into()));
    }
    let mut claims = Claims::new();
    for (name, values) in [
        ("plan", ["", "free", "paid", "partner", "unheard of"]),
        ("customer", ["", "acme", "big", "small", "new"]),
    ] {
        match dice.one_of(&values) {
            "" => {}
            value => claims = claims.with(name, value),
        }
    }
    extensions.insert(claims);
    request
}
