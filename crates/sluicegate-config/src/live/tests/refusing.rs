//! What happens to refused requests.

use sluicegate_core::adapter::{Gate, Treatment};
use sluicegate_core::store::Store;
use sluicegate_core::{Decision, Memory};

use super::{Place, policies};
use crate::live::Live;
use sluicegate_tests::Request;

fn rule(name: &str, count: u64, reject: &str) -> String {
    format!(
        "[[rules]]\nname = \"{name}\"\nkey = \"global\"\nlimits = [\"{count}/hour\"]\nreject = {reject}\n"
    )
}

/// A decision that refuses, after as many requests as that takes.
fn refusal(live: &Live) -> Decision {
    let store = Memory::with_capacity(64);
    let charge = Request::default().charge(live);
    loop {
        let outcome = store.take(&charge).now().expect("a decision");
        if !outcome.is_admitted() {
            return outcome.decision(&charge);
        }
    }
}

#[test]
fn the_rule_of_the_limit_that_refuses_says_what_is_done() {
    let busy = "{ redirect = \"https://busy.example.com/\" }";
    let live = Live::of(policies(&(rule("few", 1, busy) + &rule("many", 9, "\"block\""))));
    assert!(matches!(Gate::new(live.rejection()).treat(&refusal(&live)), Treatment::Redirect(_)));
    let live = Live::of(policies(&rule("few", 1, "\"degrade\"")));
    assert_eq!(Gate::new(live.rejection()).treat(&refusal(&live)), Treatment::Degrade);
}

#[test]
fn of_several_that_refuse_the_least_generous_says_it() {
    let reject = ["\"shadow\"", "{ redirect = \"https://busy.example.com/\" }", "\"block\""];
    let step = |rejects: &[&str]| {
        let rules = rejects.iter().enumerate();
        let text: String = rules.map(|(at, reject)| rule(&format!("r{at}"), 1, reject)).collect();
        let live = Live::of(policies(&text));
        Gate::new(live.rejection()).treat(&refusal(&live))
    };
    // A rule on trial never refuses.
    assert!(matches!(step(&reject[..2]), Treatment::Redirect(_)));
    assert_eq!(step(&reject), Treatment::Reject);
}

#[test]
fn what_is_done_is_reloaded_with_the_limits() {
    let place = Place::with(&rule("few", 1, "\"degrade\""));
    let live = place.open();
    let gate = Gate::new(live.rejection());
    assert_eq!(gate.treat(&refusal(&live)), Treatment::Degrade);
    let decided = refusal(&live);
    place.write(&rule("few", 1, "\"block\""));
    live.reload().expect("valid policies");
    assert_eq!(gate.treat(&refusal(&live)), Treatment::Reject);
    // A limit that is no longer in the file is handled by default: it refuses.
    place.write("rules = []");
    live.reload().expect("valid policies");
    assert_eq!(gate.treat(&decided), Treatment::Reject);
}
