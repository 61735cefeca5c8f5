use std::time::Duration;

use super::*;
use crate::clock::ManualClock;
use crate::condition::{ByClient, ByServer, Not};
use crate::key::testing::Request;
use crate::key::{Claim, Claims, Extension, Global, Header, Host, Ip, Method, Path, Query, Route};
use crate::rule::Rule;
use crate::store::Store;
use crate::store::charge::Charge;
use crate::store::memory::Memory;

const MINUTE: Duration = Duration::from_secs(60);

fn request(method: &str) -> Request {
    Request { method: method.into(), ..Request::default() }
}

/// What a limit is called, and its count.
fn told(limit: &Limit) -> String {
    format!("{} {}", limit.name(), limit.count())
}

/// The limits that `request` is charged to.
fn charge(rule: &impl Rule<Request>, request: &Request) -> Vec<String> {
    let mut charge = Charge::new();
    rule.charge(request, &mut charge).expect("a key");
    charge.debits().map(|debit| told(&debit.limit)).collect()
}

#[test]
fn the_first_condition_that_holds_decides() {
    let rule = when(Method.is("POST"), Limit::per_minute(1))
        .or(Header("x-beta").is_present(), Limit::per_minute(2))
        .or(|request: &Request| request.path == "/x", Limit::per_minute(3))
        .otherwise(Limit::per_minute(4))
        .named("api")
        .by(Global);
    let beta = request("GET").header("x-beta", "1");
    let x = Request { path: "/x".into(), ..Request::default() };
    let both = request("POST").header("x-beta", "1");
    for (request, count) in [(both, 1), (beta, 2), (x, 3), (request("GET"), 4)] {
        assert_eq!(charge(&rule, &request), [format!("api/minute {count}")]);
    }
}

#[test]
fn a_list_of_cases_decides_as_code_does() {
    let cases = [
        (Method.is("POST"), Limit::per_minute(1).into()),
        (Method.is("PUT"), Limit::per_minute(2).into()),
    ];
    let rule = Cases::try_new(cases, Limit::per_minute(3)).unwrap().by(Global);
    for (method, count) in [("POST", 1), ("PUT", 2), ("GET", 3)] {
        // The client chooses: each is a budget of its own.
        let expected = [format!("{count}/minute {count}")];
        assert_eq!(charge(&rule, &request(method)), expected);
    }
    let none: Vec<(crate::condition::MethodIs, Limits)> = Vec::new();
    let rule = Cases::try_new(none, Limit::per_minute(3)).unwrap().by(Global);
    assert_eq!(charge(&rule, &request("GET")), ["3/minute 3"]);
}

/// In a case that only the server chooses.
fn case(name: &'static str) -> crate::condition::Equals<Claim<&'static str>> {
    Claim("case").equals(name)
}

fn claims(case: &'static str) -> Request {
    Request::default().extension(Claims::new().with("case", case))
}

#[test]
fn limits_of_one_period_are_called_the_same() {
    let rule = when(case("POST"), [Limit::per_minute(1), Limit::per_hour(5).named("own")])
        .or(case("PUT"), [Limit::per_day(7), Limit::per_minute(2)])
        .otherwise([Limit::per_minute(3).named("each minute"), Limit::per_hour(9)])
        .by(Global);
    assert_eq!(charge(&rule, &claims("POST")), ["each minute 1", "own 5"]);
    assert_eq!(charge(&rule, &claims("PUT")), ["7/day 7", "each minute 2"]);
    assert_eq!(charge(&rule, &claims("GET")), ["each minute 3", "9/hour 9"]);
}

#[test]
fn a_limit_with_a_name_leaves_the_place_to_one_without() {
    let rule = when(case("POST"), Limit::per_minute(1))
        .otherwise([Limit::per_minute(9).named("other"), Limit::per_minute(3)])
        .by(Global);
    assert_eq!(charge(&rule, &claims("POST")), ["3/minute 1"]);
    assert_eq!(charge(&rule, &claims("GET")), ["other 9", "3/minute 3"]);
}

#[test]
fn all_limits_of_all_cases_are_known() {
    let cases = when(Method.is("POST"), Limit::per_minute(1)).otherwise(Limit::per_minute(2));
    let mut known = Vec::new();
    cases.named("api").each_limit(&mut |limit| known.push(told(limit)));
    assert_eq!(known, ["api/minute 1", "api/minute 2", "api/minute 1"]);
}

/// The client chooses the method, so that case has rows of its own, and the server chooses the other.
#[test]
fn the_limits_that_are_charged_are_among_those_that_are_known() {
    let rule = when(Method.is("POST"), Limit::per_minute(1))
        .or(case("PUT"), Limit::per_minute(7))
        .otherwise(Limit::per_minute(2))
        .by(Global);
    let mut known = Vec::new();
    rule.each_limit(&mut |limit| known.push(*limit));
    for method in ["POST", "PUT", "GET"] {
        let mut charge = Charge::new();
        rule.charge(&claims(method), &mut charge).expect("a key");
        let debit = charge.debits().next().expect("one");
        assert!(known.iter().any(|limit| limit.id() == debit.limit.id()), "{method}");
    }
}

#[test]
fn two_limits_at_one_place_of_one_case_are_refused() {
    let two = [Limit::per_minute(1), Limit::sliding_log(2, MINUTE)];
    let error = when(Method.is("POST"), two).try_otherwise(Limit::per_minute(3)).unwrap_err();
    assert!(error.to_string().contains("give one of them a name"), "{error}");
    let cases = when(Method.is("POST"), Limit::per_minute(1)).otherwise(Limit::per_minute(3));
    assert!(cases.try_named("ä").unwrap_err().to_string().contains("printable ASCII"));
}

/// Windows keep their row by name already when their count changes.
#[test]
fn what_was_spent_in_one_case_is_spent_in_the_other() {
    let clock = ManualClock::new();
    let store = Memory::builder().clock(&clock).build();
    let rule = when(Claim("night").is_present(), Limit::sliding_log(5, MINUTE))
        .otherwise(Limit::sliding_log(3, MINUTE))
        .by(Global);
    let admitted = |claims: Claims| {
        let mut charge = Charge::new();
        rule.charge(&Request::default().extension(claims), &mut charge).expect("a key");
        store.take(&charge).now().expect("room").is_admitted()
    };
    let day = Claims::new;
    let night = || Claims::new().with("night", "yes");

    assert!(admitted(day()) && admitted(day()) && admitted(day()) && !admitted(day()));
    assert!(admitted(night()) && admitted(night()) && !admitted(night()));
    assert!(!admitted(day()));
    clock.advance(MINUTE);
    for _ in 0..5 {
        assert!(admitted(night()));
    }
    assert!(!admitted(night()) && !admitted(day()));
}

/// Counts the admitted requests of each kind. Each round sends all of them once, and rounds are `gap` apart.
fn served(rule: &impl Rule<Request>, requests: &[Request], rounds: u32, gap: Duration) -> Vec<u64> {
    let clock = ManualClock::new();
    let store = Memory::builder().clock(&clock).build();
    let mut admitted = vec![0; requests.len()];
    for _ in 0..rounds {
        for (request, admitted) in requests.iter().zip(&mut admitted) {
            let mut charge = Charge::new();
            rule.charge(request, &mut charge).expect("a key");
            *admitted += u64::from(store.take(&charge).now().expect("room").is_admitted());
        }
        clock.advance(gap);
    }
    admitted
}

fn to(route: &str) -> Request {
    Request { route: Some(route.into()), ..Request::from("192.0.2.7") }
}

/// The first example of the documentation: searching goes on at its own rate, and so does the rest.
#[test]
fn a_search_is_limited_however_much_else_is_asked_between() {
    let rule = when(Route.is("/search"), Limit::per_minute(10))
        .or(Method.is_any(["GET", "HEAD"]), Limit::per_minute(300))
        .otherwise(Limit::per_minute(60))
        .by(Ip::peer());
    let post = Request { method: "POST".into(), ..to("/") };
    // Ten rounds a second, for an hour.
    let requests = [to("/search"), to("/"), post, to("/search"), to("/")];
    let admitted = served(&rule, &requests, 36_000, Duration::from_millis(100));
    assert_eq!(admitted[0] + admitted[3], 10 + 599, "searches");
    assert_eq!(admitted[1] + admitted[4], 300 + 17_999, "pages");
    assert_eq!(admitted[2], 60 + 3_599, "the rest");
}

#[test]
fn reading_leaves_every_search_to_the_reader() {
    let rule = when(Route.is("/search"), Limit::per_hour(600)).otherwise(Limit::per_hour(600));
    let rule = rule.by(Ip::peer());
    assert_eq!(served(&rule, &[to("/"), to("/search")], 300, Duration::ZERO), [300, 300]);
    // Three hundred pages, and then as many searches as if there had been none.
    let rule = when(Route.is("/search"), Limit::per_minute(10)).otherwise(Limit::per_minute(600));
    let rule = rule.by(Ip::peer());
    let mut requests: Vec<_> = (0..300).map(|_| to("/")).collect();
    requests.extend((0..12).map(|_| to("/search")));
    let admitted = served(&rule, &requests, 1, Duration::ZERO);
    assert_eq!(admitted[300..].iter().sum::<u64>(), 10);
}

#[test]
fn a_hundred_a_day_stay_a_hundred_beside_twenty_a_second() {
    let rule = when(Route.is("/export"), Limit::per_day(100))
        .otherwise(Limit::per_second(20))
        .by(Ip::peer());
    // Twice a second, for a day.
    let admitted = served(&rule, &[to("/export"), to("/")], 172_800, Duration::from_millis(500));
    assert_eq!(admitted, [199, 172_800]);
}

#[test]
fn cases_that_the_client_chooses_keep_their_rows_in_any_order_and_tell_equal_limits_apart() {
    let identities = |rule: &Cases<Vec<crate::condition::MethodIs>>, method: &'static str| {
        let mut charge = Charge::new();
        rule.clone().by(Global).charge(&request(method), &mut charge).expect("a key");
        charge.debits().map(|debit| debit.limit.id()).collect::<Vec<_>>()
    };
    let case = |method: &'static str, limit: Limit| (Method.is(method), Limits::from(limit));
    let (ten, own) = (Limit::per_minute(10), Limit::per_minute(20).named("own"));
    let usual = Limit::per_minute(60);
    let one = Cases::try_new([case("POST", ten), case("PUT", own)], usual).unwrap();
    let two = Cases::try_new([case("PUT", own), case("POST", ten)], usual).unwrap();
    // A limit with a name keeps its row with other numbers.
    let other = Limit::per_hour(7).named("own");
    let three = Cases::try_new([case("PUT", other), case("POST", ten)], usual).unwrap();
    for method in ["POST", "PUT", "GET"] {
        assert_eq!(identities(&one, method), identities(&two, method));
        assert_eq!(identities(&one, method), identities(&three, method));
    }
    let alike = [case("POST", ten), case("PUT", ten), case("PATCH", ten)];
    for cases in [alike.clone().to_vec(), alike.to_vec()] {
        let rule = Cases::try_new(cases, ten).unwrap();
        for rule in [rule.clone(), rule.named("api")] {
            let mut all: Vec<_> = ["POST", "PUT", "PATCH", "GET"]
                .iter()
                .flat_map(|method| identities(&rule, method))
                .collect();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), 4);
            assert!(!all.contains(&ten.id()));
        }
    }
}

#[test]
fn a_condition_says_who_chooses_it() {
    fn who(condition: impl Condition<Request>) -> ChosenBy {
        condition.chosen_by()
    }
    let claim = || Claim("plan").equals("paid");
    for client in [
        who(Method.is("GET")),
        who(Route.is("/x")),
        who(Path.matches("/x")),
        who(Host.is("example.com")),
        who(Header("x").equals("y")),
        who(Query("x").is_present()),
        who(crate::key::Cookie("x").is_present()),
        who(|_: &Request| true),
        who(Not(Header("x").is_present())),
        who((claim(), Path.matches("/x"))),
        who(crate::condition::Either(claim(), Path.matches("/x"))),
        who(crate::condition::AnyOf(vec![Path.matches("/x")])),
        who(ByClient(claim())),
    ] {
        assert_eq!(client, ChosenBy::Client);
    }
    for server in [
        who(claim()),
        who(Not(claim())),
        who(crate::condition::load::InFlight::below(3)),
        who(crate::condition::load::HasCapacity::from_fn(|| true)),
        who(Extension::<u8>::new().is(|_| true)),
        who(Ip::peer().within(["10.0.0.0/8"]).unwrap()),
        who(crate::condition::AllOf(vec![claim(), claim()])),
        who(ByServer(|_: &Request| true)),
    ] {
        assert_eq!(server, ChosenBy::Server);
    }
}

/// The path and the load together are the client's choice: the case has a budget of its own.
#[test]
fn a_mixed_condition_has_a_budget_of_its_own_and_the_server_s_cases_share() {
    let rule = when((Path.matches("/x"), case("busy")), Limit::per_minute(2))
        .or(case("busy"), Limit::per_minute(3))
        .otherwise(Limit::per_minute(5))
        .by(Global);
    let clock = ManualClock::new();
    let store = Memory::builder().clock(&clock).build();
    let admitted = |path: &str, name: &'static str| {
        let request = Request { path: path.into(), ..claims(name) };
        let mut charge = Charge::new();
        rule.charge(&request, &mut charge).expect("a key");
        store.take(&charge).now().expect("room").is_admitted()
    };
    assert_eq!([(); 3].map(|()| admitted("/x", "busy")), [true, true, false]);
    assert_eq!([(); 3].map(|()| admitted("/", "idle")), [true, true, true]);
    assert!(!admitted("/", "busy"));
    assert_eq!([(); 3].map(|()| admitted("/", "idle")), [true, true, false]);
}

#[test]
fn shadows_among_which_nobody_can_choose_refuse_nothing() {
    let stranger = Request::default();
    let (few, many) = (Limit::per_minute(1), Limit::per_minute(3));
    let choose = |few, many| when(Ip::peer().within(["10.0.0.0/8"]).unwrap(), few).otherwise(many);
    let trial = choose(few.shadow(), many.shadow());
    let rule = (trial.clone().by(Global), Limit::per_hour(9).by(Global), trial.clone().by(Global));
    assert_eq!(charge(&rule, &stranger), ["9/hour 9"]);
    assert!(charge(&trial.by(Header("x-api-key")), &stranger).is_empty(), "nor without their key");

    let charged = choose(few.shadow(), many).by(Global).charge(&stranger, &mut Charge::new());
    assert!(charged.is_err(), "one of them is not on trial");
}

/// A case replaces the limits after it, so one that may hold is charged beside them.
#[test]
fn a_case_that_may_hold_keeps_nothing_from_the_limits_after_it() {
    let counts = |rule: &dyn Rule<Request>, request: &Request| {
        let mut charge = Charge::new();
        rule.charge(request, &mut charge).expect("a key");
        charge.debits().map(|debit| debit.limit.count()).collect::<Vec<_>>()
    };
    let at = |path: &str| Request { path: path.into(), ..Request::default() };
    let cases = when(Path.matches("/static/*"), Limit::per_minute(1_000))
        .or(Not(Path.matches("/admin/*")), Limit::per_minute(100))
        .otherwise(Limit::per_minute(5))
        .by(Global);
    for (path, expected) in [
        ("/static/x", vec![1_000]),
        ("/x", vec![100]),
        ("/admin/x", vec![5]),
        ("/static/../login", vec![1_000, 100]),
        ("/static/..%2flogin", vec![1_000, 100]),
        ("/x/../admin/del", vec![100, 5]),
        ("/static/../admin/del", vec![1_000, 100, 5]),
    ] {
        assert_eq!(counts(&cases, &at(path)), expected, "{path}");
    }
    // No route is known, so the path is compared, which tells only that it may be this route.
    let route = when(Route.is("/static/{file}"), Limit::per_minute(1_000))
        .otherwise(Limit::per_minute(5))
        .by(Global);
    assert_eq!(counts(&route, &at("/static/x")), [1_000, 5]);
    assert_eq!(counts(&route, &to("/static/{file}")), [1_000]);
    // A handler for GET answers HEAD too, and whether this one is meant is unknown.
    let reads = when(Method.is("GET"), Limit::per_minute(1_000)).otherwise(Limit::per_minute(5));
    assert_eq!(counts(&reads.by(Global), &request("HEAD")), [1_000, 5]);
}

#[test]
fn of_cases_that_share_a_row_the_strictest_is_charged_once() {
    let shared = |case: Limit, otherwise: Limit| {
        let cases = when(ByServer(Path.matches("/static/*")), case);
        let rule = cases.otherwise(otherwise).named("api").by(Global);
        let mut charge = Charge::new();
        let request = Request { path: "/static/../login".into(), ..Request::default() };
        rule.charge(&request, &mut charge).expect("a key");
        charge.debits().map(|debit| debit.limit.to_string()).collect::<Vec<_>>()
    };
    let named = |limit: &str| [format!("{limit} named \"api/minute\" carried")];
    let (tight, generous) = (Limit::per_minute(5), Limit::per_minute(1_000));
    assert_eq!(shared(generous, tight), named("5/minute"));
    assert_eq!(shared(tight, generous), named("5/minute"));
    assert_eq!(shared(tight, tight), named("5/minute"));
    assert_eq!(shared(tight.burst(9), tight), named("5/minute"));
    assert_eq!(shared(tight.shadow(), generous), named("1000/minute"));
    let (many, few) = (Limit::concurrent(9), Limit::concurrent(2));
    assert_eq!(shared(many, few), ["concurrent 2 named \"api/concurrent\" carried"]);
}

#[test]
fn a_request_that_may_be_in_very_many_cases_is_the_clients_to_mend() {
    let cases = (1..=20).map(|i| (Path.matches("/x/*"), Limit::per_minute(i).into()));
    let rule = Cases::try_new(cases, Limit::per_minute(100)).unwrap().by(Global);
    let charged = |path: &str| {
        let request = Request { path: path.into(), ..Request::default() };
        let mut charge = Charge::new();
        rule.charge(&request, &mut charge).map(|()| charge.len())
    };
    assert_eq!((charged("/x/y"), charged("/y")), (Ok(1), Ok(1)));
    assert!(charged("/x/../y").unwrap_err().is_ambiguous());
}

/// How a server reads a path that decodes it first and then goes up at each `..`.
fn resolved(path: &str) -> String {
    let decoded = crate::key::percent_decoded(path.as_bytes()).collect();
    let decoded = String::from_utf8(decoded).expect("ASCII");
    let mut segments = Vec::new();
    for segment in decoded.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    format!("/{}", segments.join("/"))
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(512))]

    #[test]
    fn no_spelling_of_a_path_is_charged_only_by_the_case_of_another(
        pieces in proptest::collection::vec(
            proptest::sample::select(vec![
                "/", "//", "/.", "/..", "%2F", "%2f..", "/%2e%2E", "/x", "/static", "/st%61tic", "/admin", "a",
            ]),
            0..8,
        ),
        end in proptest::sample::select(vec!["/login", "%2Flogin", "/../login", "/lo%67in/", "//login", ""]),
    ) {
        let path = format!("/{}{end}", pieces.concat());
        let rule = when(Path.matches("/static/*"), Limit::per_minute(1_000))
            .or((Method.is("GET"), Not(Path.matches("/admin/*"))), Limit::per_minute(100))
            .otherwise(Limit::per_minute(5))
            .by(Global);
        let resolved = resolved(&path);
        for method in ["GET", "POST", "HEAD"] {
            let request = |path: &str| Request { path: path.into(), ..request(method) };
            let mut spelt = Charge::new();
            rule.charge(&request(&path), &mut spelt).expect("a key");
            let mut plain = Charge::new();
            rule.charge(&request(&resolved), &mut plain).expect("a key");
            for debit in plain.debits() {
                let is_charged = spelt.debits().any(|other| other.limit == debit.limit);
                proptest::prop_assert!(is_charged, "{} {} {}", method, path, debit.limit);
            }
        }
    }
}
