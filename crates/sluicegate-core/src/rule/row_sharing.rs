//! Limits in the same place share rows even if their numbers differ: those of two tiers, or of day and night.
//!
//! Tiers and cases that share rows name a limit without a name after its period (`api/second`) and carry it
//! over, so that what was spent is kept when the tier or the hour changes. Two limits of one list in the
//! same place are refused when they are made. In a file, rows are always named after the rule and the
//! period, also where the limit is shown by the name of the rule because no other period occurs. So the
//! order of limits means nothing, a new limit takes nothing over from another, and a limit that gets
//! another period begins afresh, which the reload and `check_change` report.

use std::collections::HashMap;

use crate::limit::{Limit, LimitError, Limits};

/// The limits of a list, sharing rows with the limits of other lists that have the same names: a limit's own name, or
/// else the one that `name` returns.
///
/// # Errors
///
/// If a name is not valid, or two limits would share one.
pub(super) fn sharing_rows(
    limits: &Limits,
    name: impl Fn(&Limit) -> String,
) -> Result<Limits, LimitError> {
    let mut placed: Vec<Limit> = Vec::new();
    for limit in limits.iter() {
        let name = limit.own_name().map_or_else(|| name(limit), str::to_owned);
        let limit = shared(*limit, &name).map_err(|error| error.in_text(&name))?;
        if placed.iter().any(|earlier| earlier.own_name() == limit.own_name()) {
            let error = LimitError::new(
                "two limits of one list would share this name: give one of them a name of its \
                 own, `named` something else",
            );
            return Err(error.in_text(&name));
        }
        placed.push(limit);
    }
    Limits::try_from_iter(placed)
}

/// The limits of a list with rows that no other list has: called by their own name, or else after `name` and their
/// period. `rows` counts the rows of the lists before.
///
/// # Errors
///
/// If a name is not valid, or two limits would share one.
pub(super) fn with_own_rows(
    limits: &Limits,
    name: Option<&str>,
    rows: &mut HashMap<String, usize>,
) -> Result<Limits, LimitError> {
    let mut apart = Vec::new();
    for limit in limits.iter() {
        // A limit with a name of its own keeps its row when its numbers change.
        let (limit, row) = match (limit.own_name(), name) {
            (Some(own), _) => (limit.try_carried(), own.to_owned()),
            (None, Some(name)) => {
                let name = format!("{name}/{}", limit.period_name());
                let named = limit.try_named(&name);
                (named.map_err(|error| error.in_text(&name)), format!("{name} {:016x}", limit.id()))
            }
            (None, None) => (Ok(*limit), format!("{:016x}", limit.id())),
        };
        let limit = limit?;
        let earlier = rows.entry(row.clone()).or_insert(0);
        apart.push(limit.counted_as(&apart_row(&row, *earlier)));
        *earlier += 1;
    }
    Limits::try_from_iter(apart)
}

/// The name of a row that no limit's name leads to: they are printable.
fn apart_row(row: &str, earlier: usize) -> String {
    format!("\0case {earlier} {row}")
}

fn shared(limit: Limit, name: &str) -> Result<Limit, LimitError> {
    // A carried limit keeps the row that it was given.
    if limit.own_name().is_some() && limit.is_carried() {
        return Ok(limit);
    }
    let named = match limit.own_name() {
        Some(_) => limit,
        None => limit.try_named(name)?,
    };
    named.try_carried()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the limits are called.
    fn names_when_shared(text: &str) -> Result<Vec<String>, String> {
        let limits: Limits = text.parse().expect("limits");
        let placed = sharing_rows(&limits, |limit| format!("api/{}", limit.period_name()));
        let names =
            placed.map(|limits| limits.iter().map(|limit| limit.name().to_string()).collect());
        names.map_err(|error| error.to_string())
    }

    #[test]
    fn what_has_no_name_is_named_after_its_period() {
        assert_eq!(
            names_when_shared(
                "5/second burst 10; sliding 100 per 10 minutes; concurrent 3; 7/day named x"
            ),
            Ok(["api/second", "api/10 minutes", "api/concurrent", "x"].map(String::from).to_vec())
        );
    }

    #[test]
    fn two_limits_at_one_place_are_refused_with_what_to_do() {
        for text in ["5/minute; 6/minute", "5/minute; log 6/minute", "5/hour named api/day; 1/day"]
        {
            let error = names_when_shared(text).unwrap_err();
            assert!(error.contains("give one of them a name of its own"), "{error}");
        }
        assert!(names_when_shared("5/minute; 6/minute named other").is_ok());
        assert!(
            names_when_shared("5/minute; 6/minute")
                .unwrap_err()
                .starts_with("in `api/minute`: two")
        );
    }

    #[test]
    fn a_name_that_gets_too_long_is_named() {
        let error = names_when_shared("1 per 123456789123456 microseconds").unwrap_err();
        assert!(error.contains("`api/123456789123456 microseconds`"), "{error}");
    }
}
