//! What descriptor entries require of a request.

use std::net::IpAddr;

use sluicegate_core::Ip;
use sluicegate_core::key::{Method, Path};

use super::descriptors::{Descriptors, Meaning};
use super::fields::short;
use super::tree::Value;
use crate::document::{Condition, Key, Texts, Wildcard};

/// Why an entry cannot be translated.
pub(super) type TranslationError = String;

/// The meaning of a descriptor's key. An unknown key is an error and not guessed to be a header: if no request has
/// that header, the limit would be off.
fn meaning<'d>(descriptors: &'d Descriptors, key: &str) -> Result<&'d Meaning, TranslationError> {
    descriptors.meaning(key).ok_or_else(|| {
        format!(
            "nothing says what {} is of a request; in Envoy, the action of a route does that writes this \
             `descriptor_key`: add .with({key:?}, ..) to the `Descriptors` with what that action reads, such \
             as Key::Header with the name that stands there as `header_name`; or, for what a route says by \
             itself, .when({key:?}, value, condition) for each value",
            short(key)
        )
    })
}

/// Whether a request's entry of this key has one of these values. If a request has several entries, one of them must
/// match, or `every` one.
pub(super) fn has_any(
    descriptors: &Descriptors,
    key: &str,
    values: &[&Value],
    every: bool,
) -> Result<Question, TranslationError> {
    match meaning(descriptors, key)? {
        Meaning::Key(of) => is_any(of, values, every),
        Meaning::Named => {
            let named = values.iter().map(|value| match value {
                Value::Exactly(value) => named(descriptors, key, value),
                Value::Any | Value::Like(_) => Err(without_name(key)),
            });
            Ok(Question::any(named.collect::<Result<Vec<_>, _>>()?))
        }
        Meaning::Network => within(key, values),
    }
}

/// Whether the client's address is in one of these networks.
fn within(key: &str, values: &[&Value]) -> Result<Question, TranslationError> {
    let networks = values.iter().map(|value| match value {
        Value::Exactly(value) => network(value),
        Value::Any | Value::Like(_) => Err(format!(
            "how many bits of an address Envoy's routes keep for {} is not known here: expected a `value` such \
             as 10.0.0.0/8, or .with({key:?}, Key::Ip) on the `Descriptors` if each address counts for itself",
            short(key)
        )),
    });
    let networks = networks.collect::<Result<Vec<_>, _>>()?;
    if networks.is_empty() {
        return Ok(Question::Never);
    }
    Ok(Question::of(|condition| condition.network = Some(networks.into())))
}

fn without_name(key: &str) -> TranslationError {
    format!(
        "only values that the file names are known of {}: expected a `value` without `*`, or a key, \
         by .with({key:?}, ..) on the `Descriptors`",
        short(key)
    )
}

fn named(descriptors: &Descriptors, key: &str, value: &str) -> Result<Question, TranslationError> {
    match descriptors.condition(key, value) {
        Some(condition) => Ok(Question::when(condition.clone())),
        None if descriptors.has_conditions(key) => Err(format!(
            "nothing says for which requests {} is {}: add .when({key:?}, {value:?}, condition) to \
             the `Descriptors`",
            short(key),
            short(value)
        )),
        None => Ok(Question::Always),
    }
}

fn is_any(key: &Key, values: &[&Value], every: bool) -> Result<Question, TranslationError> {
    if values.contains(&&Value::Any) {
        return Ok(is_there(key));
    }
    let texts: Vec<_> = values.iter().filter_map(|value| value.text().map(str::to_owned)).collect();
    if texts.is_empty() {
        return Ok(Question::Never);
    }
    Ok(match key {
        Key::Header(_) | Key::Cookie(_) | Key::Query(_) | Key::Claim(_) => like(key, texts, every),
        Key::Path => spelled(key, texts, every, is_path, |condition, paths| {
            condition.path = Some(paths);
        }),
        Key::Method => spelled(key, texts, every, is_method, |condition, methods| {
            condition.method = Some(methods);
        }),
        Key::Route | Key::Host => like(key, texts, every),
        Key::Const(own) => Question::known(texts.iter().any(|text| Wildcard::matches(text, own))),
        Key::Ip if texts.iter().any(|text| text == "*") => Question::Always,
        Key::Ip => {
            let networks: Vec<_> =
                texts.iter().map(|text| network(text)).collect::<Result<_, _>>()?;
            Question::of(|condition| condition.network = Some(networks.into()))
        }
        Key::Country => {
            let codes = whole(texts)?;
            Question::of(|condition| condition.country = Some(codes.into()))
        }
        Key::Region => {
            let codes = whole(texts)?;
            Question::of(|condition| condition.region = Some(codes.into()))
        }
        Key::Optional(key) => is_any(key, values, every)?,
        Key::Global | Key::First(_) | Key::All(_) => return Err(without_values()),
    })
}

/// Whether a request has the key at all.
fn is_there(key: &Key) -> Question {
    match key {
        Key::Header(_) | Key::Cookie(_) | Key::Query(_) | Key::Claim(_) | Key::Host => {
            like(key, vec!["*".to_owned()], false)
        }
        Key::First(keys) => Question::any(keys.iter().map(is_there)),
        Key::All(keys) => Question::all(keys.iter().map(is_there)),
        Key::Optional(key) => is_there(key),
        // If one of these is missing, the server is not set up correctly, which is another error.
        Key::Ip
        | Key::Route
        | Key::Method
        | Key::Path
        | Key::Global
        | Key::Country
        | Key::Region
        | Key::Const(_) => Question::Always,
    }
}

fn like(key: &Key, patterns: Vec<String>, every: bool) -> Question {
    let wildcard = Wildcard::new(key.clone(), patterns, every);
    Question::of(|condition| condition.wildcards.push(wildcard))
}

/// Like [`like`], for what clients spell in several ways: paths, and `HEAD` for `GET`. The texts that are `known` become a
/// condition that sees every spelling. An exception (`every`) is also for the bytes of the file alone.
fn spelled(
    key: &Key,
    texts: Vec<String>,
    every: bool,
    known: impl Fn(&str) -> bool,
    set: impl FnOnce(&mut Condition, Texts),
) -> Question {
    let (known, others): (Vec<_>, Vec<_>) = texts.into_iter().partition(|text| known(text));
    let mut any = Vec::new();
    if !known.is_empty() {
        let bytes = every.then(|| Wildcard::new(key.clone(), known.clone(), every));
        any.push(Question::of(|condition| {
            set(condition, known.into());
            condition.wildcards.extend(bytes);
        }));
    }
    if !others.is_empty() {
        any.push(like(key, others, every));
    }
    Question::any(any)
}

/// Whether a value means the same as a pattern of ours: a path, or a path and all below it.
fn is_path(text: &str) -> bool {
    let path = text.strip_suffix("/*").unwrap_or(text);
    !path.contains(['*', '{', '}']) && Path.try_matches(text).is_ok()
}

fn is_method(text: &str) -> bool {
    Method.try_is_any([text.to_owned()]).is_ok()
}

fn without_values() -> TranslationError {
    "several keys together, or none, have no value to compare: expected no `value`, or a single key \
     in the `Descriptors`"
        .to_owned()
}

/// The codes of countries or regions, which cannot be compared with wildcards.
fn whole(codes: Vec<String>) -> Result<Vec<String>, TranslationError> {
    match codes.iter().find(|code| code.contains('*')) {
        Some(code) => Err(format!(
            "{} is no code of a country or a region: expected a `value` without `*`",
            short(code)
        )),
        None => Ok(codes),
    }
}

/// The network of a value: an address, a network such as `10.0.0.0/8`, or a wildcard of whole octets such as
/// `10.1.*`.
fn network(value: &str) -> Result<String, TranslationError> {
    if value.contains('*') {
        return octets(value);
    }
    let (address, prefix) = value.split_once('/').unwrap_or((value, ""));
    if address.parse::<IpAddr>().is_err() || prefix.len() > MOST_DIGITS {
        return Err(format!(
            "{} is no address: expected one such as 10.0.0.7, or a network such as 10.0.0.0/8",
            short(value)
        ));
    }
    Ip::peer().within([value]).map_err(|error| error.to_string())?;
    Ok(value.to_owned())
}

/// The most characters of a prefix length that an error quotes.
const MOST_DIGITS: usize = 8;

fn octets(pattern: &str) -> Result<String, TranslationError> {
    let octets = pattern.strip_suffix(".*").unwrap_or_default();
    let count = octets.split('.').filter(|octet| octet.parse::<u8>().is_ok()).count();
    if !(1..4).contains(&count) || count != octets.split('.').count() {
        return Err(format!(
            "{} is not whole octets: expected a wildcard such as 10.1.*, or a network such as \
             10.1.0.0/16",
            short(pattern)
        ));
    }
    Ok(format!("{octets}{}/{}", ".0".repeat(4 - count), 8 * count))
}

/// A condition that may be known without a request.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Question {
    Always,
    Never,
    If(Box<Condition>),
}

impl Question {
    pub(super) fn when(condition: Condition) -> Self {
        Self::If(Box::new(condition))
    }

    /// A condition with what `set` sets.
    pub(super) fn of(set: impl FnOnce(&mut Condition)) -> Self {
        let mut condition = Condition::default();
        set(&mut condition);
        Self::when(condition)
    }

    pub(super) fn known(holds: bool) -> Self {
        if holds { Self::Always } else { Self::Never }
    }

    /// Holds if this one does not.
    pub(super) fn not(self) -> Self {
        match self {
            Self::Always => Self::Never,
            Self::Never => Self::Always,
            Self::If(condition) => Self::If(Box::new(negated(*condition))),
        }
    }

    /// Holds if all of `tests` do.
    pub(super) fn all(tests: impl IntoIterator<Item = Self>) -> Self {
        let mut conditions = Vec::new();
        for test in tests {
            match test {
                Self::Always => {}
                Self::Never => return Self::Never,
                Self::If(condition) => conditions.push(*condition),
            }
        }
        match conditions.len() {
            0 => Self::Always,
            1 => Self::when(conditions.remove(0)),
            // All hold if none does not.
            _ => Self::when(negated(either(conditions.into_iter().map(negated).collect()))),
        }
    }

    /// Holds if one of `tests` does.
    pub(super) fn any(tests: impl IntoIterator<Item = Self>) -> Self {
        Self::all(tests.into_iter().map(Self::not)).not()
    }
}

fn either(any: Vec<Condition>) -> Condition {
    Condition { any, ..Condition::default() }
}

/// The negation of `condition`. A double negation is removed.
fn negated(mut condition: Condition) -> Condition {
    match condition.not.take() {
        Some(inner) if condition == Condition::default() => *inner,
        not => {
            condition.not = not;
            Condition { not: Some(Box::new(condition)), ..Condition::default() }
        }
    }
}
