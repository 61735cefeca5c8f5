//! Random reloads and requests, in one thread, against a model: what is spent stays spent.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;
use tollgate_core::{Charge, Clock, ManualClock, Memory, Store};

use super::Place;
use crate::live::Live;
use crate::testing::Request;

const NAMES: [&str; 3] = ["one", "two", "three"];

/// A rule, or none, for each name.
type Rules = [Option<Said>; 3];

#[derive(Debug, Clone, Copy, PartialEq)]
struct Said {
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
    let said =
        said.prop_map(|(window, count, period, by_peer)| Said { window, count, period, by_peer });
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
        let Said { window, count, period, by_peer } = (*said)?;
        let key = if by_peer { "ip" } else { "global" };
        let shape = if window { "fixed " } else { "" };
        Some(format!(
            "[[rules]]\nname = \"{name}\"\nkey = \"{key}\"\nlimits = [\"{shape}{count} per {period} seconds\"]\n"
        ))
    });
    let text: String = written.collect();
    if text.is_empty() { "rules = []".to_owned() } else { text }
}

/// What is known of a row of the store, in the model's own words. Times are microseconds.
#[derive(Debug, Clone, Copy)]
struct Row {
    said: Said,
    at: u64,
    /// The least and the most that may be spent: a bucket's debt is rounded up to parts of a token when
    /// its numbers change, by less than one each time.
    spent: [f64; 2],
}

/// Far more than sums of fractions are off, and far less than a part of a token that matters.
const NOTHING: f64 = 1e-6;

impl Row {
    /// What is spent at `now`, by the numbers that wrote the row.
    fn drained(self, now: u64) -> Self {
        let Said { window, count, period, .. } = self.said;
        let micros = period * 1_000_000;
        let back = match window {
            // At each border that was passed, as much comes back as the window holds.
            true => ((now / micros - self.at / micros) * count) as f64,
            false => (now - self.at) as f64 * count as f64 / micros as f64,
        };
        Self { at: now, spent: self.spent.map(|spent| (spent - back).max(0.0)), ..self }
    }

    fn is_of(&self, said: Said) -> bool {
        (self.said.count, self.said.period) == (said.count, said.period)
    }

    /// The same, going on by the numbers of `said`.
    fn converted(self, said: Said) -> Self {
        let mut spent = self.spent;
        if !self.is_of(said) && !said.window {
            spent[1] += 1.0;
        }
        Self { said, spent, ..self }
    }

    /// What is left after one more request, by the least or by the most that is spent.
    fn room(&self, bound: usize) -> f64 {
        self.said.count as f64 - self.spent[bound] - 1.0
    }

    /// How much of that is no certain answer; windows count whole requests.
    fn vague(&self) -> f64 {
        if self.said.window { 0.0 } else { NOTHING }
    }

    fn must_admit(&self) -> bool {
        self.room(1) >= self.vague()
    }

    fn cannot_admit(&self) -> bool {
        self.room(0) < -self.vague()
    }

    /// What a request that was refused can have left: a row whose numbers are others stays as it is, or
    /// is converted where what is spent fits; which of the two, is not for this model to know.
    fn after_refusal(self, said: Said) -> Vec<Self> {
        let fits = self.spent[0] <= said.count as f64 + self.vague();
        match self.is_of(said) {
            false if fits => vec![self, self.converted(said)],
            _ => vec![self],
        }
    }
}

/// What a row can be, one for each of the numbers that can have written it last.
type Rows = Vec<Row>;

fn merged(rows: impl Iterator<Item = Row>) -> Rows {
    let mut merged = Rows::new();
    for row in rows {
        match merged.iter_mut().find(|other| other.is_of(row.said)) {
            Some(other) => {
                let [least, most] = row.spent;
                other.spent = [other.spent[0].min(least), other.spent[1].max(most)];
            }
            None => merged.push(row),
        }
    }
    merged
}

#[derive(Default)]
struct Model {
    /// By rule, shape, period and peer: a limit of another period is another.
    rows: HashMap<(usize, bool, u64, Option<u8>), Rows>,
}

impl Model {
    /// Whether a request is admitted: `None` where parts of a token decide, or what the row is. Then
    /// `is_admitted` is asked.
    fn request(&mut self, rules: &Rules, peer: u8, now: u64, is_admitted: bool) -> Option<bool> {
        let (mut must_be, mut cannot_be) = (true, false);
        for (at, said) in rules.iter().enumerate() {
            let Some(said) = *said else { continue };
            let id = (at, said.window, said.period, said.by_peer.then_some(peer));
            let fresh = || vec![Row { said, at: now, spent: [0.0; 2] }];
            let rows = self.rows.remove(&id).unwrap_or_else(fresh);
            let rows: Rows = rows.into_iter().map(|row| row.drained(now)).collect();
            must_be &= rows.iter().all(|row| row.converted(said).must_admit());
            cannot_be |= rows.iter().all(|row| row.converted(said).cannot_admit());
            let after = match is_admitted {
                true => {
                    let rows = rows.into_iter().map(|row| row.converted(said));
                    let rows = rows.filter(|row| !row.cannot_admit());
                    merged(rows.map(|row| Row { spent: row.spent.map(|spent| spent + 1.0), ..row }))
                }
                false => merged(rows.into_iter().flat_map(|row| row.after_refusal(said))),
            };
            self.rows.insert(id, after);
        }
        if must_be { Some(true) } else { cannot_be.then_some(false) }
    }
}

fn owed(live: &Live, peer: u8) -> Charge {
    Request { peer: [10, 0, 0, peer].into(), ..Request::default() }.owes(live)
}

/// The limits of a charge, as the model says them.
fn limits(charge: &Charge) -> Vec<String> {
    charge.owed().map(|owed| owed.limit.to_string()).collect()
}

fn expected(rules: &Rules) -> Vec<String> {
    let said = NAMES.iter().zip(rules).filter_map(|(name, said)| Some((name, (*said)?)));
    said.map(|(name, said)| {
        let period = Duration::from_secs(said.period);
        let limit = match said.window {
            true => tollgate_core::Limit::fixed_window(said.count, period),
            false => tollgate_core::Limit::per(said.count, period),
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
                    let charge = owed(&live, peer);
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
