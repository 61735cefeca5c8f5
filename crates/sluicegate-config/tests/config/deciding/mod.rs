//! A document decides like the same rules in code.

mod requests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Request;
use sluicegate::adapter::HttpView;
use sluicegate_config::{Environment, Policies, read_toml};
use sluicegate_core::adapter::Charge;
use sluicegate_core::condition::GeoDatabase;
use sluicegate_core::condition::{AnyOf, Either, HasCapacity, Hours, InFlight, Not, Weekday};
use sluicegate_core::cost::{content_length, cost_from};
use sluicegate_core::key::{Const, Cookie, Host, KeyBuf, Method, Missing, Optional, Path, Query};
use sluicegate_core::limit::Limits;
use sluicegate_core::rule::Rule;

use crate::writer;
use sluicegate_core::{Claim, First, Global, Header, Ip, Limit, ManualClock, Route, Tiers, when};

use self::requests::{Dice, request};

/// The limits as shown: the only limit of a rule has the rule's name and is counted by its period too.
type Debit = Result<Vec<(String, KeyBuf, u64)>, Missing>;

fn debit<'a>(rule: &impl Rule<HttpView<'a, ()>>, request: &'a Request<()>) -> Debit {
    let mut charge = Charge::new();
    rule.charge(&HttpView::new(request), &mut charge)?;
    Ok(charge.debits().map(|debit| (debit.limit.to_string(), debit.key, debit.cost)).collect())
}

/// The rule in `text`, from the line after its name on, charges the same as `rule` for random requests. Some of them
/// are charged and some are not.
fn alike(text: &str, environment: &Environment, rule: impl for<'a> Rule<HttpView<'a, ()>>) {
    let document = read_toml(text).expect("a document");
    let policies = Policies::new(&document, environment).expect("policies");
    let mut dice = Dice(7);
    let mut seen = [false; 2];
    for _ in 0..400 {
        let request = request(&mut dice);
        let expected = debit(&rule, &request);
        assert_eq!(debit(&policies, &request), expected, "{request:?}");
        seen[usize::from(expected.is_ok_and(|debit| !debit.is_empty()))] = true;
    }
    assert!(seen[1], "no request was charged");
}

fn plain(text: &str, rule: impl for<'a> Rule<HttpView<'a, ()>>) {
    alike(&format!("[[rules]]\nname = \"a\"\n{text}"), &Environment::new(), rule);
}

const LIMIT: Limit = Limit::per_second(5).named("a").carried();

#[test]
fn keys() {
    let one = |key: &str| format!("key = {key}\nlimits = [\"5/second\"]");
    plain(&one("\"ip\""), LIMIT.by(Ip::peer()));
    plain(&one("\"method\""), LIMIT.by(Method));
    plain(&one("\"path\""), LIMIT.by(Path));
    plain(&one("\"host\""), LIMIT.by(Host));
    plain(&one("\"route\""), LIMIT.by(Route));
    plain(&one("\"global\""), LIMIT.by(Global));
    plain(&one("{ header = \"x-api-key\" }"), LIMIT.by(Header("x-api-key")));
    plain(&one("{ cookie = \"session\" }"), LIMIT.by(Cookie("session")));
    plain(&one("{ query = \"debug\" }"), LIMIT.by(Query("debug")));
    plain(&one("{ claim = \"customer\" }"), LIMIT.by(Claim("customer")));
    plain(&one("{ const = \"all\" }"), LIMIT.by(Const("all")));
    plain(
        &one("{ optional = { header = \"x-api-key\" } }"),
        LIMIT.by(Optional(Header("x-api-key"))),
    );
    plain(&one("[\"ip\", { claim = \"plan\" }]"), LIMIT.by((Ip::peer(), Claim("plan"))));
    plain(
        &one("{ first = [{ header = \"x-api-key\" }, { cookie = \"session\" }] }"),
        LIMIT.by(First((Header("x-api-key"), Cookie("session")))),
    );
    plain(
        &one("[\"method\", { first = [{ query = \"k\" }, { claim = \"customer\" }, \"ip\"] }]"),
        LIMIT.by((Method, First((Query("k"), Claim("customer"), Ip::peer())))),
    );
    plain(
        &one(
            "{ first = [\"route\", { header = \"x-beta\" }, { query = \"k\" }, { const = \"else\" }] }",
        ),
        LIMIT.by(First((Route, Header("x-beta"), Query("k"), Const("else")))),
    );
}

#[test]
fn addresses_behind_proxies() {
    alike(
        "proxies = { trusted = [\"10.0.0.0/8\"] }\n\
         [[rules]]\nname = \"a\"\nkey = \"ip\"\nlimits = [\"5/second\"]\n\
         when = { network = [\"192.0.2.0/24\", \"2001:db8::/32\"] }",
        &Environment::new(),
        LIMIT.by(Ip::behind(["10.0.0.0/8"])).when(
            Ip::behind(["10.0.0.0/8"]).within(["192.0.2.0/24", "2001:db8::/32"]).expect("networks"),
        ),
    );
}

#[test]
fn conditions() {
    let when =
        |condition: &str| format!("key = \"ip\"\nlimits = [\"5/second\"]\nwhen = {condition}");
    let by_ip = || LIMIT.by(Ip::peer());
    plain(&when("{ method = \"POST\" }"), by_ip().when(Method.is("POST")));
    plain(&when("{ method = [\"POST\", \"PUT\"] }"), by_ip().when(Method.is_any(["POST", "PUT"])));
    plain(&when("{ path = \"/login\" }"), by_ip().when(Path.matches("/login")));
    plain(
        &when("{ path = [\"/login\", \"/api/{id}/*\"] }"),
        by_ip().when(Either(Path.matches("/login"), Path.matches("/api/{id}/*"))),
    );
    plain(&when("{ route = \"/api/{id}\" }"), by_ip().when(Route.is("/api/{id}")));
    plain(&when("{ host = \"api.example.com\" }"), by_ip().when(Host.is("api.example.com")));
    plain(&when("{ host = \"*.example.com\" }"), by_ip().when(Host.matches("*.example.com")));
    plain(&when("{ header = { x-beta = \"1\" } }"), by_ip().when(Header("x-beta").equals("1")));
    plain(&when("{ header = { x-beta = true } }"), by_ip().when(Header("x-beta").is_present()));
    plain(
        &when("{ header = { x-beta = false } }"),
        by_ip().when(Not(Header("x-beta").is_present())),
    );
    plain(
        &when("{ header = { x-beta = [\"0\", \"1\"] } }"),
        by_ip().when(AnyOf(vec![Header("x-beta").equals("0"), Header("x-beta").equals("1")])),
    );
    plain(&when("{ query = { debug = true } }"), by_ip().when(Query("debug").is_present()));
    plain(&when("{ query = { debug = \"1\" } }"), by_ip().when(Query("debug").equals("1")));
    plain(&when("{ cookie = { session = \"b\" } }"), by_ip().when(Cookie("session").equals("b")));
    plain(&when("{ claim = { plan = \"paid\" } }"), by_ip().when(Claim("plan").equals("paid")));
    plain(
        &when("{ method = \"POST\", claim = { plan = true, customer = \"acme\" } }"),
        by_ip().when((
            Method.is("POST"),
            Claim("plan").is_present(),
            Claim("customer").equals("acme"),
        )),
    );
    plain(
        &when("{ not = { header = { x-beta = \"1\" } } }"),
        by_ip().when(Not(Header("x-beta").equals("1"))),
    );
    plain(
        &when("{ not = { query = { debug = true } } }"),
        by_ip().when(Not(Query("debug").is_present())),
    );
    plain(&when("{ query = { debug = false } }"), by_ip().when(Not(Query("debug").is_present())));
    plain(
        &when("{ not = { cookie = { session = \"a\" } } }"),
        by_ip().when(Not(Cookie("session").equals("a"))),
    );
    plain(
        &when("{ not = { method = \"GET\", route = \"/\" } }"),
        by_ip().when(Not((Method.is("GET"), Route.is("/")))),
    );
    plain(
        &when(
            "{ any = [{ method = \"POST\", path = \"/login\" }, { claim = { plan = \"free\" } }] }",
        ),
        by_ip().when(Either(
            (Method.is("POST"), Path.matches("/login")),
            Claim("plan").equals("free"),
        )),
    );
}

#[test]
fn limits() {
    let list = |limits: &str| format!("key = \"ip\"\nlimits = {limits}");
    let by_ip = |limits: &str| {
        let carried = |text: &str| text.parse::<Limit>().expect("a limit").carried();
        Limits::from(limits.split("; ").map(carried).collect::<Vec<_>>()).by(Ip::peer())
    };
    plain(
        &list(
            "[\"5/second burst 10\", \"10000 per 30 days\", \"concurrent 5\", \"log 5/minute named x\"]",
        ),
        by_ip(
            "5/second burst 10 named a/second; 10000 per 30 days named \"a/30 days\"; concurrent 5 named \
             a/concurrent; log 5/minute named x",
        ),
    );
    plain(
        &list("[{ rate = \"100/minute\", burst = 20, soft = \"80%\", name = \"b\" }]"),
        by_ip("100/minute burst 20 soft 16 named b"),
    );
    plain(
        &list("[{ rate = \"log 5 per 15 minutes\", soft = 3, ban = \"1 hour\" }]"),
        by_ip("log 5 per 15 minutes soft 3 ban 1 hour named a"),
    );
    plain(
        &list(
            "[{ rate = \"fixed 100/minute\", over = \"10%\", shadow = true, ban = { for = \"5 minutes\", \
             after = 3, within = \"1 minute\" } }]",
        ),
        by_ip("fixed 110/minute soft 100 ban 5 minutes after 3 in 1 minute shadow named a"),
    );
    plain(
        &list("[{ rate = \"100/minute\", burst = 20, soft = \"80%\", over = \"10%\" }]"),
        by_ip("100/minute burst 22 soft 16 named a"),
    );
}

#[test]
fn costs() {
    let cost = |cost: &str| format!("key = \"ip\"\nlimits = [\"5/second\"]\ncost = {cost}");
    let by_ip = || LIMIT.by(Ip::peer());
    plain(&cost("3"), by_ip().cost(3));
    plain(&cost("{ header = \"x-tokens\" }"), by_ip().cost(cost_from(Header("x-tokens"))));
    plain(
        &cost("{ header = \"x-tokens\", default = 5, least = 2, most = 1000, per = 3 }"),
        by_ip().cost(cost_from(Header("x-tokens")).default(5).at_least(2).at_most(1_000).per(3)),
    );
    plain(
        &cost("{ query = \"amount\", scale = 100, default = 1 }"),
        by_ip().cost(cost_from(Query("amount")).scaled(100).default(1)),
    );
    plain(
        &cost("{ body = 1024, most = 5000, default = 64 }"),
        by_ip().cost(content_length().per(1_024).at_most(5_000).default(64)),
    );
    let by_path = Environment::new().cost("by_path", |request| request.path().len() as u64);
    alike(
        "[[rules]]\nname = \"a\"\nkey = \"ip\"\nlimits = [\"5/second\"]\ncost = { call = \"by_path\" }",
        &by_path,
        by_ip().cost(sluicegate_core::cost::cost_fn(|request: &Request<()>| {
            request.uri().path().len() as u64
        })),
    );
}

#[test]
fn tiers() {
    const TIERS: &str = "tiers = { free = { limits = [\"5/second burst 10\", \"10000 per 30 days\"] }, \
                         paid = { limits = [{ rate = \"50/second\", name = \"fast\" }] }, \
                         partner = { unlimited = true } }\n\
                         customers = { acme = \"paid\", big = \"partner\" }\n";
    let free = [
        Limit::per_second(5).burst(10).named("a/second").carried(),
        Limit::per(10_000, Duration::from_secs(30 * 86_400)).named("a/30 days").carried(),
    ];
    let paid = Limit::per_second(50).named("fast").carried();
    let tiers = Tiers::new("a")
        .tier("free", free)
        .tier("paid", paid)
        .unlimited("partner")
        .otherwise("free");
    tiers.assign("acme", "paid").expect("a tier");
    tiers.assign("big", "partner").expect("a tier");
    let rule = |chosen: &str| {
        format!(
            "{TIERS}[[rules]]\nname = \"a\"\nkey = {{ first = [{{ claim = \"customer\" }}, \"ip\"] }}\n\
             tiers = {{ {chosen}, default = \"free\" }}"
        )
    };
    let key = || First((Claim("customer"), Ip::peer()));
    let none = Environment::new();
    alike(&rule("by = { claim = \"plan\" }"), &none, tiers.by_tier(Claim("plan")).by(key()));
    alike(
        &rule("customer = { claim = \"customer\" }"),
        &none,
        tiers.by_customer(Claim("customer")).by(key()),
    );
    alike(&rule("by = { const = \"paid\" }"), &none, tiers.by_tier(Const("paid")).by(key()));
    let in_case = format!(
        "{}\ncases = [{{ when = {{ method = \"PUT\" }}, limits = [\"1/second\", \"2/day\"] }}]",
        rule("by = { claim = \"plan\" }")
    );
    let put = [
        Limit::per_second(1).named("a/second").carried(),
        Limit::per_day(2).named("a/day").carried(),
    ];
    alike(
        &in_case,
        &none,
        (
            Limits::from(put).by(key()).when(Method.is("PUT")),
            tiers.by_tier(Claim("plan")).by(key()).when(Not(Method.is("PUT"))),
        ),
    );
}

#[test]
fn cases_by_the_hour_and_by_the_load() {
    let clock = ManualClock::new();
    let roomy = Arc::new(AtomicBool::new(false));
    let load = InFlight::below(1_000);
    let has_capacity = Arc::clone(&roomy);
    let environment = Environment::new()
        .clock(&clock)
        .in_flight(&load)
        .has_capacity("database", move || has_capacity.load(Ordering::Relaxed));
    let text = "time_zone = \"Europe/Berlin\"\n\
                [[rules]]\nname = \"a\"\nkey = \"global\"\nlimits = [\"1/second\"]\n\
                cases = [\n\
                { when = { hours = { between = [\"22:00\", \"06:00\"], on = [\"fri\"] } }, limits = [\"2/second\"] },\n\
                { when = { hours = { on = [\"sat\"], zone = \"UTC\" }, method = \"GET\" }, limits = [\"3/second\"] },\n\
                { while = { in_flight = 2 }, when = { method = \"PUT\" }, limits = [\"4/second\"] },\n\
                { while = { has_capacity = \"database\" }, limits = [\"5/second\"] },\n]";
    let nights =
        Hours::in_zone("Europe/Berlin").expect("a zone").between("22:00", "06:00").expect("times");
    let nights = nights.on([Weekday::Friday]).clock(&clock);
    let saturdays = Hours::in_zone("UTC").expect("a zone").on([Weekday::Saturday]).clock(&clock);
    let has_capacity = Arc::clone(&roomy);
    let capacity = HasCapacity::from_fn(move || has_capacity.load(Ordering::Relaxed));
    let limit = |count| Limit::per_second(count).named("a").carried();
    let rule = || {
        when(nights.clone(), limit(2))
            .or((saturdays.clone(), Method.is("GET")), limit(3))
            .or((load.also_below(2), Method.is("PUT")), limit(4))
            .or(capacity.clone(), limit(5))
            .otherwise(limit(1))
            .by(Global)
    };
    // From a Friday's noon on, 9 January 2026, to Sunday.
    let mut busy = Vec::new();
    for hour in 0..40 {
        clock.set(Duration::from_secs(1_767_960_000 + hour * 3_600));
        roomy.store(hour % 3 == 0, Ordering::Relaxed);
        if hour % 7 == 0 {
            busy.push(load.enter());
        }
        alike(text, &environment, rule());
    }
}

#[test]
fn countries_and_regions() {
    let database = writer::Writer::new("Test-Country")
        .country("192.0.2.0/24", "DE")
        .country("2001:db8::/32", "FR");
    let geo = GeoDatabase::from_bytes(database.write()).expect("a database");
    alike(
        "[[rules]]\nname = \"a\"\nkey = [\"country\", \"region\"]\nlimits = [\"5/second\"]\n\
         when = { not = { country = [\"FR\", \"US\"] } }",
        &Environment::new().geoip(&geo),
        LIMIT
            .by((geo.country(Ip::peer()), geo.region(Ip::peer())))
            .when(Not(geo.country(Ip::peer()).is_in(["FR", "US"]).expect("codes"))),
    );
}

#[test]
fn all_rules_that_apply_are_charged() {
    plain(
        "key = \"ip\"\nlimits = [\"5/second\"]\n\
         [[rules]]\nname = \"b\"\nkey = \"global\"\nlimits = [\"100/second\"]\nwhen = { method = \"GET\" }\n\
         [[rules]]\nname = \"c\"\nkey = { optional = { header = \"x-api-key\" } }\nlimits = [\"concurrent 5\"]",
        (
            LIMIT.by(Ip::peer()),
            Limit::per_second(100).named("b").carried().by(Global).when(Method.is("GET")),
            Limit::concurrent(5).named("c").carried().by(Optional(Header("x-api-key"))),
        ),
    );
}

#[test]
fn a_rule_among_very_many_charges_as_it_does_alone() {
    let whens = (0..300).map(|i| match i % 6 {
        0 => format!("path = \"/shop{i}/*\""),
        1 => format!("method = [\"GET\", \"PUT\"], path = [\"/a/{i}\", \"/{{any}}/{i}/*\"]"),
        2 => format!("host = \"shop{i}.example.com\""),
        3 => format!("host = [\"*.shop{i}.com\", \"shop{i}.org\"], path = \"/a/*\""),
        4 => format!("any = [{{ path = \"/b{i}\" }}, {{ host = \"b{i}.com\", path = \"/{i}\" }}]"),
        _ => format!(
            "header = {{ x-shop = \"{i}\" }}, any = [{{ path = \"/c\" }}, {{ path = \"/d\" }}]"
        ),
    });
    let rules: Vec<_> = whens
        .enumerate()
        .map(|(i, when)| {
            format!("[[rules]]\nname = \"r{i}\"\nkey = \"global\"\nlimits = [\"5/second\"]\nwhen = {{ {when} }}\n")
        })
        .collect();
    let policies = |text: &str| {
        let document = read_toml(text).expect("a document");
        Policies::new(&document, &Environment::new()).expect("policies")
    };
    let alone: Vec<_> = rules.iter().map(|rule| policies(rule)).collect();
    let together = policies(&rules.concat());

    let hosts = [
        "x.org",
        "shop2.example.com",
        "SHOP8.example.com:80",
        "a.b.shop3.com",
        "shop9.org",
        "b4.com",
    ];
    let paths = [
        "/",
        "/shop0",
        "/shop6/x",
        "/%73hop6/../shop12/x",
        "/a/1",
        "/a/7",
        "/x/7/y",
        "/b4",
        "/4",
        "/a/9",
        "/c",
        "/d",
    ];
    let mut charged = 0;
    for (host, path) in hosts.iter().flat_map(|host| paths.map(|path| (host, path))) {
        for method in ["GET", "POST"] {
            let request = Request::builder().method(method).uri(path).header("host", *host);
            let request = request.header("x-shop", "5").body(()).expect("a request");
            let expected: Vec<_> =
                alone.iter().flat_map(|rule| debit(rule, &request).expect("a charge")).collect();
            charged += expected.len();
            assert_eq!(debit(&together, &request), Ok(expected), "{method} {host} {path}");
        }
    }
    assert!(charged > 50, "{charged} charges");
}
