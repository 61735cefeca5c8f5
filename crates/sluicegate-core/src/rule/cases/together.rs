use crate::key::{Missing, View};
use crate::limit::{Limit, MAX_LIMITS};
use crate::rule::LimitsFor;

/// Passes the limits that may apply to a request to `each`: those of each list in `uncertain`, and of `last`. Of limits that
/// share a row it passes the strictest only, because a row can be charged once per decision. That is the one with the lower
/// rate, then the one that admits less at once.
///
/// # Errors
///
/// Returns the error of `each`. If there are more than [`MAX_LIMITS`] limits, the request has to be one that can be read in
/// one way only.
pub fn charge_together<V: View>(
    uncertain: &[&dyn LimitsFor<V>],
    last: &dyn LimitsFor<V>,
    view: &V,
    each: &mut dyn FnMut(&Limit) -> Result<(), Missing>,
) -> Result<(), Missing> {
    if uncertain.is_empty() {
        return last.each(view, each);
    }
    let mut found = Vec::<Limit>::new();
    for limits in uncertain.iter().copied().chain([last]) {
        limits.each(view, &mut |limit| {
            match found.iter_mut().find(|other| other.id() == limit.id()) {
                Some(other) if is_stricter(limit, other) => *other = *limit,
                Some(_) => {}
                None => found.push(*limit),
            }
            Ok(())
        })?;
    }
    if found.len() > MAX_LIMITS {
        return Err(Missing::ambiguous("a path and fields that can be read in one way only"));
    }
    found.iter().try_for_each(each)
}

/// Whether `one` admits less than `other`. A shadow refuses nothing.
fn is_stricter(one: &Limit, other: &Limit) -> bool {
    if one.is_shadow() != other.is_shadow() {
        return other.is_shadow();
    }
    // Counts and periods are below 2^52. Limits without a period are compared by their counts.
    let rate = |count: u64, period: Option<std::time::Duration>| {
        u128::from(count) * period.map_or(1, |period| period.as_micros())
    };
    let (rate, other_rate) = (rate(one.count(), other.period()), rate(other.count(), one.period()));
    (rate, one.capacity()) < (other_rate, other.capacity())
}
