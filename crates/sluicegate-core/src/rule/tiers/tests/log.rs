//! Log lines about unlimited and unknown clients.

use super::*;
use crate::observe::report::testing::logged;

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
    struct Plan;
    impl AsRef<str> for Plan {
        fn as_ref(&self) -> &str {
            "paid"
        }
    }
    let rule = tiers().by_tier(Extension::<Plan>::new()).by(Global);
    let told = logged(|| {
        for _ in 0..3 {
            drop(charge(&rule, &Request::default()));
        }
    });
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("WARN") && told[0].contains("Plan"), "{told:?}");
    // A request without claims is one of an unknown client, which is nothing to mend.
    let rule = tiers().by_tier(Claim("plan")).by(Global);
    assert_eq!(logged(|| drop(charge(&rule, &Request::default()))).len(), 0);
    assert_eq!(logged(|| drop(charge(&rule, &plan("free")))).len(), 0);
}
