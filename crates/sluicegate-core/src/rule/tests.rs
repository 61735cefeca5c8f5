use std::net::IpAddr;

use super::*;
use crate::cost::{cost_fn, cost_from};
use crate::key::{Const, Global, Ip, KeyBuf, Missing, Optional, Query, Readings, View};
use crate::limit::{Limit, Limits, MAX_LIMITS};
use crate::store::charge::Charge;

/// A request with a size from a client.
struct Request {
    paid: bool,
    bytes: u64,
    user: Option<&'static str>,
    readings: Readings,
}

fn free() -> Request {
    Request { paid: false, bytes: 300, user: Some("user=7"), readings: Readings::new() }
}

impl View for Request {
    type Request = Self;

    fn request(&self) -> &Self {
        self
    }

    fn method(&self) -> &str {
        "GET"
    }

    fn path(&self) -> &str {
        "/"
    }

    fn routed_path(&self) -> &str {
        "/"
    }

    fn readings(&self) -> &Readings {
        &self.readings
    }

    fn query(&self) -> Option<&str> {
        self.user
    }

    fn host(&self) -> Option<&str> {
        None
    }

    fn route(&self) -> Option<&str> {
        None
    }

    fn peer(&self) -> Option<IpAddr> {
        None
    }

    fn header_lines<'a>(&'a self, _: &'a str) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        std::iter::empty()
    }

    fn extension<T: Send + Sync + 'static, O>(&self, _: impl FnOnce(&T) -> O) -> Option<O> {
        None
    }

    fn peer_hint(&self) -> &'static str {
        ""
    }

    fn is_route(&self, _: &str) -> Option<bool> {
        Some(false)
    }

    fn route_hint(&self) -> &'static str {
        ""
    }
}

/// The limits and costs that `request` is charged.
fn charge(rule: &impl Rule<Request>, request: &Request) -> Result<Vec<(Limit, u64)>, Missing> {
    let mut charge = Charge::new();
    rule.charge(request, &mut charge)?;
    Ok(charge.debits().map(|debit| (debit.limit, debit.cost)).collect())
}

fn known(rule: &impl KnownLimits) -> Vec<Limit> {
    let mut known = Vec::new();
    rule.each_limit(&mut |limit| known.push(*limit));
    known
}

const MINUTE: Limit = Limit::per_minute(10);
const HOUR: Limit = Limit::per_hour(100);

#[test]
fn a_rule_owes_one_to_each_of_its_limits() {
    let rule = Limits::from([MINUTE, HOUR]).by(Global);
    assert_eq!(charge(&rule, &free()), Ok(vec![(MINUTE, 1), (HOUR, 1)]));
    assert_eq!(known(&rule), [MINUTE, HOUR]);
}

#[test]
fn a_tuple_owes_what_each_of_its_rules_owes() {
    let rule = (MINUTE.by(Global).cost(3), (HOUR.by(Global), MINUTE.by(Const("other"))));
    assert_eq!(charge(&rule, &free()), Ok(vec![(MINUTE, 3), (HOUR, 1), (MINUTE, 1)]));
    assert_eq!(known(&rule), [MINUTE, HOUR, MINUTE]);
}

#[test]
fn the_cost_can_be_worked_out_from_the_request() {
    let rule = MINUTE.by(Global).cost(cost_fn(|request: &Request| request.bytes / 100));
    assert_eq!(charge(&rule, &free()), Ok(vec![(MINUTE, 3)]));
}

#[test]
fn the_limit_can_be_chosen_by_the_request() {
    let rule = choose(|request: &Request| if request.paid { HOUR } else { MINUTE }).by(Global);
    assert_eq!(charge(&rule, &free()), Ok(vec![(MINUTE, 1)]));
    assert_eq!(charge(&rule, &Request { paid: true, ..free() }), Ok(vec![(HOUR, 1)]));
    assert_eq!(known(&rule), []);
}

#[test]
fn a_rule_can_apply_to_some_requests_only() {
    let rule = MINUTE.by(Global).when(|request: &Request| !request.paid);
    assert_eq!(charge(&rule, &free()), Ok(vec![(MINUTE, 1)]));
    assert_eq!(charge(&rule, &Request { paid: true, ..free() }), Ok(vec![]));
    assert_eq!(known(&rule), [MINUTE]);
}

#[test]
fn a_rule_can_write_the_charge_itself() {
    let rule = rule_fn(|request: &Request, charge: &mut Charge| {
        charge.add(MINUTE, KeyBuf::new(), request.bytes)?;
        charge.add(HOUR, KeyBuf::new(), 1)
    });
    assert_eq!(charge(&rule, &free()), Ok(vec![(MINUTE, 300), (HOUR, 1)]));
    assert_eq!(known(&rule), []);
}

/// A key that is missing is never silently unlimited.
#[test]
fn a_missing_key_is_an_error_unless_it_is_optional() {
    let nobody = Request { user: None, ..free() };
    let missing = charge(&MINUTE.by(Query("user")), &nobody).expect_err("no user");
    assert!(missing.is_client());
    assert!(charge(&(HOUR.by(Global), MINUTE.by(Query("user"))), &nobody).is_err());
    assert_eq!(charge(&MINUTE.by(Optional(Query("user"))), &nobody), Ok(vec![]));
    assert_eq!(charge(&MINUTE.by(Optional(Query("user"))), &free()), Ok(vec![(MINUTE, 1)]));
}

/// A limit on trial, beside one that decides, in either order.
#[test]
fn a_shadow_whose_key_or_cost_is_missing_refuses_nothing() {
    let nobody = Request { user: None, ..free() };
    let trial = || MINUTE.named("new").shadow().by(Query("user"));
    assert_eq!(charge(&(HOUR.by(Global), trial()), &nobody), Ok(vec![(HOUR, 1)]));
    assert_eq!(charge(&(trial(), HOUR.by(Global)), &nobody), Ok(vec![(HOUR, 1)]));
    assert_eq!(charge(&trial(), &nobody), Ok(vec![]));
    assert_eq!(charge(&trial().cost(cost_from(Query("user"))), &nobody), Ok(vec![]));
    let costly = MINUTE.shadow().by(Global).cost(cost_from(Query("user")));
    assert_eq!(charge(&costly, &nobody), Ok(vec![]));
    let two = Limits::from([MINUTE.shadow(), HOUR.shadow()]).by(Query("user"));
    assert_eq!(charge(&two, &nobody), Ok(vec![]));
    assert_eq!(charge(&two, &free()).map(|charged| charged.len()), Ok(2));
    // One of these decides, and cannot without the key.
    let mixed = Limits::from([MINUTE.shadow(), HOUR]).by(Query("user"));
    assert!(charge(&mixed, &nobody).expect_err("no user").is_client());
}

/// The peer of these requests is not known, which the server has to mend.
#[test]
fn a_shadow_whose_condition_cannot_be_evaluated_refuses_nothing() {
    let inside = || Ip::peer().within(["10.0.0.0/8"]).expect("a network");
    let trial = MINUTE.named("new").shadow().by(Global).when(inside());
    assert_eq!(charge(&(HOUR.by(Global), trial), &free()), Ok(vec![(HOUR, 1)]));
    assert!(charge(&MINUTE.by(Global).when(inside()), &free()).expect_err("no peer").is_server());
}

#[test]
fn too_many_limits_are_an_error() {
    let limits = |from: u64| -> Vec<_> { (from..from + 9).map(Limit::per_minute).collect() };
    let rule = (Limits::from(limits(1)).by(Global), Limits::from(limits(10)).by(Global));
    assert!(known(&rule).len() > MAX_LIMITS);
    assert!(charge(&rule, &free()).expect_err("18 limits").is_server());
}
