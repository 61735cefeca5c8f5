use std::time::Duration;

use allocation_counter::measure;

use super::*;
use crate::clock::ManualClock;
use crate::key::testing::Request;
use crate::key::{Claim, Claims, Const, Extension, First, Global, Ip, Key, Missing, Path};
use crate::limit::Limit;
use crate::rule::{By, KnownLimits, Rule};
use crate::store::Store;
use crate::store::charge::Charge;
use crate::store::memory::Memory;

#[cfg(feature = "tracing")]
mod log;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

fn tiers() -> Tiers {
    Tiers::new("api")
        .tier("free", [Limit::per_second(5), Limit::per_day(100)])
        .tier("paid", [Limit::per_second(50).burst(80), Limit::per_day(1_000).named("daily")])
        .unlimited("partner")
        .otherwise("free")
}

fn claims(claims: Claims) -> Request {
    Request::default().extension(claims)
}

fn plan(plan: &'static str) -> Request {
    claims(Claims::new().with("plan", plan))
}

fn customer(name: &'static str) -> Request {
    claims(Claims::new().with("customer", name))
}

/// What a limit is called, and its count.
fn told(limit: &Limit) -> String {
    format!("{} {}", limit.name(), limit.count())
}

/// The limits that `request` is charged to.
fn charge(rule: &impl Rule<Request>, request: &Request) -> Result<Vec<String>, Missing> {
    let mut charge = Charge::new();
    rule.charge(request, &mut charge)?;
    Ok(charge.debits().map(|debit| told(&debit.limit)).collect())
}

fn free() -> Result<Vec<String>, Missing> {
    Ok(vec!["api/second 5".into(), "api/day 100".into()])
}

fn paid() -> Result<Vec<String>, Missing> {
    Ok(vec!["api/second 50".into(), "daily 1000".into()])
}

#[test]
fn a_claim_of_the_plan_chooses_the_tier() {
    let rule = tiers().by_tier(Claim("plan")).by(Global);
    assert_eq!(charge(&rule, &plan("free")), free());
    assert_eq!(charge(&rule, &plan("paid")), paid());
    assert_eq!(charge(&rule, &plan("partner")), Ok(vec![]));
}

#[test]
fn whoever_is_unknown_is_in_the_tier_that_holds_otherwise() {
    let by_tier = tiers().by_tier(Claim("plan")).by(Global);
    let by_customer = tiers().by_customer(Claim("customer")).by(Global);
    for request in [claims(Claims::new()), plan(""), plan("gold"), plan("Paid"), customer("?")] {
        assert_eq!(charge(&by_tier, &request), free());
        assert_eq!(charge(&by_customer, &request), free());
    }
}

/// The recipe of the README: many servers insert claims only for clients that are signed in.
#[test]
fn a_stranger_without_claims_is_in_the_tier_that_holds_otherwise() {
    let stranger = Request::from("192.0.2.1");
    let key = || First((Claim("customer"), Ip::peer()));
    assert_eq!(charge(&tiers().by_customer(Claim("customer")).by(key()), &stranger), free());
    assert_eq!(charge(&tiers().by_tier(Claim("plan")).by(key()), &stranger), free());
    struct Plan;
    impl AsRef<str> for Plan {
        fn as_ref(&self) -> &str {
            "paid"
        }
    }
    let by_extension = tiers().by_tier(Extension::<Plan>::new()).by(key());
    assert_eq!(charge(&by_extension, &stranger), free());
    // A missing key stays an error, because there is no key to charge.
    let by_claim = tiers().by_customer(Claim("customer")).by(Claim("customer"));
    assert!(charge(&by_claim, &stranger).unwrap_err().is_client());
}

#[test]
fn an_extension_and_a_constant_choose_a_tier_too() {
    struct Plan(String);

    impl AsRef<str> for Plan {
        fn as_ref(&self) -> &str {
            &self.0
        }
    }

    let rule = tiers().by_tier(Extension::<Plan>::new()).by(Global);
    assert_eq!(charge(&rule, &Request::default().extension(Plan("paid".into()))), paid());
    assert_eq!(charge(&tiers().by_tier(Const("paid")).by(Global), &Request::default()), paid());
}

#[test]
fn a_customer_is_looked_up_and_a_change_holds_from_the_next_request_on() {
    let tiers = tiers();
    let rule = tiers.by_customer(Claim("customer")).by(Claim("customer"));
    assert_eq!(charge(&rule, &customer("acme")), free());
    tiers.clone().assign("acme", "paid").unwrap();
    assert_eq!(charge(&rule, &customer("acme")), paid());
    assert_eq!(charge(&rule, &customer("other")), free());
    assert_eq!(&*tiers.tier_of("acme"), "paid");
    tiers.assign("acme", "partner").unwrap();
    assert_eq!(charge(&rule, &customer("acme")), Ok(vec![]));
    tiers.unassign("acme");
    tiers.unassign("nobody");
    assert_eq!(charge(&rule, &customer("acme")), free());
    assert_eq!(&*tiers.tier_of("acme"), "free");
}

#[test]
fn many_customers_are_assigned_all_or_none() {
    let tiers = tiers();
    let wrong = tiers.assign_all([("a", "paid"), ("b", "gold")]).unwrap_err();
    assert_eq!(wrong.tier(), "gold");
    assert_eq!(&*tiers.tier_of("a"), "free");
    tiers.assign_all(vec![(String::from("a"), "paid"), ("b".into(), "partner")]).unwrap();
    assert_eq!((&*tiers.tier_of("a"), &*tiers.tier_of("b")), ("paid", "partner"));
}

#[test]
fn tiers_that_share_their_customers_change_apart() {
    let (one, other) = (tiers(), tiers());
    one.assign_all([("acme", "paid"), ("umbrella", "partner")]).expect("tiers");
    other.assign("initech", "paid").expect("a tier");
    other.share_customers(&one);
    let tiers_of = |tiers: &Tiers| ["acme", "umbrella", "initech"].map(|name| tiers.tier_of(name));
    assert_eq!(tiers_of(&other), ["paid", "partner", "free"].map(Arc::from));
    other.assign("acme", "free").expect("a tier");
    assert_eq!(tiers_of(&one), ["paid", "partner", "free"].map(Arc::from));
    assert_eq!(tiers_of(&other), ["free", "partner", "free"].map(Arc::from));
}

#[test]
fn a_tier_is_given_other_limits_or_none() {
    let tiers = tiers();
    let rule = tiers.by_tier(Claim("plan")).by(Global);
    tiers.replace("paid", Limit::per_second(7)).unwrap();
    assert_eq!(charge(&rule, &plan("paid")), Ok(vec!["api/second 7".into()]));
    tiers.lift("paid").unwrap();
    assert_eq!(charge(&rule, &plan("paid")), Ok(vec![]));
    tiers.replace("partner", Limit::per_second(9)).unwrap();
    assert_eq!(charge(&rule, &plan("partner")), Ok(vec!["api/second 9".into()]));
}

#[test]
fn all_limits_of_all_tiers_are_known() {
    let mut known = Vec::new();
    tiers().by_tier(Claim("plan")).by(Global).each_limit(&mut |limit| known.push(told(limit)));
    assert_eq!(known, [free().unwrap(), paid().unwrap()].concat());
}

#[test]
fn what_is_wrong_is_said_with_what_to_do() {
    let error = |builder: TiersBuilder| builder.try_otherwise("free").unwrap_err().to_string();
    assert_eq!(
        error(Tiers::new("api")),
        "there is no tier `free` among those of `api`, which has none"
    );
    assert_eq!(
        error(Tiers::new("api").unlimited("a").unlimited("b").unlimited("c")),
        "there is no tier `free` among those of `api`, which are `a`, `b` and `c`"
    );
    assert_eq!(
        error(Tiers::new("api").unlimited("free").tier("free", Limit::per_second(1))),
        "there are two tiers `free` among those of `api`"
    );
    let two = [Limit::per_minute(1), Limit::sliding_log(2, MINUTE)];
    let error = error(Tiers::new("api").tier("free", two));
    assert!(error.starts_with("the tier `free` of `api`: in `api/minute`: two limits"), "{error}");
    assert!(error.contains("`named`"), "{error}");

    let tiers = tiers();
    for done in [
        tiers.assign("acme", "gold"),
        tiers.replace("gold", Limit::per_second(1)),
        tiers.lift("gold"),
    ] {
        assert!(done.unwrap_err().to_string().starts_with("there is no tier `gold`"));
    }
    assert!(tiers.replace("paid", two).is_err());
    assert_eq!(charge(&tiers.by_tier(Const("paid")).by(Global), &Request::default()), paid());
}

#[test]
fn no_customer_is_shown_in_a_log() {
    let tiers = tiers();
    tiers.assign("acme", "paid").unwrap();
    assert!(format!("{tiers:?}").ends_with("customers: 1 }"));
}

#[test]
fn looking_up_a_tier_does_not_allocate() {
    let tiers = tiers();
    tiers.assign("acme", "paid").unwrap();
    tiers.replace("paid", Limit::per_second(7)).unwrap();
    let by_customer = tiers.by_customer(Claim("customer")).by(Claim("customer"));
    let by_tier = tiers.by_tier(Claim("plan")).by(First((Claim("customer"), Path)));
    let (acme, paid) = (customer("acme"), plan("paid"));
    let mut charge = Charge::new();
    // A thread's first access to such a table registers it as a reader.
    by_customer.charge(&acme, &mut charge).unwrap();
    let allocated = measure(|| {
        for (rule, request) in [(&by_customer as &dyn Rule<_>, &acme), (&by_tier, &paid)] {
            let mut charge = Charge::new();
            rule.charge(request, &mut charge).unwrap();
            assert_eq!(charge.len(), 1);
        }
    });
    assert_eq!(allocated.count_total, 0);
}

/// Admits as many of `cost` 1 as it can.
fn spend<K: Key<Request>>(store: &Memory, rule: &By<K, ByTier<Claim>>, request: &Request) -> u64 {
    let admitted = || {
        let mut charge = Charge::new();
        rule.charge(request, &mut charge).expect("a key");
        store.take(&charge).now().expect("room").is_admitted()
    };
    (0..1_000).take_while(|_| admitted()).count() as u64
}

/// Windows keep their row by name already when their count changes.
#[test]
fn a_change_of_tier_keeps_what_was_spent() {
    let clock = ManualClock::new();
    let store = Memory::builder().clock(&clock).build();
    let tiers = Tiers::new("api")
        .tier("free", [Limit::sliding_log(5, MINUTE), Limit::sliding_window(20, HOUR)])
        .tier("paid", [Limit::sliding_log(50, MINUTE), Limit::sliding_window(80, HOUR)])
        .otherwise("free");
    let rule = tiers.by_customer(Claim("customer")).by(Claim("customer"));

    assert_eq!(spend(&store, &rule, &customer("acme")), 5);
    tiers.assign("acme", "paid").unwrap();
    assert_eq!(spend(&store, &rule, &customer("acme")), 45);
    tiers.unassign("acme");
    assert_eq!(spend(&store, &rule, &customer("acme")), 0);
    assert_eq!(spend(&store, &rule, &customer("other")), 5);

    // 50 of the hour are spent: nothing is left of 20, and 30 of 80.
    clock.advance(MINUTE);
    assert_eq!(spend(&store, &rule, &customer("acme")), 0);
    tiers
        .replace("free", [Limit::sliding_log(60, MINUTE), Limit::sliding_window(80, HOUR)])
        .unwrap();
    assert_eq!(spend(&store, &rule, &customer("acme")), 30);
}

#[test]
fn a_change_of_tier_keeps_what_was_spent_of_a_bucket() {
    let clock = ManualClock::new();
    let store = Memory::builder().clock(&clock).build();
    let tiers = Tiers::new("api")
        .tier("free", [Limit::per_minute(10), Limit::fixed_window(100, HOUR)])
        .tier("paid", [Limit::per_minute(100), Limit::fixed_window(1_000, HOUR)])
        .otherwise("free");
    let rule = tiers.by_customer(Claim("customer")).by(Claim("customer"));

    assert_eq!(spend(&store, &rule, &customer("acme")), 10);
    tiers.assign("acme", "paid").unwrap();
    assert_eq!(spend(&store, &rule, &customer("acme")), 90);
    tiers.unassign("acme");
    assert_eq!(spend(&store, &rule, &customer("acme")), 0);
}

/// A thread changes two tiers and a customer, always together, while others look.
#[test]
fn one_request_sees_one_table_whole() {
    let tiers = Tiers::new("api")
        .tier("a", [Limit::per_minute(1), Limit::per_hour(1)])
        .tier("b", Limit::per_minute(1))
        .otherwise("a");
    let rule = tiers.by_customer(Claim("customer")).by(Global);
    let look = || {
        let request = customer("acme");
        for _ in 0..2_000 {
            let mut charge = Charge::new();
            rule.charge(&request, &mut charge).unwrap();
            let counts: Vec<_> = charge.debits().map(|debit| debit.limit.count()).collect();
            assert!(counts.len() == 2 && counts[0] == counts[1], "{counts:?}");
        }
    };
    std::thread::scope(|scope| {
        let lookers = [scope.spawn(look), scope.spawn(look)];
        let mut count = 0;
        while lookers.iter().any(|looker| !looker.is_finished()) {
            count += 1;
            let limits = [Limit::per_minute(1 + count % 7), Limit::per_hour(1 + count % 7)];
            tiers.replace("a", limits).unwrap();
        }
    });
}

/// One customer with a token of each plan, in turn.
#[test]
fn tiers_in_turn_each_admit_what_they_allow() {
    let tiers = Tiers::new("api")
        .tier("free", Limit::per_minute(10))
        .tier("paid", Limit::per_minute(600))
        .otherwise("free");
    let rule = tiers.by_tier(Claim("plan")).by(Global);
    let clock = ManualClock::new();
    let store = Memory::builder().clock(&clock).build();
    let mut admitted = [0, 0];
    // Ten of each a second, for an hour.
    for _ in 0..36_000 {
        for (plan, admitted) in [plan("free"), plan("paid")].iter().zip(&mut admitted) {
            let mut charge = Charge::new();
            rule.charge(plan, &mut charge).expect("a key");
            *admitted += u64::from(store.take(&charge).now().expect("room").is_admitted());
        }
        clock.advance(Duration::from_millis(100));
    }
    let [free, paid] = admitted;
    assert!(free <= 10 + 600, "{free}");
    assert!(free + paid <= 600 + 36_000, "{free} and {paid}");
    assert!(paid >= 35_000, "{paid}");
}
