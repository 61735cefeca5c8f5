//! The limit of a descriptor.

use std::time::Duration;

use super::fields::{Fields, Text};
use super::found::{Found, short};
use super::yaml::{Node, location};
use crate::SourceLocation;
use crate::reader::DocumentPath;

/// The rate limit of a descriptor.
#[derive(Debug)]
pub(crate) struct RateLimit {
    pub(crate) location: SourceLocation,
    pub(crate) rate: Rate,
    /// The name by which other limits replace it.
    pub(crate) name: Option<String>,
    /// The names of the limits that it replaces.
    pub(crate) replaces: Vec<String>,
}

/// The rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rate {
    Unlimited,
    Per(u32, Duration),
}

/// The units of the service, with their seconds.
const UNITS: [(&str, u64); 7] = [
    ("second", 1),
    ("minute", 60),
    ("hour", 3_600),
    ("day", 86_400),
    ("week", 7 * 86_400),
    ("month", 30 * 86_400),
    ("year", 365 * 86_400),
];

const EXPECTED: &str = "expected second, minute, hour, day, week, month or year";

pub(super) fn rate_limit(
    node: &Node<'_>,
    path: &DocumentPath<'_>,
    found: &mut Found,
) -> Option<RateLimit> {
    let mut fields = Fields::of(node, path, "a rate limit", found)?;
    let name = fields.text("name", found).map(|(_, name)| name.to_owned());
    let name = name.filter(|name| !name.is_empty());
    let replaces = replaces(&mut fields, path, name.as_deref(), found);
    let unlimited = fields.flag("unlimited", found).is_some();
    let unit = fields.text("unit", found);
    let count = fields.text("requests_per_unit", found);
    let rate = match (unlimited, unit) {
        (true, None) => Some(Rate::Unlimited),
        // Envoy Gateway adds an unknown unit, which the service ignores.
        (true, Some((_, unit))) if known(unit).is_none() => Some(Rate::Unlimited),
        (true, Some((location, _))) => {
            found.problem(&path.name("unit"), location, "an `unlimited` limit has no unit");
            None
        }
        (false, unit) => {
            let period = period(unit, &fields, path, found);
            let count = requests(count, &fields, path, found);
            count.zip(period).map(|(count, period)| Rate::Per(count, period))
        }
    };
    let location = fields.location();
    fields.finish("`unit`, `requests_per_unit`, `unlimited`, `name` or `replaces`", found);
    Some(RateLimit { location, rate: rate?, name, replaces })
}

fn period(
    unit: Text<'_>,
    fields: &Fields<'_, '_>,
    path: &DocumentPath<'_>,
    found: &mut Found,
) -> Option<Duration> {
    let Some((location, unit)) = unit else {
        fields.lacks(format!("`unit` is missing: {EXPECTED}"), found);
        return None;
    };
    let known = known(unit);
    if known.is_none() {
        let what = format!("{} is not a unit of time: {EXPECTED}", short(unit));
        found.problem(&path.name("unit"), location, what);
    }
    known
}

fn known(unit: &str) -> Option<Duration> {
    let known = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
    known.map(|(_, seconds)| Duration::from_secs(*seconds))
}

fn requests(
    count: Text<'_>,
    fields: &Fields<'_, '_>,
    path: &DocumentPath<'_>,
    found: &mut Found,
) -> Option<u32> {
    let Some((location, text)) = count else {
        let what = "`requests_per_unit` is missing, and the service would refuse everything: \
                    expected a number, or 0 to refuse everything";
        fields.lacks(what, found);
        return None;
    };
    let count = whole(text);
    if count.is_none() {
        let what = format!("expected a whole number below 2^32, not {}", short(text));
        found.problem(&path.name("requests_per_unit"), location, what);
    }
    count
}

/// Parses a whole number of YAML 1.1, like the service: `1_000`, `0x3e8`, `0b11`, and `010`, which is eight.
fn whole(text: &str) -> Option<u32> {
    let text = text.strip_prefix('+').unwrap_or(text);
    if !text.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let digits = text.replace('_', "").to_ascii_lowercase();
    let prefixes = [("0x", 16), ("0b", 2), ("0o", 8), ("0", 8)];
    let based = prefixes.iter().find_map(|(prefix, base)| {
        let rest = digits.strip_prefix(prefix).filter(|rest| !rest.is_empty())?;
        Some((rest, *base))
    });
    let (digits, base) = based.unwrap_or((&digits, 10));
    let plain = digits.starts_with(|first: char| first.is_ascii_alphanumeric());
    u32::from_str_radix(digits, base).ok().filter(|_| plain)
}

fn replaces(
    fields: &mut Fields<'_, '_>,
    path: &DocumentPath<'_>,
    own: Option<&str>,
    found: &mut Found,
) -> Vec<String> {
    let list = path.name("replaces");
    let mut names = Vec::new();
    for (at, node) in fields.list("replaces", found).iter().enumerate() {
        let path = list.index(at);
        let Some(mut entry) = Fields::of(node, &path, "what is replaced", found) else { continue };
        match entry.text("name", found).filter(|(_, name)| !name.is_empty()) {
            None => {
                found.problem(&path, location(node), "`name` is missing: that of another limit");
            }
            Some((location, name)) if Some(name) == own => {
                found.problem(&path.name("name"), location, "a limit cannot replace itself");
            }
            Some((_, name)) => names.push(name.to_owned()),
        }
        entry.finish("`name`", found);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn numbers_are_those_of_yaml_1_1() {
        for (text, number) in [
            ("5", 5),
            ("1_000", 1_000),
            ("+7", 7),
            ("0x1F", 31),
            ("0b101", 5),
            ("0o17", 15),
            ("010", 8),
            ("0", 0),
            ("4294967295", u32::MAX),
        ] {
            assert_eq!(whole(text), Some(number), "{text}");
        }
        for text in [
            "",
            "-1",
            "+-1",
            "0x",
            "0x+1",
            "08",
            "1.5",
            "1e3",
            "4294967296",
            "ten",
            "_1",
            "99999999999999999999999",
        ] {
            assert_eq!(whole(text), None, "{text}");
        }
    }
}
