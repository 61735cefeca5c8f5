//! Whether a `not` leaves nothing of a condition.

use std::collections::BTreeMap;

use crate::document::{Condition, Expected, Texts};

/// Whether `not` excludes all requests for which the rest of `whole` holds.
///
/// It finds what is written twice, and patterns of everything. What only a proof would find, it does not.
pub(super) fn leaves_nothing(whole: &Condition, not: &Condition) -> bool {
    let rest = Condition { not: None, ..whole.clone() };
    // An empty one is reported by itself.
    *not != Condition::default() && implies(&rest, not)
}

/// Whether `inner` holds wherever `outer` does.
fn implies(outer: &Condition, inner: &Condition) -> bool {
    // Field by field, so that the compiler asks about a new one.
    let Condition {
        method,
        path,
        route,
        host,
        header,
        cookie,
        query,
        claim,
        network,
        country,
        region,
        hours,
        not,
        any,
        wildcards,
    } = inner;
    // `GET` is also `HEAD`, of which only an exception for `HEAD` itself is one.
    let is_head_left = outer.method.as_ref().is_some_and(|method| has(method, "GET"))
        && method.as_ref().is_some_and(|method| !has(method, "HEAD"));
    let is_any_path = |text: &String| matches!(text.as_str(), "/*" | "/*/");
    let paths_are = path.as_ref().is_none_or(|texts| texts.as_slice().iter().any(is_any_path))
        || within(outer.path.as_ref(), path.as_ref());
    let networks_are =
        network.as_ref().is_none_or(|networks| has(networks, "0.0.0.0/0") && has(networks, "::/0"))
            || within(outer.network.as_ref(), network.as_ref());
    !is_head_left
        && paths_are
        && networks_are
        && within(outer.method.as_ref(), method.as_ref())
        && within(outer.route.as_ref(), route.as_ref())
        && within(outer.host.as_ref(), host.as_ref())
        && within(outer.country.as_ref(), country.as_ref())
        && within(outer.region.as_ref(), region.as_ref())
        && values_within(&outer.header, header)
        && values_within(&outer.cookie, cookie)
        && values_within(&outer.query, query)
        && values_within(&outer.claim, claim)
        && hours.as_ref().is_none_or(|hours| outer.hours.as_ref() == Some(hours))
        && not.is_none()
        && (any.is_empty() || any.iter().any(|any| implies(outer, any)))
        && wildcards.is_empty()
}

fn has(texts: &Texts, text: &str) -> bool {
    texts.as_slice().iter().any(|own| own == text)
}

fn within(outer: Option<&Texts>, inner: Option<&Texts>) -> bool {
    match (outer, inner) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(outer), Some(inner)) => outer.as_slice().iter().all(|text| has(inner, text)),
    }
}

fn values_within(outer: &BTreeMap<String, Expected>, inner: &BTreeMap<String, Expected>) -> bool {
    inner.iter().all(|(name, inner)| outer.get(name) == Some(inner))
}
