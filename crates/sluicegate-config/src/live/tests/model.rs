//! Random reloads and requests in one thread, compared with a model: what is spent stays spent.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;
use sluicegate_core::adapter::Charge;
use sluicegate_core::clock::Clock;
use sluicegate_core::store::Store;
use sluicegate_core::{ManualClock, Memory};

use super::Place;
use crate::live::Live;
use sluicegate_tests::Request;

const NAMES: [&str; 3] = ["one", "two", "three"];

/// A rule, or none, for each name.
type Rules = [Option<Statement>; 3];

#[derive(Debug, Clone, Copy, PartialEq)]
struct Statement {
    window: bool,
    count: u64,
    /// In seconds.
    period: u64,
    /// Whether each peer has a budget of its own.
    by_peer: bool,
}

#[derive(Debug, Clone)]
enum Act {
    Reload(Rules),
    Break(String),
    Advance(u64),
    Request(u8),
}

fn rules() -> impl Strategy<Value = Rules> {
    let said = (any::<bool>(), 1..8_u64, prop_oneof![4 => 5..7_u64, 1 => 1..30_u64], any::<bool>());
    let said = said.prop_map(|(window, count, period, by_peer)| Statement {
        window,
        count,
        period,
        by_peer,
    });
    prop::array::uniform3(prop::option::weighted(0.8, said))
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let broken = [
        "",
        "rules = 7",
        "[[rules]]",
        "[[rules]]\nname = \"one\"\nkey = \"global\"\nlimits = [\"0/day\"]",
    ];
    let broken = prop::sample::select(broken.map(str::to_owned).to_vec());
    let act = prop_oneof![
        2 => rules().prop_map(Act::Reload),
        1 => broken.prop_map(Act::Break),
        2 => (0..9_000_000_u64).prop_map(Act::Advance),
        8 => (1..3_u8).prop_map(Act::Request),
    ];
    prop::collection::vec(act, 1..80)
}

fn text(rules: &Rules) -> String {
    let written = NAMES.iter().zip(rules).filter_map(|(name, said)| {
        let Statement { window, count, period, by_peer } = (*said)?;
        let key = if by_peer { "ip" } else { "global" };
        let shape = if window { "fixed " } else { "" };
        Some(format!(
            "[[rules]]\nname = \"{name}\"\nkey = \"{key}\"\nlimits = [\"{shape}{count} per {period} seconds\"]\n"
        ))
    });
    let text: String = written.collect();
    if text.is_empty() { "rules = []".to_owned() } else { text }
}

/// What is spent of a row under one count, as the model sees it. Times are microseconds.
#[derive(Debug, Clone, Copy)]
struct Account {
    said: Statement,
    at: u64,
    /// The smallest and the largest amount that may be spent: what a bucket takes over is rounded up to fractions of
    /// a token.
    spent: [f64; 2],
}

/// Far more than sums of fractions are off, and far less than a part of a token that matters.
const NOTHING: f64 = 1e-4;

/// An upper bound on that rounding.
const ROUNDED: f64 = 1e-5;

impl Account {
    /// What is spent at `now`.
    fn drained(self, now: u64) -> Self {
        let Statement { window, count, period, .. } = self.said;
        let micros = period * 1_000_000;
        let back = match window {
            // At each border that was passed, the count of the window comes back.
            true => ((now / micros - self.at / micros) * count) as f64,
            false => (now - self.at) as f64 * count as f64 / micros as f64,
        };
        Self { at: now, spent: self.spent.map(|spent| (spent - back).max(0.0)), ..self }
    }

    /// Spends one more, if there is room.
    fn charged(self) -> Self {
        let most = self.said.count as f64;
        Self { spent: self.spent.map(|spent| (spent + 1.0).min(most).max(spent)), ..self }
    }

    /// What is left after one more request, by the smallest or by the largest amount.
    fn room(&self, bound: usize) -> f64 {
        self.said.count as f64 - self.spent[bound] - 1.0
    }

    /// How much of that is no certain answer; windows count whole requests.
    fn vague(&self) -> f64 {
        if self.said.window { 0.0 } else { NOTHING }
    }
}

#[derive(Default)]
struct Model {
    /// By rule, shape, period and peer: a limit of another period is another. Of each, an account for every
    /// count.
    rows: HashMap<(usize, bool, u64, Option<u8>), Vec<Account>>,
}

impl Model {
    /// Whether a request is admitted: `None` where parts of a token decide. Then `is_admitted` is asked.
    fn request(&mut self, rules: &Rules, peer: u8, now: u64, is_admitted: bool) -> Option<bool> {
        let (mut must_be, mut cannot_be) = (true, false);
        for (at, said) in rules.iter().enumerate() {
            let Some(said) = *said else { continue };
            let id = (at, said.window, said.period, said.by_peer.then_some(peer));
            let accounts = self.rows.entry(id).or_default();
            accounts.iter_mut().for_each(|account| *account = account.drained(now));
            let own = accounts.iter().position(|account| account.said.count == said.count);
            let own = own.unwrap_or_else(|| begin(accounts, said, now));
            must_be &= accounts[own].room(1) >= accounts[own].vague();
            cannot_be |= accounts[own].room(0) < -accounts[own].vague();
            if is_admitted {
                for (at, account) in accounts.iter_mut().enumerate() {
                    *account = match at == own {
                        true => {
                            Account { spent: account.spent.map(|spent| spent + 1.0), ..*account }
                        }
                        false => account.charged(),
                    };
                }
            }
        }
        if must_be { Some(true) } else { cannot_be.then_some(false) }
    }
}

/// Begins an account with the most that is spent of the others, and forgets those that have recovered.
fn begin(accounts: &mut Vec<Account>, said: Statement, now: u64) -> usize {
    let most = |bound: usize| {
        let spent = accounts.iter().map(|account| account.spent[bound]);
        spent.fold(0.0, f64::max).min(said.count as f64)
    };
    let rounded = if said.window || accounts.is_empty() { 0.0 } else { ROUNDED };
    let spent = [most(0), (most(1) + rounded).min(said.count as f64)];
    accounts.retain(|account| account.spent[0] > 1e-9);
    accounts.push(Account { said, at: now, spent });
    accounts.len() - 1
}

fn debit(live: &Live, peer: u8) -> Charge {
    Request { peer: Some([10, 0, 0, peer].into()), ..Request::default() }.charge(live)
}

/// The limits of a charge, as the model says them.
fn limits(charge: &Charge) -> Vec<String> {
    charge.debits().map(|debit| debit.limit.to_string()).collect()
}

fn expected(rules: &Rules) -> Vec<String> {
    let said = NAMES.iter().zip(rules).filter_map(|(name, said)| Some((name, (*said)?)));
    said.map(|(name, said)| {
        let period = Duration::from_secs(said.period);
        let limit = match said.window {
            true => sluicegate_core::Limit::fixed_window(said.count, period),
            false => sluicegate_core::Limit::per(said.count, period),
        };
        limit.named(name).carried().to_string()
    })
    .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_forgotten_or_minted_over_reloads(first in rules(), acts in acts()) {
        let place = Place::with(&text(&first));
        let live = place.open();
        let clock = ManualClock::at(Duration::from_secs(1_000_003));
        let store = Memory::builder().capacity(256).clock(Clock::from(clock.clone())).build();
        let (mut model, mut rules) = (Model::default(), first);
        for act in acts {
            match act {
                Act::Reload(next) => {
                    place.write(&text(&next));
                    let changes = live.reload().expect("valid rules");
                    prop_assert_eq!(changes.is_empty(), next == rules);
                    rules = next;
                }
                Act::Break(text) => {
                    place.write(&text);
                    prop_assert!(live.reload().is_err());
                }
                Act::Advance(micros) => clock.advance(Duration::from_micros(micros)),
                Act::Request(peer) => {
                    let charge = debit(&live, peer);
                    prop_assert_eq!(limits(&charge), expected(&rules));
                    let outcome = store.take(&charge).now().expect("room for all");
                    let is_admitted = outcome.is_admitted();
                    if let Some(right) = model.request(&rules, peer, clock.now(), is_admitted) {
                        prop_assert_eq!(is_admitted, right, "{:?}", model.rows);
                    }
                }
            }
        }
    }
}
