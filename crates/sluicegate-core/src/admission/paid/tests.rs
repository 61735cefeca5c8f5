use std::time::Duration;

use super::record::NoLines;
use super::*;
use crate::admission::unserved::{listen_unserved, note_spent};
use crate::clock::ManualClock;
use crate::cost::account::{Account, Due};
use crate::key::{KeyBuf, Part};
use crate::limit::Limits;
use crate::store::memory::Memory;

/// A response, as far as it matters.
struct Response {
    status: u16,
    cost: Option<u64>,
    is_refusal: bool,
}

impl Response {
    const fn of(status: u16) -> Self {
        Self { status, cost: None, is_refusal: false }
    }
}

impl Reply for Response {
    fn status(&self) -> u16 {
        self.status
    }

    fn header(&self, _: &str) -> Option<&[u8]> {
        None
    }

    fn cost(&self) -> Option<u64> {
        self.cost
    }

    fn running(&self) -> Option<crate::cost::RunningCost> {
        None
    }

    fn is_refusal(&self) -> bool {
        self.is_refusal
    }
}

const RATE: Limit = Limit::per_minute(60);
const HELD: Limit = Limit::concurrent(3);

impl ReplyHead for Response {
    fn record(&self) -> ReplyRecord {
        ReplyRecord::new(self, NoLines)
    }
}

struct Desk {
    store: Memory,
    enforcer: Arc<Enforcer<Memory>>,
    clock: ManualClock,
}

impl Desk {
    fn new() -> Self {
        let clock = ManualClock::new();
        let store = Memory::builder().capacity(10).clock(&clock).build();
        let enforcer = Arc::new(Enforcer::new(store.clone(), &Limits::from(RATE)));
        Self { store, enforcer, clock }
    }

    fn ticket(&self, charge: &Charge) -> Ticket<Memory> {
        let decision = self.store.take(charge).now().expect("room");
        Ticket::new(Arc::clone(&self.enforcer), charge.clone(), decision)
    }

    fn remaining(&self, limit: Limit) -> u64 {
        let charge = Charge::of(limit, alice(), 1);
        let outcome = self.store.peek(&charge).now().expect("room");
        outcome.decision(&charge).remaining().expect("one limit")
    }
}

fn alice() -> KeyBuf {
    let mut key = KeyBuf::new();
    "alice".write(&mut key);
    key
}

/// 10 of the rate, and a place.
fn both() -> Charge {
    on_account(None)
}

fn on_account(account: Option<Account>) -> Charge {
    let mut charge = Charge::of(HELD, alice(), 1);
    charge.add_on_account(RATE, alice(), 10, account).expect("two limits");
    charge
}

#[test]
fn a_settled_ticket_keeps_its_charge_and_gives_back_its_place() {
    let desk = Desk::new();
    let ticket = desk.ticket(&both());
    assert!(ticket.decision().is_admitted());
    assert_eq!((desk.remaining(RATE), desk.remaining(HELD)), (50, 2));
    ticket.settle(&Response::of(200));
    assert_eq!((desk.remaining(RATE), desk.remaining(HELD)), (50, 3));
}

/// Its client has gone, or the service failed.
#[test]
fn a_dropped_ticket_keeps_its_charge_and_gives_back_its_place() {
    let desk = Desk::new();
    drop(desk.ticket(&both()));
    assert_eq!((desk.remaining(RATE), desk.remaining(HELD)), (50, 3));
}

/// 10 of the rate, settled by what the response says.
fn by_cost() -> Account {
    Account::new(Due::Head, |reply, charged| reply.cost().unwrap_or(charged))
}

#[test]
fn what_a_response_says_was_used_is_owed_however_much_it_is() {
    for (used, minutes) in [(600, 10), (60_000, 1_000), (60_000_000, 1_000_000)] {
        let desk = Desk::new();
        let claims = Response { cost: Some(used), ..Response::of(200) };
        desk.ticket(&on_account(Some(by_cost()))).settle(&claims);
        // 60 a minute.
        desk.clock.advance(Duration::from_secs((minutes - 1) * 60));
        assert_eq!(desk.remaining(RATE), 0);
        desk.clock.advance(Duration::from_secs(60));
        assert_eq!(desk.remaining(RATE), 60);
    }
    let desk = Desk::new();
    let claims = Response { cost: Some(u64::MAX), ..Response::of(200) };
    desk.ticket(&on_account(Some(by_cost()))).settle(&claims);
    desk.clock.advance(Duration::from_secs(60 * 86_400 * 365));
    assert_eq!(desk.remaining(RATE), 0);
}

#[test]
fn the_bound_of_what_a_response_settles_can_be_set() {
    let desk = Desk::new();
    let claims = Response { cost: Some(u64::MAX), ..Response::of(200) };
    desk.ticket(&on_account(Some(by_cost().at_most(20)))).settle(&claims);
    assert_eq!(desk.remaining(RATE), 40);

    let both = Account::joined(Some(by_cost().at_most(5)), 5, Some(by_cost().at_most(7)), 5);
    desk.clock.advance(Duration::from_secs(60));
    desk.ticket(&on_account(both)).settle(&claims);
    assert_eq!(desk.remaining(RATE), 48);
}

#[test]
fn a_ticket_that_is_given_back_leaves_nothing_charged() {
    let desk = Desk::new();
    desk.ticket(&both()).give_back();
    assert_eq!((desk.remaining(RATE), desk.remaining(HELD)), (60, 3));
}

#[test]
fn a_ticket_that_waits_gives_everything_back_when_it_is_dropped() {
    let desk = Desk::new();
    desk.ticket(&Charge::of(RATE, alice(), 60)).settle(&Response::of(200));
    let ticket = desk.ticket(&both().patient(Duration::from_secs(20)));
    assert_eq!(ticket.decision().wait(), Duration::from_secs(10));
    assert_eq!(desk.remaining(HELD), 2);
    drop(ticket);
    assert_eq!(desk.remaining(HELD), 3);
    desk.clock.advance(Duration::from_secs(10));
    assert_eq!(desk.remaining(RATE), 10);
}

#[test]
fn a_ticket_that_has_waited_counts() {
    let desk = Desk::new();
    desk.ticket(&Charge::of(RATE, alice(), 60)).settle(&Response::of(200));
    let mut ticket = desk.ticket(&both().patient(Duration::from_secs(20)));
    desk.clock.advance(Duration::from_secs(10));
    ticket.begin();
    drop(ticket);
    assert_eq!((desk.remaining(RATE), desk.remaining(HELD)), (0, 3));
}

/// The request was forwarded all the same, degraded or shadowed: nothing was charged.
#[test]
fn the_ticket_of_a_refused_charge_settles_nothing() {
    let desk = Desk::new();
    let running: Vec<_> = (0..3).map(|_| desk.ticket(&both())).collect();
    for _ in 0..2 {
        let mut refused = desk.ticket(&both());
        assert!(!refused.decision().is_admitted());
        refused.begin();
        refused.settle(&Response::of(200));
        desk.ticket(&both()).give_back();
        drop(desk.ticket(&both()));
    }
    assert_eq!((desk.remaining(RATE), desk.remaining(HELD)), (30, 0));
    drop(running);
    assert_eq!(desk.remaining(HELD), 3);
}

#[test]
fn what_another_limit_refused_further_in_is_given_back() {
    let desk = Desk::new();
    let always = Account::new(Due::Head, |_, charged| charged);
    let refusal = Response { is_refusal: true, ..Response::of(429) };
    desk.ticket(&both()).settle(&refusal);
    desk.ticket(&on_account(Some(always))).settle(&refusal);
    assert_eq!((desk.remaining(RATE), desk.remaining(HELD)), (60, 3));
}

#[test]
fn the_account_says_what_stands() {
    let desk = Desk::new();
    let failures = || {
        Account::new(Due::Head, |reply, charged| if reply.status() == 401 { charged } else { 0 })
    };
    desk.ticket(&on_account(Some(failures()))).settle(&Response::of(200));
    assert_eq!(desk.remaining(RATE), 60);
    desk.ticket(&on_account(Some(failures()))).settle(&Response::of(401));
    assert_eq!(desk.remaining(RATE), 50);
    drop(desk.ticket(&on_account(Some(failures()))));
    assert_eq!(desk.remaining(RATE), 40);
}

#[test]
fn the_response_corrects_the_estimate() {
    let desk = Desk::new();
    let cost = || Account::new(Due::Head, |reply, charged| reply.cost().unwrap_or(charged));
    for (cost_of_it, left) in
        [(None, 50), (Some(3), 47), (Some(0), 47), (Some(27), 20), (Some(99), 0)]
    {
        let response = Response { cost: cost_of_it, ..Response::of(200) };
        desk.ticket(&on_account(Some(cost()))).settle(&response);
        assert_eq!(desk.remaining(RATE), left, "{cost_of_it:?}");
    }
    assert_eq!(desk.remaining(HELD), 3);
    desk.clock.advance(Duration::from_secs(59 + 79 - 20));
    assert_eq!(desk.remaining(RATE), 39);
}

/// The response to a request that was charged an hour ago, whose key was forgotten.
#[test]
fn a_late_response_charges_a_key_that_was_forgotten() {
    let desk = Desk::new();
    let account = Account::new(Due::Head, |reply, charged| reply.cost().unwrap_or(charged));
    let ticket = desk.ticket(&on_account(Some(account)));
    desk.clock.advance(Duration::from_secs(3_600));
    for number in 0_u64..100 {
        let mut other = KeyBuf::new();
        number.write(&mut other);
        let _ = desk.store.take(&Charge::of(Limit::per_hour(1), other, 1));
        desk.clock.advance(Duration::from_secs(3_600));
    }
    ticket.settle(&Response { cost: Some(40), ..Response::of(200) });
    assert_eq!(desk.remaining(RATE), 30);
}

/// A charge to one known limit is kept in another form than others, and is settled alike.
#[test]
fn a_charge_to_one_known_limit_is_settled_like_any_other() {
    let charge = |account| {
        let mut charge = Charge::new();
        charge.add_on_account(RATE, alice(), 10, account).expect("one limit");
        charge
    };
    let spent = |settle: fn(Ticket<Memory>), account| {
        let desk = Desk::new();
        settle(desk.ticket(&charge(account)));
        60 - desk.remaining(RATE)
    };
    assert_eq!(spent(drop, None), 10);
    assert_eq!(spent(drop, Some(by_cost())), 10);
    assert_eq!(spent(Ticket::keep, None), 10);
    assert_eq!(spent(Ticket::give_back, None), 0);
    assert_eq!(spent(|ticket| ticket.settle_to(25), None), 25);
    let costs = |ticket: Ticket<Memory>| {
        ticket.settle(&Response { cost: Some(7), ..Response::of(200) });
    };
    assert_eq!(spent(costs, None), 10);
    assert_eq!(spent(costs, Some(by_cost())), 7);
}

/// As a layer further in has counted it.
#[test]
fn a_request_that_is_dropped_is_charged_what_it_has_spent_if_that_is_more() {
    for (account, spent, left) in [
        (Some(by_cost()), 25, 35),
        (Some(by_cost()), 7, 50),
        (Some(by_cost().at_most(20)), 25, 40),
        (Some(Account::new(Due::End, |_, _| 0)), 25, 50),
        (None, 25, 50),
    ] {
        let desk = Desk::new();
        let ticket = desk.ticket(&on_account(account));
        listen_unserved(|| {
            note_spent(spent);
            drop(ticket);
        });
        assert_eq!((desk.remaining(RATE), desk.remaining(HELD)), (left, 3));
    }
}

#[test]
fn what_waits_for_the_end_of_a_body_is_settled_when_the_rest_is_dropped() {
    let at_end = || by_cost().at_end();
    let reply = Response { cost: Some(7), ..Response::of(200) };
    for other in [None, Some(HELD)] {
        let desk = Desk::new();
        let mut charge = other.map_or_else(Charge::new, |limit| Charge::of(limit, alice(), 1));
        charge.add_on_account(RATE, alice(), 10, Some(at_end())).expect("two limits");
        let mut paid = desk.ticket(&charge);
        assert!(paid.may_wait());
        assert!(paid.close(&reply));
        let rest = paid.take_rest().expect("something waits");
        drop(paid);
        let held = u64::from(other.is_some());
        assert_eq!((desk.remaining(RATE), desk.remaining(HELD)), (50, 3 - held));
        drop(rest);
        assert_eq!((desk.remaining(RATE), desk.remaining(HELD)), (53, 3));
    }
}

#[test]
fn what_settles_at_the_end_waits_for_it_although_places_are_given_back_with_the_head() {
    let desk = Desk::new();
    let mut enforcer = Enforcer::new(desk.store.clone(), &Limits::from(RATE));
    enforcer.hold = Hold::Head;
    let charge = on_account(Some(by_cost().at_end()));
    let outcome = desk.store.take(&charge).now().expect("room");
    let mut paid = Ticket::new(Arc::new(enforcer), charge, outcome);
    assert!(paid.may_wait());
    assert!(paid.close(&Response { cost: Some(7), ..Response::of(200) }));
    assert_eq!((desk.remaining(RATE), desk.remaining(HELD)), (50, 3));
    drop(paid.take_rest().expect("something waits"));
    assert_eq!((desk.remaining(RATE), desk.remaining(HELD)), (53, 3));
}
