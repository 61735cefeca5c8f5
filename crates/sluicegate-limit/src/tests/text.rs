//! Limits as text: parsed and printed.

use proptest::prelude::*;

use super::super::{Limit, Limits};
use super::strategies::limit;
use super::{micros, secs};

fn named() -> impl Strategy<Value = Option<String>> {
    prop::option::of("[ -~]{1,31}")
}

proptest! {
    #[test]
    fn what_is_printed_reads_as_the_same_limit(
        limit in limit(),
        name in named(),
        carried in prop::bool::ANY,
        shadow in prop::bool::ANY,
    ) {
        let limit = name.map_or(limit, |name| limit.named(&name));
        let limit = if shadow { limit.shadow() } else { limit };
        let limit = if carried { limit.try_carried().unwrap_or(limit) } else { limit };
        prop_assert_eq!(limit.to_string().parse::<Limit>(), Ok(limit), "{}", limit);
    }

    #[test]
    fn a_list_that_is_printed_reads_as_the_same_list(
        limits in prop::collection::vec((limit(), "[ -~]{1,20}"), 1..16)
    ) {
        let name = |(i, (limit, name)): (usize, (Limit, String))| limit.named(&format!("{i}{name}"));
        let limits: Limits = limits.into_iter().enumerate().map(name).collect::<Vec<_>>().into();
        prop_assert_eq!(limits.to_string().parse::<Limits>(), Ok(limits));
    }

    #[test]
    fn no_text_panics(text in "([0-9_]{0,25}|[a-z/; \"\\\\-]{0,12}|\\PC|burst|named|per|leaky){0,12}") {
        let _ = text.parse::<Limit>();
        let _ = text.parse::<Limits>();
    }
}

#[test]
fn limits_are_written_in_plain_words() {
    let table = [
        ("100/minute", Limit::per_minute(100)),
        ("100/m", Limit::per_minute(100)),
        ("  100 / minute  ", Limit::per_minute(100)),
        ("token 100 per minute", Limit::per_minute(100)),
        ("10 per 2 hours", Limit::per(10, secs(7_200))),
        ("5 per 100ms", Limit::per(5, micros(100_000))),
        ("1_000/second burst 20", Limit::per_second(1_000).burst(20)),
        ("100/minute burst 20 named \"api\"", Limit::per_minute(100).burst(20).named("api")),
        ("100/minute named api", Limit::per_minute(100).named("api")),
        ("1/s named \"a \\\"b\\\" \\\\c\"", Limit::per_second(1).named("a \"b\" \\c")),
        ("10 per 10s stepped burst 60", Limit::per_minute(60).refill(10, secs(10))),
        ("10 per 10s stepped", Limit::per(10, secs(10)).refill(10, secs(10))),
        ("10 per 10s burst 60 stepped", Limit::per_minute(60).refill(10, secs(10))),
        ("leaky 10/second queue 20", Limit::leaky_bucket(10, secs(1)).queue(20)),
        (
            "leaky 10/s queue 20 delay-after 8",
            Limit::leaky_bucket(10, secs(1)).queue(20).delay_after(8),
        ),
        ("fixed 5/day", Limit::fixed_window(5, secs(86_400))),
        ("fixed 5/week from-first", Limit::fixed_window(5, secs(604_800)).from_first()),
        ("log 5/hour", Limit::sliding_log(5, secs(3_600))),
        ("log 5/hour resolution minute", Limit::sliding_log(5, secs(3_600)).resolution(secs(60))),
        ("sliding 5/hour count-refused", Limit::sliding_window(5, secs(3_600)).count_refused()),
        ("1/s min-gap 250ms", Limit::per_second(1).min_gap(micros(250_000))),
        ("10/s soft 8 ban 1 hour", Limit::per_second(10).soft(8).ban(secs(3_600))),
        (
            "10/s ban 5 minutes after 3 in minute named a",
            Limit::per_second(10).ban(secs(300)).ban_after(3, secs(60)).named("a"),
        ),
        ("1000/month", Limit::per(1_000, secs(2_592_000))),
        ("fixed 5 per 2 Months", Limit::fixed_window(5, secs(5_184_000))),
        ("9/year", Limit::per(9, secs(31_536_000))),
        (
            "10 PER 2 Weeks BURST 20 Named Api",
            Limit::per(10, secs(1_209_600)).burst(20).named("Api"),
        ),
        ("Leaky 10/Second Queue 20", Limit::leaky_bucket(10, secs(1)).queue(20)),
        ("CONCURRENT 5", Limit::concurrent(5)),
        (
            "10/S Ban 5 Min After 3 In Minute",
            Limit::per_second(10).ban(secs(300)).ban_after(3, secs(60)),
        ),
        ("10/s carried named a", Limit::per_second(10).named("a").carried()),
        ("10/s shadow soft 5", Limit::per_second(10).soft(5).shadow()),
        ("concurrent 5", Limit::concurrent(5)),
    ];
    for (text, limit) in table {
        assert_eq!(text.parse(), Ok(limit), "{text}");
    }
}

#[test]
fn errors_quote_the_text_and_name_the_bad_part() {
    let table = [
        ("", "there is no limit"),
        ("-5/minute", "the count is negative"),
        ("often", "the algorithm is not known"),
        ("gcra 5/minute", "the algorithm is not known"),
        ("5", "the text ends too soon"),
        ("5/", "the text ends too soon"),
        ("5 minute", "after the count comes `/` or `per`"),
        ("1.5/minute", "after the count comes `/` or `per`"),
        ("99999999999999999999/minute", "a number is too large"),
        ("leaky ten/minute", "a whole number is missing"),
        ("5/fortnight", "the unit of time is not known"),
        ("5 per 99999999999999999 weeks", "a time is too long"),
        ("0/minute", "the count is 0"),
        ("5 per 0s", "the period is 0"),
        ("5/minute burst", "the text ends too soon"),
        ("5/minute burst -1", "a whole number is missing"),
        ("5/minute brust 7", "an option is not known"),
        ("5/minute burst 7 burst 8", "an option is there twice"),
        ("5/minute named a shadow NAMED b", "an option is there twice"),
        ("5/minute queue 7", "a queue belongs to a leaky bucket"),
        ("5/minute; 10/hour", "read several limits as `Limits`"),
        ("5/minute burst 7; 10/hour", "read several limits as `Limits`"),
        ("5/minute named", "the name is empty"),
        ("5/minute, 10/hour", "separate limits by `;`"),
        ("5/minute burst 10, 10/hour", "separate limits by `;`"),
        ("10,000/day", "write 10000 or 10_000"),
        (",", "separate limits by `;`"),
        ("5/minute named \"daily", "the name's closing quote is missing"),
    ];
    for (text, part) in table {
        let error = text.parse::<Limit>().expect_err(text).to_string();
        assert!(error.contains(part), "{text}: {error}");
        assert!(text.is_empty() || error.starts_with(&format!("in `{text}`: ")), "{error}");
    }
}

#[test]
fn an_error_in_a_list_quotes_the_limit_that_is_bad() {
    let error = "10/second; 5/fortnight; 3/day".parse::<Limits>().unwrap_err().to_string();
    assert!(error.starts_with("in `5/fortnight`: the unit of time"), "{error}");
    let error = "10/second; 10/second".parse::<Limits>().unwrap_err().to_string();
    assert!(error.contains("two limits in the list are alike"), "{error}");
    let error = vec!["1/s"; 17].join(";").parse::<Limits>().unwrap_err().to_string();
    assert!(error.contains("more than 16 limits"), "{error}");
    let error = "10/second;".parse::<Limits>().unwrap_err().to_string();
    assert!(error.contains("there is no limit"), "{error}");
}

#[test]
fn a_semicolon_in_a_name_does_not_end_a_limit() {
    let limits =
        Limits::from([Limit::per_second(1).named("a;b"), Limit::per_day(5).named("\";\\")]);
    assert_eq!(limits.to_string().parse(), Ok(limits));
}

#[test]
fn a_long_text_is_quoted_in_part() {
    let text = "5/minute ".to_owned() + &"é".repeat(1_000);
    let error = text.parse::<Limit>().unwrap_err().to_string();
    assert!(error.len() < 300, "{error}");
}

/// They would have one name in header fields and metrics, and two budgets.
#[test]
fn limits_of_a_list_are_named_apart_also_if_their_numbers_differ() {
    let second = Limit::per_second(10).named("api");
    for other in [
        Limit::per_minute(100).named("api"),
        Limit::fixed_window(10, secs(1)).named("api"),
        Limit::concurrent(10).named("api"),
    ] {
        let error = Limits::try_from_iter([second, other]).expect_err("they share a name");
        assert!(error.to_string().contains("share a name"), "{error}");
        assert!(Limits::try_from_iter([second, other.named("other")]).is_ok());
    }
    assert!(Limits::try_from_iter([Limit::per_second(10), Limit::per_minute(100)]).is_ok());
}

#[test]
#[should_panic = "two limits in the list are alike"]
fn a_list_of_limits_that_are_alike_panics() {
    let _ = Limits::from([Limit::per_second(1), Limit::per_second(1)]);
}

/// Continuous refill cannot hold these numbers exactly. Refill in steps can.
#[test]
fn a_refill_in_steps_needs_no_continuous_rate() {
    let limit = Limit::per_second(1).refill(1_000_003, secs(604_800) + micros(1));
    assert_eq!(limit.to_string().parse(), Ok(limit));
}
