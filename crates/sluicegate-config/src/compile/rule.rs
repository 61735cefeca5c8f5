//! One rule of a document.

use sluicegate_core::Limit;
use sluicegate_core::adapter::{Charge, Index};
use sluicegate_core::condition::Condition as CoreCondition;
use sluicegate_core::key::{Missing, View};
use sluicegate_core::limit::Limits;
use sluicegate_core::rule::{By, KnownLimits, Rule as CoreRule};

use super::Context;
use super::amounts::Amounts;
use super::condition::{self, Condition};
use super::cost;
use super::key::Key;
use super::listed::Listed;
use super::reject::Refused;
use super::settlement::Settlement;
use crate::document::{self, Cost, Settle};
use crate::source::DocumentPath;
use crate::words::InWords;

/// A compiled rule.
#[derive(Debug)]
pub(super) struct Rule {
    /// The key and the condition in words.
    pub(super) words: String,
    when: Option<Condition>,
    by: By<Key, Amounts, cost::Cost>,
    pub(super) refused: Refused,
    pub(super) listed: Vec<Listed>,
    /// How many limits charge every request at least.
    pub(super) fewest: usize,
    /// Whether the charge is one of tokens, which are read in bodies.
    pub(super) counts_tokens: bool,
}

impl Rule {
    pub(super) fn new(
        said: &document::Rule,
        path: &DocumentPath<'_>,
        context: &Context<'_>,
    ) -> Option<Self> {
        let key = Key::new(&said.key, &path.name("key"), context);
        let amounts = Amounts::new(said, path, context);
        context.not_always(&path.name("when"));
        let when = said.when.as_ref();
        let when = when.map(|when| Condition::new(when, &path.name("when"), context));
        let cost = cost::Cost::new(said.cost.as_ref(), &path.name("cost"), context);
        let settlement = Settlement::new(said, path, context);
        let refused = Refused::new(said.reject.as_ref(), &path.name("reject"), context);

        let amounts = amounts?;
        let listed = amounts.listed();
        of_one_algorithm(&listed, &path.name("name"), context);
        let fewest =
            if said.when.is_some() || may_be_absent(&said.key) { 0 } else { fewest(&listed) };
        let by = By::new(amounts, key?).cost(cost?);
        let by = settlement.of(by);
        let mut words = format!("by {}", InWords(&said.key));
        if let Some(when) = &said.when {
            words.push_str(&format!(", where {}", InWords(when)));
        }
        let counts_tokens = matches!(&said.cost, Some(Cost::Table(table)) if table.tokens.is_some())
            || matches!(&said.settle, Some(Settle::Table(table)) if table.tokens.is_some());
        Some(Self { words, when, by, refused: refused?, listed, fewest, counts_tokens })
    }

    /// Whether it may charge this request.
    pub(super) fn may_apply<V: View>(&self, view: &V) -> bool {
        self.when.as_ref().is_none_or(|when| when.holds(view).unwrap_or(true))
    }

    pub(super) fn add_to(&self, index: &mut Index) {
        condition::add_to(index, self.when.as_ref());
    }
}

/// Limits with the same name share a budget in all tiers and cases only if their algorithm is the same.
fn of_one_algorithm(listed: &[Listed], path: &DocumentPath<'_>, context: &Context<'_>) {
    if let Some(limit) = Listed::different(listed, |first, limit| first.id() != limit.id()) {
        let two = match limit.to_string().starts_with("log ") {
            true => "logs of two periods, or of two algorithms",
            false => "of two algorithms",
        };
        let message = format!(
            "the limits called `{}` are {two} and cannot share a budget: expected one algorithm, or a \
             `name` for each",
            limit.name()
        );
        context.report(path, message);
    }
}

/// The number of limits in the tier or case with the fewest.
fn fewest(listed: &[Listed]) -> usize {
    let counts = listed.iter().map(|one| one.limits.iter().flat_map(Limits::iter).count());
    counts.min().unwrap_or(0)
}

/// Whether a request without the key is not charged.
fn may_be_absent(key: &document::Key) -> bool {
    match key {
        document::Key::Optional(_) => true,
        document::Key::First(keys) | document::Key::All(keys) => keys.iter().any(may_be_absent),
        _ => false,
    }
}

impl<V: View> CoreRule<V> for Rule {
    #[inline]
    fn charge(&self, view: &V, charge: &mut Charge) -> Result<(), Missing> {
        match &self.when {
            Some(when) if !when.holds(view)? => Ok(()),
            _ => self.by.charge(view, charge),
        }
    }
}

impl KnownLimits for Rule {
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        self.by.each_limit(each);
    }
}
