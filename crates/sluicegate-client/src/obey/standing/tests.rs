use http::{HeaderMap, HeaderName, StatusCode};

use super::*;

const SECOND: u64 = 1_000_000;

struct Client {
    standing: Standing,
    rules: Rules,
    now: u64,
}

impl Client {
    fn new() -> Self {
        let mut client = Self::unknown();
        client.exchange(200, &[]);
        client
    }

    /// One that has never heard of the server.
    fn unknown() -> Self {
        Self { standing: Standing::default(), rules: Rules::default(), now: 0 }
    }

    fn ask(&mut self) -> Turn {
        self.standing.ask(self.now, &self.rules)
    }

    fn hear(&mut self, turn: Turn, status: u16, fields: &[(&str, &str)]) {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.insert(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        let status = StatusCode::from_u16(status).unwrap();
        let signal = Signal::read(status, &headers, Duration::ZERO);
        self.standing.observe(self.now, &signal, turn, &self.rules, 0);
    }

    fn exchange(&mut self, status: u16, fields: &[(&str, &str)]) {
        let turn = self.ask();
        assert!(!matches!(turn, Turn::Wait(_)), "{turn:?} at {}", self.now);
        self.hear(turn, status, fields);
    }

    fn waits(&mut self) -> u64 {
        match self.ask() {
            Turn::Wait(time) => time.as_micros() as u64,
            turn => panic!("{turn:?}"),
        }
    }
}

#[test]
fn the_first_request_to_a_server_goes_alone_for_a_moment() {
    let mut client = Client::unknown();
    assert_eq!(client.ask(), Turn::Go);
    assert_eq!(client.waits(), SECOND);
    client.hear(Turn::Go, 200, &[("ratelimit", r#""a";r=2;t=60"#)]);
    assert_eq!((client.ask(), client.ask()), (Turn::Go, Turn::Go));
    assert!(client.waits() > 0);
    // One that is slow, or whose caller leaves, holds nobody up.
    let mut client = Client::unknown();
    client.ask();
    client.now = SECOND;
    assert_eq!((client.ask(), client.ask()), (Turn::Go, Turn::Go));
    let mut client = Client::unknown();
    let turn = client.ask();
    client.standing.give_up(turn);
    assert_eq!(client.ask(), Turn::Go);
}

#[test]
fn one_request_goes_first_after_a_refusal() {
    let mut client = Client::new();
    client.exchange(429, &[("retry-after", "30")]);
    assert_eq!(client.waits(), 30 * SECOND);
    client.now = 30 * SECOND - 1;
    assert_eq!(client.waits(), 1);
    client.now += 1;
    assert_eq!(client.ask(), Turn::Probe);
    assert!(client.waits() > 0);
    client.hear(Turn::Probe, 200, &[]);
    // Then two, then three, …
    assert_eq!((client.ask(), client.ask()), (Turn::Go, Turn::Go));
    assert!(client.waits() > 0);
    client.hear(Turn::Go, 200, &[]);
    assert_eq!((client.ask(), client.ask()), (Turn::Go, Turn::Go));
    assert!(client.waits() > 0);
}

#[test]
fn a_probe_that_is_given_up_makes_room_for_another_at_once() {
    let mut client = Client::new();
    client.exchange(503, &[("retry-after", "1")]);
    client.now = SECOND;
    assert_eq!(client.ask(), Turn::Probe);
    client.standing.give_up(Turn::Probe);
    assert_eq!(client.ask(), Turn::Probe);
}

#[test]
fn a_probe_that_stalls_does_not_hold_the_others_for_ever() {
    let mut client = Client::new();
    client.exchange(429, &[("retry-after", "1")]);
    client.now = SECOND;
    assert_eq!(client.ask(), Turn::Probe);
    client.now += client.waits();
    assert_eq!(client.ask(), Turn::Probe);
}

#[test]
fn a_later_response_with_a_shorter_wait_does_not_shorten_the_longer_one() {
    let mut client = Client::new();
    let turns = [client.ask(), client.ask(), client.ask()];
    client.hear(turns[0], 429, &[("retry-after", "30")]);
    client.hear(turns[1], 429, &[("retry-after", "1")]);
    client.hear(turns[2], 200, &[]);
    assert_eq!(client.waits(), 30 * SECOND);
}

#[test]
fn what_a_hostile_server_demands_is_capped() {
    for wait in ["1000000000", "99999999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"] {
        let mut client = Client::new();
        client.exchange(429, &[("retry-after", wait)]);
        assert_eq!(client.waits(), 3_600 * SECOND, "{wait}");
    }
    let mut client = Client::new();
    client.exchange(200, &[("ratelimit", r#""a";r=0;t=999999999999999"#)]);
    assert_eq!(client.waits(), 3_600 * SECOND);
    client.now = u64::MAX - 1;
    client.exchange(429, &[("retry-after", "99999999999999999999999")]);
    assert!(client.waits() > 0);
}

#[test]
fn a_server_that_says_zero_again_and_again_is_not_hammered() {
    let mut client = Client::new();
    let mut sent = 0;
    while client.now < 60 * SECOND {
        match client.ask() {
            Turn::Wait(time) => client.now += time.as_micros() as u64,
            turn => {
                sent += 1;
                client.now += 1_000;
                client.hear(turn, 429, &[("retry-after", "0")]);
            }
        }
    }
    assert!(sent < 80, "{sent}");
}

#[test]
fn a_refusal_that_does_not_say_how_long_is_waited_out_longer_each_time() {
    let mut client = Client::new();
    let mut last = 0;
    for _ in 0..6 {
        client.exchange(429, &[]);
        let wait = client.waits();
        assert!(wait > last, "{wait} after {last}");
        last = wait;
        client.now += wait;
    }
    client.exchange(200, &[]);
    client.exchange(429, &[]);
    assert!(client.waits() < last);
}

#[test]
fn nothing_is_sent_when_nothing_is_left() {
    let mut client = Client::new();
    client.exchange(200, &[("ratelimit", r#""a";r=0;t=7"#)]);
    assert_eq!(client.waits(), 7 * SECOND);
    client.now = 7 * SECOND;
    assert_eq!(client.ask(), Turn::Probe);
}

#[test]
fn what_is_left_is_spread_over_the_time_to_the_reset() {
    let mut client = Client::new();
    client.exchange(200, &[("ratelimit", r#""a";r=100;t=60"#)]);
    assert_eq!((client.ask(), client.ask()), (Turn::Go, Turn::Go));
    client.hear(Turn::Go, 200, &[("ratelimit", r#""a";r=21;t=50"#)]);
    client.hear(Turn::Go, 200, &[("ratelimit", r#""a";r=20;t=50"#)]);
    assert_eq!(client.ask(), Turn::Go);
    assert_eq!(client.waits(), 50 * SECOND / 20);
}

#[test]
fn the_strictest_of_several_quotas_holds() {
    let mut client = Client::new();
    client.exchange(200, &[("ratelimit", r#""a";r=100;t=1, "b";r=0;t=5, "c";r=0;t=3"#)]);
    assert_eq!(client.waits(), 5 * SECOND);
}

#[test]
fn a_new_field_replaces_the_old_one() {
    let mut client = Client::new();
    let turns = [client.ask(), client.ask()];
    client.hear(turns[0], 200, &[("ratelimit", r#""a";r=0;t=60"#)]);
    client.hear(turns[1], 200, &[("ratelimit", r#""a";r=10;t=60"#)]);
    assert_eq!(client.ask(), Turn::Go);
}

#[test]
fn requests_under_way_count_against_what_is_left() {
    let mut client = Client::new();
    let turns = [client.ask(), client.ask(), client.ask(), client.ask()];
    client.hear(turns[0], 200, &[("ratelimit", r#""a";r=3;t=60"#)]);
    assert!(client.waits() > 0);
    for (turn, left) in turns.into_iter().skip(1).zip([r#""a";r=2;t=60"#, r#""a";r=1;t=60"#]) {
        client.hear(turn, 200, &[("ratelimit", left)]);
    }
    assert!(client.waits() > 0);
}

#[test]
fn what_requests_cost_in_tokens_is_learned() {
    let mut client = Client::new();
    let left = |tokens: u64| {
        [
            ("x-ratelimit-limit-tokens", "10000".to_owned()),
            ("x-ratelimit-remaining-tokens", tokens.to_string()),
            ("x-ratelimit-reset-tokens", "1m0s".to_owned()),
        ]
    };
    let mut tokens = 10_000;
    let mut sent = 0;
    while client.now < 50 * SECOND {
        match client.ask() {
            Turn::Wait(time) => client.now += time.as_micros() as u64,
            turn => {
                tokens = u64::checked_sub(tokens, 900).expect("refused by the server");
                sent += 1;
                let fields = left(tokens);
                client.hear(turn, 200, &fields.each_ref().map(|(name, text)| (*name, &**text)));
            }
        }
    }
    assert!(sent >= 10, "{sent}");
}

#[test]
fn clients_that_were_refused_together_return_apart() {
    let rules = Rules::default();
    let waits = (0..8).map(|client: u32| {
        rules.wait_after(Some(Duration::from_secs(10)), 1, 0, false, client << 29)
    });
    let mut waits: Vec<_> = waits.collect();
    assert!(waits.iter().all(|wait| (10 * SECOND..=11 * SECOND).contains(wait)), "{waits:?}");
    waits.dedup();
    assert_eq!(waits.len(), 8);
}

#[test]
fn nothing_is_sent_before_retry_after_in_a_hundred_thousand_requests() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut client = Client::new();
    let (mut under_way, mut closed_until, mut sent, mut refused) = (Vec::new(), 0, 0, 0);
    while sent < 100_000 {
        client.now += random.u64(0..20_000);
        if let turn @ (Turn::Go | Turn::Probe) = client.ask() {
            // No response since then was older than the latest refusal, so none may be sent before its end.
            assert!(client.now >= closed_until, "sent {} µs early", closed_until - client.now);
            sent += 1;
            under_way.push(turn);
        }
        if under_way.len() > random.usize(0..30) {
            let turn = under_way.swap_remove(random.usize(..under_way.len()));
            match random.u32(0..50) {
                0 => {
                    let seconds = random.u64(0..4);
                    refused += 1;
                    closed_until = closed_until.max(client.now + seconds * SECOND);
                    client.hear(turn, 429, &[("retry-after", &seconds.to_string())]);
                }
                1 => client.standing.give_up(turn),
                2 => client.hear(turn, 200, &[("ratelimit", r#""a";r=2;t=1"#)]),
                _ => client.hear(turn, 200, &[]),
            }
        }
    }
    assert!(refused > 1_000, "{refused}");
}

#[test]
fn settings_that_make_no_sense_are_errors() {
    let (second, none) = (Duration::from_secs(1), Duration::ZERO);
    for (longest, probe) in
        [(none, second), (second, none), (Duration::MAX, second), (second, Duration::MAX)]
    {
        let sentence = Rules::try_new(longest, probe).unwrap_err().to_string();
        assert!(sentence.contains("was given"), "{sentence}");
    }
}

#[test]
fn a_server_that_boasts_of_more_than_can_be_counted_breaks_nothing() {
    let mut client = Client::new();
    let tokens = |left| [("x-ratelimit-remaining-tokens", left), ("x-ratelimit-reset-tokens", "9")];
    client.exchange(200, &tokens("99999999999999999999999"));
    client.exchange(200, &tokens("0"));
    assert!(client.waits() <= 10 * SECOND);
}

#[test]
fn the_gaps_between_requests_are_no_longer_than_a_server_may_demand() {
    let mut client = Client::new();
    client.exchange(200, &[("ratelimit", r#""a";r=100;t=3600"#)]);
    // Each refusal makes the gaps longer.
    for _ in 0..12 {
        client.exchange(429, &[("retry-after", "0")]);
        client.now += 600 * SECOND;
    }
    client.exchange(200, &[("ratelimit", r#""a";r=1;t=3600"#)]);
    client.exchange(200, &[("ratelimit", r#""a";r=1;t=3600"#)]);
    let waits = client.waits();
    assert!((60 * SECOND..=3_600 * SECOND).contains(&waits), "{waits}");
}

#[test]
fn a_bad_time_leaves_no_longer_gap_than_the_one_that_holds_now() {
    let mut client = Client::new();
    client.exchange(200, &[("ratelimit", r#""a";r=100;t=3600"#)]);
    let before = client.ask();
    // One is left for an hour: the next request may go in an hour.
    client.exchange(200, &[("ratelimit", r#""a";r=2;t=3600"#)]);
    client.exchange(200, &[("ratelimit", r#""a";r=1;t=3600"#)]);
    assert!(client.waits() > 1_000 * SECOND);
    // The response to the one that was under way says that the window is a new one: ten are left for ten seconds.
    client.hear(before, 200, &[("ratelimit", r#""a";r=10;t=10"#)]);
    let waits = client.waits();
    assert!(waits <= 2 * SECOND, "{waits}");
    // Asking again does not put it off.
    client.now += waits / 2;
    assert!(client.waits() <= waits / 2 + 1);
    client.now += waits;
    assert_eq!(client.ask(), Turn::Go);
}

/// What one client is served in each second by a server of 100 requests a second, which counts by windows and takes a
/// hundredth of a second, and after 20 s so long. Somebody always waits to send.
fn served_by_windows(latency: u64) -> Vec<u64> {
    let mut client = Client::new();
    let mut responses = std::collections::BTreeMap::new();
    let mut windows = vec![0; 80];
    for number in 0..1_000_000 {
        while let Some(first) = responses.first_entry() {
            let ((at, _), (turn, status)) = (*first.key(), *first.get());
            if at > client.now {
                break;
            }
            first.remove();
            client.hear(turn, status, if status == 429 { &[("retry-after", "1")] } else { &[] });
        }
        match client.ask() {
            Turn::Wait(_) => client.now += 1_000,
            turn => {
                let takes = if client.now < 20 * SECOND { 10_000 } else { latency };
                let used = &mut windows[(client.now / SECOND) as usize];
                let status = if *used < 100 { 200 } else { 429 };
                *used += u64::from(status == 200);
                responses.insert((client.now + takes, number), (turn, status));
                client.now += 125;
            }
        }
        if client.now >= 80 * SECOND {
            break;
        }
    }
    windows
}

#[test]
fn a_server_that_has_become_slow_is_asked_for_no_less() {
    for (latency, least) in [(10_000, 85), (300_000, 50), (1_000_000, 45), (3_000_000, 25)] {
        let served = served_by_windows(latency);
        let mean = |seconds: &[u64]| seconds.iter().sum::<u64>() / seconds.len() as u64;
        assert!(mean(&served[5..20]) >= 85, "{served:?}");
        assert!(mean(&served[40..]) >= least, "{latency}: {served:?}");
    }
}

#[test]
fn a_refusal_that_comes_after_minutes_does_not_make_windows_of_minutes() {
    let mut window = super::window::Window::default();
    [0, 10].into_iter().for_each(|now| window.served(now));
    window.refused(SECOND / 10, SECOND, true);
    let sent = window.next(2 * SECOND, 0);
    window.sent(sent);
    window.served(sent);
    let refused = sent + 300 * SECOND;
    window.refused(refused, SECOND, false);
    let mut sent = 0;
    for now in (10..110).map(|tenths| refused + tenths * SECOND / 10) {
        if window.next(now, 0) <= now {
            window.sent(now);
            window.served(now);
            sent += 1;
        }
    }
    assert!(sent >= 10, "{sent} in ten windows");
}
