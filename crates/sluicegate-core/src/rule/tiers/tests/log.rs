//! Log lines about unlimited and unknown clients.

use super::*;
use crate::observe::report::logged::logged;

#[test]
fn who_is_not_limited_is_said_in_the_log() {
    let made = logged(|| drop(tiers()));
    assert_eq!(
        made,
        ["INFO message=requests in this tier are not limited tiers=\"api\" tier=\"partner\""]
    );

    let tiers = tiers();
    assert_eq!(logged(|| tiers.lift("paid").unwrap()).len(), 1);
    assert_eq!(logged(|| tiers.lift("gold").unwrap_err().to_string().clear()).len(), 0);

    let rule = tiers.by_tier(Claim("plan")).by(Global);
    let served = |name| logged(|| drop(charge(&rule, &plan(name))));
    assert_eq!(served("partner"), ["DEBUG message=not limited tiers=\"api\" tier=\"partner\""]);
    assert_eq!(served("free").len(), 0);
}

#[test]
fn that_nothing_names_the_tier_is_told_once() {
    let rule = tiers().by_tier(Claim("plan")).by(Global);
    let told = logged(|| {
        for _ in 0..3 {
            drop(charge(&rule, &Request::default()));
        }
    });
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("WARN") && told[0].contains("Claims::new()"), "{told:?}");
    assert_eq!(logged(|| drop(charge(&rule, &plan("free")))).len(), 0);
}
