use crate::absent::{self, Hours};
use crate::compile::Context;
use crate::document::{self, Weekday};
use crate::source::DocumentPath;

const TWO: &str = "expected two times, a start and an end, such as [\"22:00\", \"06:00\"]";

/// Hours by the environment's clock, in their own time zone or that of the document.
pub(super) fn hours(
    said: &document::Hours,
    path: &DocumentPath<'_>,
    context: &Context<'_>,
) -> Option<Hours> {
    #[cfg(not(feature = "hours"))]
    context.report(path, absent::needs("hours"));
    let mut hours = match &said.zone {
        Some(zone) => context.check(&path.name("zone"), Hours::in_zone(zone)),
        None => context.hours(),
    };
    if let Some(between) = &said.between {
        let path = path.name("between");
        let [from, to] = between.as_slice() else {
            context.report(&path, TWO);
            return None;
        };
        hours = hours.and_then(|hours| context.check(&path, hours.between(from, to)));
    }
    if said.between.is_some() {
        context.not_empty(&path.name("on"));
    }
    if said.between.is_none() && said.on.is_empty() {
        context.report(path, "the hours are empty: expected `between`, `on` or both");
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

fn day(day: Weekday) -> absent::Weekday {
    match day {
        Weekday::Mon => absent::Weekday::Monday,
        Weekday::Tue => absent::Weekday::Tuesday,
        Weekday::Wed => absent::Weekday::Wednesday,
        Weekday::Thu => absent::Weekday::Thursday,
        Weekday::Fri => absent::Weekday::Friday,
        Weekday::Sat => absent::Weekday::Saturday,
        Weekday::Sun => absent::Weekday::Sunday,
    }
}
