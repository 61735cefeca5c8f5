//! Logs whose clients are known.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::Parser;
use sluicegate_config::{Environment, Policies, read_toml};

use super::choice::{Covered, Terms, choose};
use super::client::Client;
use super::ladder::{DAY, HOUR, MINUTE, rates};
use super::*;

#[derive(Debug, Parser)]
struct Cli {
    #[command(flatten)]
    suggest: Suggest,
}

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    /// Between 0 and 1.
    fn roll(&mut self) -> f64 {
        // Knuth's constants.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// The seconds until the next event of a Poisson process.
    fn gap(&mut self, rate: f64) -> f64 {
        -(1.0 - self.roll()).ln() / rate
    }
}

/// When requests came, in seconds: for each client.
type Truth = BTreeMap<String, Vec<f64>>;

const SPAN: f64 = 3.0 * 86_400.0;

/// People who read by day: pages with a dozen requests at once, at random, a minute apart.
fn people(truth: &mut Truth, dice: &mut Dice, count: usize) {
    for number in 0..count {
        let times = truth.entry(format!("10.1.{}.{}", number / 250, number % 250)).or_default();
        for day in 0..3 {
            let mut at = 86_400.0 * f64::from(day) + 28_800.0 + 28_800.0 * dice.roll();
            for _ in 0..12 {
                at += dice.gap(1.0 / 60.0);
                times.extend((0..12).map(|part| at + 0.1 * f64::from(part)));
            }
        }
    }
}

/// A client whose requests come at nearly equal intervals, in seconds.
fn scraper(truth: &mut Truth, dice: &mut Dice, every: f64) {
    let times =
        (0..(SPAN / every) as u32).map(|number| every * (f64::from(number) + 0.1 * dice.roll()));
    truth.insert("10.9.9.9".to_owned(), times.collect());
}

/// The log, in the order of time.
fn log(truth: &Truth, path: impl Fn(&str) -> &'static str) -> String {
    let mut all: Vec<_> = truth
        .iter()
        .flat_map(|(client, times)| times.iter().map(move |time| (*time, client)))
        .collect();
    all.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let mut text = String::new();
    for (time, client) in all {
        let path = path(client);
        let at = 1_700_006_400.0 + time;
        let _ =
            writeln!(text, "{client} [{at:.3}] \"GET {path} HTTP/1.1\" 200 \"agent of {client}\"");
    }
    text
}

pub(super) const FORMAT: &str = r#"$remote_addr [$msec] "$request" $status "$http_user_agent""#;

/// What people read, and the rules.
fn suggested(options: &[&str], log: &str, most: usize) -> Result<(String, String), String> {
    let Suggested { tables, rules, .. } = suggested_of(options, log, most)?;
    Ok((tables, rules.ok_or(TOO_SHORT)?))
}

pub(super) fn suggested_of(options: &[&str], log: &str, most: usize) -> Result<Suggested, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    std::fs::write(&path, log).expect("a log");
    let path = path.to_str().expect("a path");
    let words = [&["suggest", path][..], options].concat();
    suggest(&Cli::parse_from(words).suggest, most).map_err(|error| error.to_string())
}

/// The clients that a token bucket would have refused at least once.
fn refused(truth: &Truth, rate: f64, burst: f64) -> Vec<&str> {
    let is_refused = |times: &Vec<f64>| {
        let mut sorted = times.clone();
        sorted.sort_by(f64::total_cmp);
        let (mut tokens, mut last) = (burst, 0.0);
        sorted.into_iter().any(|time| {
            tokens = (tokens + (time - last) * rate).min(burst);
            last = time;
            let is_refused = tokens < 1.0;
            tokens -= if is_refused { 0.0 } else { 1.0 };
            is_refused
        })
    };
    truth.iter().filter(|(_, times)| is_refused(times)).map(|(client, _)| client.as_str()).collect()
}

/// The rate and the burst of the first rule.
fn bucket(rules: &str) -> (f64, f64) {
    let limits = rules.lines().find_map(|line| line.strip_prefix("limits = [\"")).expect("limits");
    let (count, rest) = limits.split_once('/').expect("a rate");
    let (unit, rest) = rest.split_once(" burst ").expect("a burst");
    let burst = rest.split('"').next().and_then(|burst| burst.parse().ok()).expect("a number");
    let seconds = match unit {
        "second" => 1.0,
        "minute" => 60.0,
        _ => 3_600.0,
    };
    (count.parse::<f64>().expect("a number") / seconds, burst)
}

fn is_valid(rules: &str) {
    let policies =
        read_toml(rules).and_then(|document| Policies::new(&document, &Environment::new()));
    policies.unwrap_or_else(|problems| panic!("{rules}\n{problems}"));
}

fn population(truth: &Truth, most: usize) -> Population {
    let mut population = Population::new(most);
    let mut all: Vec<_> = truth
        .iter()
        .flat_map(|(client, times)| times.iter().map(move |time| (*time, client)))
        .collect();
    all.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    for (time, client) in all {
        let mut hasher = DefaultHasher::new();
        client.hash(&mut hasher);
        let arrival = Arrival { at: (time * 1e9) as i64, agent: Some(1), group: 1 };
        population.add(hasher.finish(), arrival);
    }
    population
}

/// Faster than all rates that are tried.
#[test]
fn a_client_of_a_thousand_requests_a_second_gets_no_burst_by_the_length_of_the_log() {
    let chosen = |seconds: u32| {
        let times = (0..1_000 * seconds).map(|number| f64::from(number) / 1_000.0);
        let truth = Truth::from([("10.0.0.1".to_owned(), times.collect())]);
        let mut covered = Covered::default();
        (0..1_000 * seconds).for_each(|_| covered.add(0.001));
        let terms = Terms { touch: 0.0, room: 1.5, covered, resolution: 0.001 };
        let choice = choose(&population(&truth, 1_000), &terms).expect("a client");
        (choice.count, choice.unit, choice.burst)
    };
    let (count, unit, burst) = chosen(65);
    assert_eq!((count, unit), (1_500, "second"));
    assert!(burst <= 4_000, "{burst}");
    assert_eq!(chosen(130), (count, unit, burst));
}

#[test]
fn limits_touch_what_they_say_also_on_another_log_of_the_same_clients() {
    let truth = |seed| {
        let (mut truth, mut dice) = (Truth::new(), Dice(seed));
        people(&mut truth, &mut dice, 300);
        scraper(&mut truth, &mut dice, 4.0);
        truth
    };
    let first = truth(1);
    for (options, most) in [
        (&["--room", "1", "--touch", "1%"][..], 3),
        (&["--room", "1", "--touch", "0"], 0),
        (&[], 0),
    ] {
        let (tables, rules) =
            suggested(&[options, &["--format", FORMAT]].concat(), &log(&first, |_| "/"), CLIENTS)
                .expect("rules");
        is_valid(&rules);
        assert!(tables.contains("1 client looks automatic"), "{tables}");
        assert!(
            tables.contains("client 1: 64,800 requests, a request every 4.0 seconds"),
            "{tables}"
        );
        let (rate, burst) = bucket(&rules);
        let touched = |truth: &Truth| {
            refused(truth, rate, burst).iter().filter(|client| **client != "10.9.9.9").count()
        };
        let said: usize = rules
            .split("Refuses at most ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next()?.parse().ok())
            .expect("a number");
        assert!(said <= most, "{rules}");
        assert!(touched(&first) <= said, "{} {rules}", touched(&first));
        // Other people may be a little worse than these.
        let others: Vec<_> = (2..6).map(|seed| touched(&truth(seed))).collect();
        assert!(others.iter().sum::<usize>() <= 4 * most + 8, "{others:?} {rules}");
        // A person needs a page with 12 requests, and now and then two.
        assert!((12.0..120.0).contains(&burst), "{rules}");
    }
}

#[test]
fn no_more_clients_are_touched_than_the_operator_allows() {
    for seed in 0..20 {
        let (mut truth, mut dice) = (Truth::new(), Dice(seed));
        for number in 0..100 {
            // Some need a high rate, some a large burst, and some much in a day.
            let (pages, parts, pause) = match number % 10 {
                0 => (4, 40, 3_000.0),
                1 => (200, 1, 2.0),
                2 => (300, 2, 500.0),
                _ => (10, 5, 600.0),
            };
            let mut at = 40_000.0 * dice.roll();
            let times = truth.entry(format!("{number}")).or_default();
            for _ in 0..pages {
                at += dice.gap(1.0 / pause);
                times.extend((0..parts).map(|_| at));
            }
        }
        let population = population(&truth, CLIENTS);
        for touch in [0.0, 0.05, 0.2] {
            let mut covered = Covered::default();
            (0..SPAN as u32).for_each(|_| covered.add(1.0));
            let terms = Terms { touch, room: 1.0, covered, resolution: 0.001 };
            let choice = choose(&population, &terms).expect("a choice");
            assert!(choice.touched <= choice.people * touch, "{seed} {touch} {choice:?}");
            let (rate, burst) = (choice.rate(), choice.burst as f64);
            let mut touched: std::collections::BTreeSet<&str> =
                refused(&truth, rate, burst).into_iter().collect();
            for (client, times) in &truth {
                let mut days = BTreeMap::<u64, u64>::new();
                times
                    .iter()
                    .for_each(|time| *days.entry((time / 86_400.0) as u64).or_default() += 1);
                let most = days.into_values().max().unwrap_or(0);
                if choice.quota.is_some_and(|(quota, window)| window == DAY && most > quota) {
                    touched.insert(client);
                }
            }
            let (said, automatic) = (choice.touched, choice.automatic.len() as f64);
            assert!(
                touched.len() as f64 <= said + automatic,
                "{seed} {touch} {touched:?} {choice:?}"
            );
        }
    }
}

#[test]
fn an_address_that_many_people_share_is_told_by_its_part_of_the_requests() {
    let (mut truth, mut dice) = (Truth::new(), Dice(9));
    people(&mut truth, &mut dice, 400);
    let mut shared = Truth::new();
    people(&mut shared, &mut dice, 100);
    truth.insert("192.0.2.1".to_owned(), shared.into_values().flatten().collect());
    let log = log(&truth, |_| "/");
    let (_, rules) =
        suggested(&["--format", FORMAT, "--touch", "0.5%"], &log, CLIENTS).expect("rules");
    assert!(rules.contains("These clients sent 20.0 % of the requests.\n"), "{rules}");
    let (_, rules) =
        suggested(&["--format", FORMAT, "--touch", "0%"], &log, CLIENTS).expect("rules");
    assert!(rules.contains("Refuses at most 0 of 401.\n# One client"), "{rules}");
}

#[test]
fn rates_and_counts_are_those_of_the_clients() {
    let (mut truth, mut dice) = (Truth::new(), Dice(7));
    // Ninety who ask at random, 6 times a minute, and ten 60 times.
    for number in 0..100 {
        let rate = if number < 90 { 0.1 } else { 1.0 };
        let mut at = 0.0;
        let times = truth.entry(format!("{number}")).or_default();
        while at < 30_000.0 {
            at += dice.gap(rate);
            times.push(at);
        }
    }
    let population = population(&truth, CLIENTS);
    let highest = |window: usize, share: f64| {
        let mut values: Vec<_> = population
            .clients
            .iter()
            .map(|client| (f64::from(client.highest(window)), 1.0))
            .collect();
        values.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        report::quantile(&values, share)
    };
    // In eight hours, the busiest one has little more than the mean of 360 and 3,600.
    assert!((360.0..1.15 * 396.0).contains(&highest(HOUR, 0.5)), "{}", highest(HOUR, 0.5));
    assert!((3_600.0..1.1 * 3_600.0).contains(&highest(HOUR, 0.95)), "{}", highest(HOUR, 0.95));
    assert!((60.0..100.0).contains(&highest(MINUTE, 0.95)));
    assert!((0.9..1.1).contains(&(highest(DAY, 0.95) / 30_000.0)));
    let gaps: Vec<_> = population.clients.iter().map(Client::mean_gap).collect();
    let slow = gaps.iter().filter(|gap| (9.0..11.0).contains(*gap)).count();
    let fast = gaps.iter().filter(|gap| (0.9..1.1).contains(*gap)).count();
    assert_eq!((slow, fast), (90, 10));
    // None of them is even.
    assert!(!population.clients.iter().any(|client| client.looks_automatic(0.001)));
    // What candidates refuse is what fixed windows refuse.
    let mut refused = 0;
    for times in truth.values() {
        let mut minutes = BTreeMap::<u64, u64>::new();
        times.iter().for_each(|time| *minutes.entry((time / 60.0) as u64).or_default() += 1);
        refused += minutes.values().map(|count| count.saturating_sub(60)).sum::<u64>();
    }
    let share = refused as f64 / population.requests as f64;
    assert!((population.refused(MINUTE, 60) - share).abs() < 1e-9);
}

/// Other servers as clients, each of which asks at its own steady rate.
#[test]
fn where_programs_are_the_clients_limits_are_made_for_them() {
    let (mut truth, mut dice) = (Truth::new(), Dice(5));
    people(&mut truth, &mut dice, 20);
    for number in 0..20 {
        scraper(&mut truth, &mut dice, 30.0 + 30.0 * f64::from(number));
        let times = truth.remove("10.9.9.9").expect("a client");
        truth.insert(format!("10.8.8.{number}"), times);
    }
    let (tables, rules) =
        suggested(&["--touch", "0", "--format", FORMAT], &log(&truth, |_| "/"), CLIENTS)
            .expect("rules");
    assert!(tables.contains("20 clients look automatic"), "{tables}");
    assert!(rules.contains("too many to be left out: 20"), "{rules}");
    let (rate, burst) = bucket(&rules);
    assert_eq!(refused(&truth, rate, burst), Vec::<&str>::new(), "{rules}");
}

#[test]
fn robots_are_told_from_people_also_by_whole_seconds() {
    let (mut truth, mut dice) = (Truth::new(), Dice(17));
    // Several times a second, and up to every ten minutes, with some jitter.
    for (number, every) in [0.3, 1.0, 4.0, 60.0, 600.0].into_iter().enumerate() {
        let times = (0..(6_000.0_f64.min(SPAN / every)) as u32)
            .map(|at| every * (f64::from(at) + 0.2 * dice.roll()));
        truth.insert(format!("robot {number}"), times.collect());
    }
    people(&mut truth, &mut dice, 50);
    // An office behind one address, all day.
    let mut at = 0.0;
    let office = truth.entry("office".to_owned()).or_default();
    while at < SPAN {
        at += dice.gap(0.05);
        office.push(at);
    }
    for resolution in [1.0, 0.001] {
        let coarse = |times: &Vec<f64>| {
            times.iter().map(|time| (time / resolution).floor() * resolution).collect()
        };
        let coarse = truth.iter().map(|(client, times)| (client.clone(), coarse(times))).collect();
        let population = population(&coarse, CLIENTS);
        let mut automatic: Vec<_> = population
            .clients
            .iter()
            .filter(|client| client.looks_automatic(resolution as f32))
            .map(|client| client.requests)
            .collect();
        automatic.sort_unstable();
        // The office has one agent and one path here, and no night, so it is taken for one.
        let mut expected = vec![432, 4_320, 6_000, 6_000, 6_000, office_requests(&truth)];
        expected.sort_unstable();
        assert_eq!(automatic, expected, "{resolution}");
    }
}

fn office_requests(truth: &Truth) -> u32 {
    truth["office"].len() as u32
}

#[test]
fn the_burst_of_a_rate_is_the_least_that_refuses_nothing() {
    let (mut truth, mut dice) = (Truth::new(), Dice(3));
    people(&mut truth, &mut dice, 20);
    let population = population(&truth, CLIENTS);
    for (place, rate) in rates().into_iter().enumerate() {
        let most = population.clients.iter().map(|client| client.bursts[place]).fold(0.0, f32::max);
        let (rate, most) = (f64::from(rate), f64::from(most));
        assert_eq!(refused(&truth, rate, most + 0.01), Vec::<&str>::new(), "{rate} {most}");
        if most > 1.01 {
            assert!(!refused(&truth, rate, most - 0.01).is_empty(), "{rate} {most}");
        }
    }
}

#[test]
fn a_sample_of_clients_is_right_within_what_it_says_and_has_the_worst() {
    let (mut truth, mut dice) = (Truth::new(), Dice(5));
    for number in 0..20_000 {
        let count = if number % 10 == 0 { 10 } else { 2 };
        truth.insert(format!("{number}"), (0..count).map(|_| 1_000.0 * dice.roll()).collect());
    }
    for number in 0..3 {
        truth
            .insert(format!("worst {number}"), (0..5_000).map(|_| 1_000.0 * dice.roll()).collect());
    }
    let population = population(&truth, 2_000);
    assert!(population.clients.len() <= 2_000 + 4 * 1_024, "{}", population.clients.len());
    assert!(population.one_in() >= 8);
    let weight = |is: &dyn Fn(&&Client) -> bool| -> f64 {
        population.clients.iter().filter(is).map(|client| population.weight(client)).sum()
    };
    let (all, many) = (weight(&|_| true), weight(&|client| client.highest(DAY) >= 8));
    assert!((0.9..1.1).contains(&(all / 20_003.0)), "{all}");
    assert!((0.07..0.13).contains(&(many / all)), "{many} of {all}");
    let worst = population.clients.iter().filter(|client| client.requests > 4_000).count();
    assert_eq!(worst, 3);
    assert_eq!(population.requests, truth.values().map(|times| times.len() as u64).sum::<u64>());
}

#[test]
fn a_client_takes_little_memory() {
    assert!(size_of::<Client>() <= 400, "{}", size_of::<Client>());
}

#[test]
fn a_log_that_is_too_short_says_so() {
    let (mut truth, mut dice) = (Truth::new(), Dice(9));
    for client in 0..50 {
        truth.insert(format!("10.0.0.{client}"), (0..40).map(|_| 10_800.0 * dice.roll()).collect());
    }
    let log = log(&truth, |_| "/");
    let (tables, rules) = suggested(&["--format", FORMAT], &log, CLIENTS).expect("rules");
    assert!(tables.contains("3.0 hours say nothing about a limit for a day"), "{tables}");
    assert!(!tables.contains("nothing about a limit for an hour"), "{tables}");
    assert!(!rules.contains("/day"), "{rules}");
    is_valid(&rules);
    // One line has no rate at all.
    let line = log.lines().next().expect("a line");
    let error = suggested(&["--format", FORMAT], line, CLIENTS).expect_err("too short");
    assert!(error.contains("less than two minutes"), "{error}");
}

/// A file that was forgotten beside the log, and a clock that was not set.
#[test]
fn a_line_of_another_time_does_not_make_a_log_longer() {
    let (mut truth, mut dice) = (Truth::new(), Dice(23));
    for client in 0..50 {
        truth.insert(format!("10.0.0.{client}"), (0..40).map(|_| 3_600.0 * dice.roll()).collect());
    }
    let expected = suggested(&["--format", FORMAT], &log(&truth, |_| "/"), CLIENTS);
    let (_, expected) = expected.expect("rules");
    assert!(!expected.contains("fixed "), "{expected}");
    truth.insert("10.0.1.1".to_owned(), vec![-21.0 * 86_400.0]);
    truth.insert("10.0.1.2".to_owned(), vec![70.0 * 365.0 * 86_400.0]);
    let (tables, rules) =
        suggested(&["--format", FORMAT], &log(&truth, |_| "/"), CLIENTS).expect("rules");
    assert!(tables.contains("hours say nothing about a limit for a day"), "{tables}");
    assert!(tables.contains("nothing about a limit for an hour"), "{tables}");
    assert_eq!(bucket(&rules), bucket(&expected), "{rules}");
    assert!(!rules.contains("fixed "), "{rules}");
}

#[test]
fn a_short_log_gives_no_rate_that_it_cannot_prove() {
    let (mut truth, mut dice) = (Truth::new(), Dice(13));
    for client in 0..20 {
        truth.insert(format!("10.0.0.{client}"), (0..120).map(|_| 120.0 * dice.roll()).collect());
    }
    let (_, rules) =
        suggested(&["--format", FORMAT, "--room", "1"], &log(&truth, |_| "/"), CLIENTS)
            .expect("rules");
    let (rate, burst) = bucket(&rules);
    // They would have been within ten an hour with a burst of 120 too, for these two minutes.
    assert!((0.5..2.5).contains(&rate) && burst < 60.0, "{rules}");
}

#[test]
fn a_path_that_needs_much_less_has_a_rule_of_its_own() {
    let (mut truth, mut dice) = (Truth::new(), Dice(11));
    people(&mut truth, &mut dice, 100);
    for client in 0..60 {
        truth.insert(format!("10.2.0.{client}"), (0..4).map(|_| SPAN * dice.roll()).collect());
    }
    for (path, patterns) in [
        ("/login", "\"/login\", \"/login/{*rest}\""),
        // What would be a file of that name counts elsewhere.
        ("/shop.Users/Login", "\"/shop.Users/{*rest}\""),
    ] {
        let log = log(&truth, |client| if client.starts_with("10.2") { path } else { "/shop/7" });
        let (_, rules) = suggested(&["--format", FORMAT], &log, CLIENTS).expect("rules");
        assert!(rules.contains(&format!("when = {{ path = [{patterns}] }}")), "{rules}");
        is_valid(&rules);
    }
}

/// A rule for `/api` limits the searches beneath it too, which were counted apart.
#[test]
fn a_group_that_others_are_beneath_has_no_rule() {
    for (wide, beneath) in [
        ("/api/openapi.json", "/api/search"),
        ("/api/", "/api/search"),
        ("/v1/7d444840-9dc0-11d1-b245-5ffdce74fad2", "/v1/search"),
        ("/api/v1/7", "/api/v1/search"),
    ] {
        let (mut truth, mut dice) = (Truth::new(), Dice(21));
        for client in 0..40 {
            let often = (0..400).map(|_| 7_200.0 * dice.roll()).collect();
            truth.insert(format!("10.0.0.{client}"), often);
        }
        let mut text = log(&truth, |_| beneath);
        for client in 0..40 {
            // Of the last second, so that the log stays in order.
            let _ = writeln!(
                text,
                "10.0.0.{client} [1700013600.{client:03}] \"GET {wide} HTTP/1.1\" 200 \"-\""
            );
        }
        let (_, rules) = suggested(&["--format", FORMAT], &text, CLIENTS).expect("rules");
        assert!(!rules.contains("when = "), "{wide} {rules}");
    }
}

#[test]
fn what_a_few_clients_do_makes_no_rule_for_a_path() {
    let (mut truth, mut dice) = (Truth::new(), Dice(15));
    people(&mut truth, &mut dice, 100);
    // It looks automatic, so the other limits are not made for it either.
    scraper(&mut truth, &mut dice, 300.0);
    let log = log(&truth, |client| if client == "10.9.9.9" { "/export" } else { "/shop/7" });
    let (_, rules) = suggested(&["--format", FORMAT], &log, CLIENTS).expect("rules");
    assert!(rules.contains("left out: 1") && !rules.contains("/export"), "{rules}");
}

#[test]
fn any_key_of_the_rules_can_be_asked_for() {
    let log = "10.0.0.1 [1700000000.0] \"GET / HTTP/1.1\" \"192.0.2.1\"\n10.0.0.1 [1700000200.0] \"GET / HTTP/1.1\" \"192.0.2.2\"\n192.0.2.9 [1700000300.0] \"GET / HTTP/1.1\" \"-\"\n";
    let format = ["--format", "$remote_addr [$msec] \"$request\" \"$http_x_forwarded_for\""];
    let by = |options: &[&str]| suggested(&[&format[..], options].concat(), log, CLIENTS);
    let clients = |options: &[&str]| {
        let (tables, rules) = by(options).expect("rules");
        is_valid(&rules);
        tables.lines().find_map(|line| {
            Some(line.split_once(" requests of ")?.1.split(' ').next()?.to_owned())
        })
    };
    assert_eq!(clients(&[]).as_deref(), Some("2"));
    assert_eq!(clients(&["--proxies", "10.0.0.0/8"]).as_deref(), Some("3"));
    assert_eq!(clients(&["--by", "[\"ip\", \"method\"]"]).as_deref(), Some("2"));
    let (tables, rules) = by(&["--by", "{ header = \"x-forwarded-for\" }"]).expect("rules");
    assert!(tables.contains("requests that could not be judged: 1 (33.3 %)"), "{tables}");
    // The file goes further than the tables.
    assert!(rules.contains("# 33.3 % of the requests are not among them"), "{rules}");
    assert!(rules.contains("`key = { optional = { header = \"x-forwarded-for\" } }`"), "{rules}");
    let optional = "{ optional = { header = \"x-forwarded-for\" } }";
    is_valid(
        &rules.replace("key = { header = \"x-forwarded-for\" }", &format!("key = {optional}")),
    );
    for (options, expected) in [
        (&["--by", "{ header = \"x-api-key\" }"][..], "no request could be judged"),
        (&["--by", "ipp"], "--by or --proxies:"),
        (&["--by", "\"ip\"\nlimits = []"], "expected a key on one line"),
        (&["--proxies", "nonsense"], "--by or --proxies:"),
        (&["--client-header", "forwarded"], "which --proxies names"),
    ] {
        let error = by(options).expect_err("an error");
        assert!(error.contains(expected), "{error}");
    }
}

/// A proxy that is believed names the client in a header. Without it, all clients would be one.
#[test]
fn a_log_without_the_header_of_the_proxies_is_told_to_lack_it() {
    let line = |second: u32, more: &str| {
        format!(
            "10.0.0.1 - - [10/Oct/2000:13:{second:02}:36 +0000] \"GET / HTTP/1.1\" 200 5 \"-\" \"curl\"{more}\n"
        )
    };
    let log = |more: &[&str]| -> String {
        (0..).zip(more).map(|(second, more)| line(second, more)).collect()
    };
    let by = |text: &str| suggested(&["--proxies", "10.0.0.0/8"], text, CLIENTS);
    let error = by(&log(&["", "", "", ""])).expect_err("no client is known");
    assert!(error.contains("the log does not have the header `x-forwarded-for`"), "{error}");
    // The format `main` of nginx's packages has it.
    let (tables, _) =
        by(&log(&[" \"192.0.2.1\"", " \"-\"", " \"192.0.2.2, 10.0.0.2\""])).expect("rules");
    assert!(tables.contains("3 requests of 3 clients"), "{tables}");
    assert!(tables.contains("format: main"), "{tables}");
    // Clients that come directly say nothing that is believed, so nothing is lacking.
    let direct = log(&["", "", "", ""]).replace("10.0.0.1", "192.0.2.7");
    let (tables, _) = by(&direct).expect("rules");
    assert!(tables.contains("4 requests of 1 client"), "{tables}");
    // Another field in its place.
    let error = by(&log(&[" \"2.41\"", " \"-\""])).expect_err("no client is known");
    assert!(error.contains("format: combined"), "{error}");
}

/// The log of the guide's page.
pub(super) fn shop() -> String {
    let (mut truth, mut dice) = (Truth::new(), Dice(1));
    people(&mut truth, &mut dice, 300);
    scraper(&mut truth, &mut dice, 4.0);
    log(&truth, |client| if client == "10.9.9.9" { "/items/7" } else { "/" })
}

#[test]
fn the_page_of_the_guide_shows_what_the_command_prints() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../sluicegate/src/guide/which_number.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let (tables, rules) = suggested(&["--format", FORMAT], &shop(), CLIENTS).expect("rules");
    for part in [tables.trim_end(), rules.trim_end()] {
        assert!(page.contains(part), "the page lacks\n{part}");
    }
}
