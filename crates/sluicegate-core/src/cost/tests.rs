use super::*;
use crate::cost::account::Reply;
use crate::key::testing::Request;
use crate::key::{Global, Header, Optional, Query};
use crate::limit::Limit;
use crate::rule::Rule;
use crate::store::charge::Charge;

fn cost(cost: &impl CostOf<Request>, request: &Request) -> Result<u64, String> {
    cost.of(request).map_err(|missing| {
        assert!(missing.is_client(), "{missing}");
        missing.to_string()
    })
}

/// The cost of a request with these lines of the header `x-n`.
fn header(of: CostFrom<Header>, lines: &[&str]) -> Result<u64, String> {
    cost(&of, &lines.iter().fold(Request::default(), |request, line| request.header("x-n", line)))
}

fn from() -> CostFrom<Header> {
    cost_from(Header("x-n"))
}

#[test]
fn a_header_says_what_its_request_costs() {
    assert_eq!(header(from(), &["17"]), Ok(17));
    assert_eq!(header(from(), &[" 17\t"]), Ok(17));
    assert_eq!(header(from().per(5), &["17"]), Ok(4));
    assert_eq!(header(from().scaled(100), &["0.255"]), Ok(26));
    assert_eq!(header(from().scaled(100).per(25), &["0.26"]), Ok(2));
}

#[test]
fn a_query_parameter_says_what_its_request_costs() {
    let request = |query: &str| Request { query: Some(query.into()), ..Request::default() };
    let from = cost_from(Query(String::from("n")));
    for query in ["n=17", "a=1&%6e=1%37", "n=17&n=17"] {
        assert_eq!(cost(&from, &request(query)), Ok(17), "{query}");
    }
    assert_eq!(
        cost(&from, &request("n=x")).unwrap_err(),
        "the request lacks a whole number in the `n` query parameter"
    );
    assert_eq!(
        cost(&from, &request("n=1&n=2")).unwrap_err(),
        "the request has to have exactly one `n` query parameter"
    );
    assert_eq!(cost(&from.default(3), &request("m=1")), Ok(3));
}

#[test]
fn no_request_costs_less_than_one_unless_said() {
    assert_eq!(header(from(), &["0"]), Ok(1));
    assert_eq!(header(from().scaled(100), &["0.0"]), Ok(1));
    assert_eq!(header(from().at_least(0), &["0"]), Ok(0));
    assert_eq!(header(from().at_least(5), &["4"]), Ok(5));
    assert!(header(from(), &["-1"]).is_err());
}

#[test]
fn what_is_too_much_is_refused_with_the_bound_in_the_clients_own_unit() {
    assert_eq!(header(from().at_most(100), &["100"]), Ok(100));
    assert_eq!(
        header(from().at_most(100), &["101"]).unwrap_err(),
        "the request lacks a whole number of at most 100 in the `x-n` header"
    );
    assert_eq!(header(from().at_most(100), &["?"]), header(from().at_most(100), &["101"]));
    assert_eq!(
        header(from().at_most(500).scaled(100), &["5.01"]).unwrap_err(),
        "the request lacks a decimal number of at most 5 in the `x-n` header"
    );
    assert_eq!(
        header(from().at_most(3).per(1_000), &["3001"]).unwrap_err(),
        "the request lacks a whole number of at most 3000 in the `x-n` header"
    );
    assert_eq!(
        header(from(), &["99999999999999999999"]).unwrap_err(),
        "the request lacks a whole number of at most 18446744073709551615 in the `x-n` header"
    );
}

#[test]
fn only_an_absent_number_has_a_default() {
    assert_eq!(header(from(), &[]).unwrap_err(), "the request lacks the `x-n` header");
    assert_eq!(header(from().default(7), &[]), Ok(7));
    assert_eq!(header(from().default(7), &[" "]), Ok(7));
    assert!(header(from().default(7), &["many"]).is_err());
    assert!(header(from().default(7), &["1", "2"]).is_err());
}

#[test]
fn a_header_sent_twice_has_to_say_the_same() {
    assert_eq!(header(from(), &["7", "7 "]), Ok(7));
    assert_eq!(
        header(from(), &["7", "8"]).unwrap_err(),
        "the request has to have exactly one `x-n` header"
    );
    assert!(header(from(), &["7", ""]).is_err());
}

#[test]
fn a_body_costs_by_its_declared_length() {
    let length = content_length().per(1_000);
    let request = |method: &str, lines: &[(&str, &str)]| {
        let request = Request { method: method.into(), ..Request::default() };
        lines.iter().fold(request, |request, (name, value)| request.header(name, value))
    };
    let long = [("content-length", "1001")];
    assert_eq!(cost(&length, &request("POST", &long)), Ok(2));
    assert_eq!(cost(&length, &request("GET", &long)), Ok(2));
    assert_eq!(cost(&length, &request("GET", &[])), Ok(1));
    assert_eq!(
        cost(&length, &request("POST", &[])).unwrap_err(),
        "the request lacks the `content-length` header"
    );
    // Leaving out the length does not make a request cheap.
    let chunked = [("transfer-encoding", "chunked")];
    assert!(cost(&length, &request("GET", &chunked)).is_err());
    assert_eq!(cost(&length.default(64), &request("GET", &chunked)), Ok(64));
    assert_eq!(cost(&length.default(64), &request("POST", &[])), Ok(64));
    // Nor does a length that `transfer-encoding` overrides: actix-web shows both headers, and reads the chunks.
    let both = [("content-length", "1"), ("transfer-encoding", "chunked")];
    assert!(cost(&length, &request("POST", &both)).is_err());
    assert_eq!(cost(&length.default(64), &request("POST", &both)), Ok(64));
}

#[test]
fn bounds_that_cross_are_refused() {
    let panics = |make: fn() -> CostFrom<Header>| std::panic::catch_unwind(make).is_err();
    assert!(panics(|| from().at_least(5).at_most(4)));
    assert!(panics(|| from().at_most(0)));
    assert!(panics(|| from().per(0)));
    assert!(panics(|| from().scaled(0)));
    assert!(!panics(|| from().at_most(1)));
}

/// The rule is asked for its key first. A request that is not charged need not state its cost.
#[test]
fn a_request_that_owes_nothing_may_be_silent_about_its_cost() {
    let charge = |rule: &dyn Rule<Request>, request: &Request| {
        let mut charge = Charge::new();
        rule.charge(request, &mut charge)
            .map(|()| charge.debits().map(|debit| debit.cost).collect())
    };
    let rule = Limit::per_minute(10).by(Optional(Header("x-key"))).cost(from());
    let silent = Request::default().header("x-key", "a");
    assert_eq!(charge(&rule, &Request::default()), Ok(vec![]));
    assert_eq!(charge(&rule, &silent).unwrap_err().what(), "the `x-n` header");
    assert_eq!(charge(&rule, &silent.header("x-n", "3")), Ok(vec![3]));

    // If one rule fails, the charges of the other rules are dropped.
    let both = (Limit::per_hour(10).by(Global), Limit::per_minute(10).by(Global).cost(from()));
    assert!(charge(&both, &Request::default()).is_err());
}

struct Response(Option<&'static str>);

impl Reply for Response {
    fn status(&self) -> u16 {
        200
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        self.0.filter(|_| name == "x-used").map(str::as_bytes)
    }

    fn cost(&self) -> Option<u64> {
        None
    }

    fn running(&self) -> Option<crate::cost::RunningCost> {
        None
    }

    fn is_refusal(&self) -> bool {
        false
    }
}

#[test]
fn a_response_says_what_its_request_has_cost() {
    let settled = |response| {
        let rule = Limit::per_minute(100).by(Global).cost(10).settle_cost(reply_header("x-used"));
        let mut charge = Charge::new();
        rule.charge(&Request::default(), &mut charge).unwrap();
        charge.only().unwrap().spent(&Response(response))
    };
    assert_eq!(settled(Some("3")), 3);
    assert_eq!(settled(Some(" 30 ")), 30);
    assert_eq!(settled(Some("0")), 0);
    for silent in [None, Some(""), Some("0.5"), Some("many"), Some("99999999999999999999")] {
        assert_eq!(settled(silent), 10);
    }
}

#[test]
fn a_response_can_say_it_in_decimals() {
    let cents = reply_header_scaled(String::from("x-used"), 100);
    assert_eq!(cents(&Response(Some("0.251"))), Some(26));
    assert_eq!(cents(&Response(Some("2"))), Some(200));
    assert_eq!(cents(&Response(Some("x"))), None);
    assert_eq!(cents(&Response(Some("18446744073709551615"))), None);
}
