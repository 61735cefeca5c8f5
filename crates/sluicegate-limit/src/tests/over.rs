//! Limits that may be exceeded a little.

use super::super::Limit;
use super::{NOW, secs};

#[test]
fn what_was_the_limit_becomes_soft_and_some_more_is_admitted() {
    for (text, expanded) in [
        ("100/minute over 10%", "100/minute burst 110 soft 100"),
        ("100/minute burst 25 over 10%", "100/minute burst 27 soft 25"),
        ("100/minute over 10% burst 200", "100/minute burst 220 soft 200"),
        ("10 per 10s over 50% stepped burst 60", "10 per 10s stepped burst 90 soft 60"),
        ("10 per 10s stepped burst 60 over 50 %", "10 per 10s stepped burst 90 soft 60"),
        ("fixed 100/minute over 7%", "fixed 107/minute soft 100"),
        ("fixed 5/day from-first over 100%", "fixed 10/day from-first soft 5"),
        ("log 10/hour over 19%", "log 11/hour soft 10"),
        ("sliding 3/hour over 1%", "sliding 4/hour soft 3"),
        ("concurrent 50 over 250%", "concurrent 175 soft 50"),
    ] {
        let limit: Limit = text.parse().unwrap();
        assert_eq!(limit, expanded.parse().unwrap(), "{text}");
        assert_eq!(limit.to_string().parse(), Ok(limit));
    }
}

#[test]
fn requests_over_the_limit_are_warned_until_that_is_spent_too() {
    let limit = Limit::fixed_window(4, secs(60)).over_percent(50);
    let mut state = limit.fresh();
    let told = [(); 7].map(|()| limit.take(&mut state, NOW, 1));
    assert_eq!(
        told.each_ref().map(|told| told.is_admitted()),
        [true, true, true, true, true, true, false]
    );
    let soft = told.map(|told| told.is_soft());
    assert_eq!(soft, [false, false, false, false, true, true, true]);
}

#[test]
fn a_limit_that_cannot_be_exceeded_is_an_error_that_says_so() {
    let error = |text: &str| text.parse::<Limit>().unwrap_err().to_string();
    assert!(error("leaky 1/s queue 5 over 10%").contains("make the queue longer"));
    assert!(error("1/s over 0%").contains("not over it"));
    assert!(error("9/s soft 5 over 10%").contains("a soft limit already"));
    assert!(error("9/s over 10% soft 5").contains("a soft limit already"));
    assert!(error("leaky 1/s over 10% queue 5").contains("make the queue longer"));
    assert!(error("9/s over 10").contains("ends too soon"));
    assert!(error("9/s over 10 soft").contains("percent"));
    assert!(error("9/s over").contains("ends too soon"));
    assert!(error("concurrent 4000000000000000 over 100%").contains("2^52"));
    assert!(error("9/s over 18446744073709551615%").contains("2^52"));
}
