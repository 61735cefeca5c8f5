//! One rule of a document.

use sluicegate_core::adapter::{Charge, Index};
use sluicegate_core::condition::Condition as CoreCondition;
use sluicegate_core::key::{Missing, View};
use sluicegate_core::limit::Limits;
use sluicegate_core::rule::{By, KnownLimits, Rule as CoreRule};
use sluicegate_core::{Limit, Rejection};

use super::amounts::Amounts;
use super::condition::{self, Condition};
use super::cost::Settlement;
use super::key::Key;
use super::tiers::LimitGroup;
use super::{Context, cost};
use crate::document::{self, Cost, Redirect, Reject, Settle};
use crate::source::DocumentPath;
use crate::words::InWords;

/// A compiled rule.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) name: String,
    /// The key and the condition in words.
    pub(super) words: String,
    when: Option<Condition>,
    by: By<Key, Amounts, cost::Cost>,
    pub(super) refused: RankedRejection,
    pub(super) groups: Vec<LimitGroup>,
    /// How many limits charge every request at least.
    pub(super) fewest: usize,
    /// Whether the charge is one of tokens, which are read in bodies.
    pub(super) counts_tokens: bool,
    /// Whether what it charges depends on when and how a request is answered, but for tokens.
    pub(super) needs_answer: bool,
}

impl Rule {
    pub(super) fn new(
        spec: &document::Rule,
        path: &DocumentPath<'_>,
        context: &Context<'_>,
    ) -> Option<Self> {
        let key = Key::new(&spec.key, &path.name("key"), context);
        let amounts = Amounts::new(spec, path, context);
        let when = spec.when.as_ref();
        let when = when.map(|when| Condition::new(when, &path.name("when"), context));
        let cost = match spec.blocks {
            true => Some(cost::Cost::Block),
            false => cost::Cost::new(spec.cost.as_ref(), &path.name("cost"), context),
        };
        let settlement = Settlement::new(spec, path, context);
        let refused = RankedRejection::new(spec.reject.as_ref(), &path.name("reject"), context);

        let amounts = amounts?;
        let groups = amounts.groups();
        of_one_algorithm(&groups, &path.name("name"), context);
        let fewest =
            if spec.when.is_some() || may_be_absent(&spec.key) { 0 } else { fewest(&groups) };
        let by = By::new(amounts, key?).cost(cost?);
        let by = settlement.of(by);
        let words = match &spec.when {
            Some(when) => format!("by {}, where {}", InWords(&spec.key), InWords(when)),
            None => format!("by {}", InWords(&spec.key)),
        };
        let counts_tokens = matches!(&spec.cost, Some(Cost::Table(table)) if table.tokens.is_some())
            || matches!(&spec.settle, Some(Settle::Table(table)) if table.tokens.is_some());
        let limits = || groups.iter().flat_map(|one| &one.limits).flat_map(Limits::iter);
        let is_held = limits().any(Limit::is_held);
        let is_settled = spec.settle.is_some() && !counts_tokens;
        let needs_answer = is_held || is_settled || !spec.count_if.is_empty();
        let (name, refused) = (spec.name.clone(), refused?);
        Some(Self { name, words, when, by, refused, groups, fewest, counts_tokens, needs_answer })
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
fn of_one_algorithm(groups: &[LimitGroup], path: &DocumentPath<'_>, context: &Context<'_>) {
    if let Some(limit) = LimitGroup::different(groups, |first, limit| first.id() != limit.id()) {
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
fn fewest(groups: &[LimitGroup]) -> usize {
    let counts = groups.iter().map(|one| one.limits.iter().flat_map(Limits::iter).count());
    counts.min().unwrap_or(0)
}

/// Whether a request without the key is not charged.
fn may_be_absent(key: &document::Key) -> bool {
    match key {
        document::Key::Optional(_) => true,
        document::Key::First(keys) | document::Key::All(keys) => keys.iter().any(may_be_absent),
        // A request without one of these is refused, and not left uncounted.
        document::Key::Ip
        | document::Key::Route
        | document::Key::Method
        | document::Key::Path
        | document::Key::Host
        | document::Key::Global
        | document::Key::Country
        | document::Key::Region
        | document::Key::Header(_)
        | document::Key::Cookie(_)
        | document::Key::Query(_)
        | document::Key::Claim(_)
        | document::Key::Const(_) => false,
    }
}

impl<V: View> CoreRule<V> for Rule {
    #[inline]
    fn charge(&self, view: &V, charge: &mut Charge) -> Result<(), Missing> {
        match self.when.as_ref().map_or(Ok(true), |when| when.holds(view)) {
            Ok(true) => self.by.charge(view, charge),
            Ok(false) => Ok(()),
            Err(_) if self.are_shadows() => Ok(()),
            Err(missing) => Err(missing),
        }
    }
}

impl KnownLimits for Rule {
    fn each_limit(&self, each: &mut dyn FnMut(&Limit)) {
        self.by.each_limit(each);
    }
}

/// What happens to a request that a rule refuses.
#[derive(Debug)]
pub(crate) struct RankedRejection {
    /// Greater is stricter.
    pub(crate) strictness: u8,
    pub(crate) rejection: Rejection,
}

impl RankedRejection {
    pub(super) fn new(
        reject: Option<&Reject>,
        path: &DocumentPath<'_>,
        context: &Context<'_>,
    ) -> Option<Self> {
        let (strictness, rejection) = match reject {
            Some(Reject::Shadow) => (0, Rejection::shadow()),
            Some(Reject::Degrade) => (1, Rejection::degrade()),
            Some(Reject::Redirect(redirect)) => (2, redirection(redirect, path, context)?),
            None | Some(Reject::Block) => (3, Rejection::block()),
        };
        Some(Self { strictness, rejection })
    }
}

/// The default.
pub(crate) static BLOCKED: RankedRejection =
    RankedRejection { strictness: 3, rejection: Rejection::block() };

pub(super) fn redirection(
    Redirect { redirect: target, status }: &Redirect,
    path: &DocumentPath<'_>,
    context: &Context<'_>,
) -> Option<Rejection> {
    let is_uri = !target.is_empty() && target.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_uri {
        context.report(
            &path.name("redirect"),
            format!("{target:?} is not a URI, expected visible ASCII characters"),
        );
    }
    let status = status.unwrap_or(307);
    let redirects = matches!(status, 302 | 303 | 307 | 308);
    if !redirects {
        context.report(
            &path.name("status"),
            format!("{status} is not a redirection, expected 302, 303, 307 or 308"),
        );
    }
    (is_uri && redirects).then(|| Rejection::redirect(target).status(status))
}
