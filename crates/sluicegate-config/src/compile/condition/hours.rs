use sluicegate_core::condition::Hours;

use crate::compile::Context;
use crate::document::{self, Weekday};
use crate::path::Path;

const TWO: &str = "one time is not enough and three are too many, expected two such as \
                   [\"22:00\", \"06:00\"]";

/// Hours by the clock of the environment, in their own zone or in that of the document.
pub(super) fn hours(
    said: &document::Hours,
    path: &Path<'_>,
    context: &Context<'_>,
) -> Option<Hours> {
    let mut hours = match &said.zone {
        Some(zone) => context.check(&path.name("zone"), Hours::in_zone(zone)),
        None => context.hours(),
    };
    if let Some(between) = &said.between {
        let path = path.name("between");
        let [from, to] = between.as_slice() else {
            context.wrong(&path, TWO);
            return None;
        };
        hours = hours.and_then(|hours| context.check(&path, hours.between(from, to)));
    }
    if said.between.is_none() && said.on.is_empty() {
        context.wrong(path, "no hours are said, expected `between`, or `on`, or both");
    }
    let mut hours = hours?;
    if !said.on.is_empty() {
        hours = hours.on(said.on.iter().copied().map(day));
    }
    Some(match context.environment.own_clock() {
        Some(clock) => hours.clock(clock.clone()),
        None => hours,
    })
}

fn day(day: Weekday) -> sluicegate_core::condition::Weekday {
    match day {
        Weekday::Mon => sluicegate_core::condition::Weekday::Monday,
        Weekday::Tue => sluicegate_core::condition::Weekday::Tuesday,
        Weekday::Wed => sluicegate_core::condition::Weekday::Wednesday,
        Weekday::Thu => sluicegate_core::condition::Weekday::Thursday,
        Weekday::Fri => sluicegate_core::condition::Weekday::Friday,
        Weekday::Sat => sluicegate_core::condition::Weekday::Saturday,
        Weekday::Sun => sluicegate_core::condition::Weekday::Sunday,
    }
}
