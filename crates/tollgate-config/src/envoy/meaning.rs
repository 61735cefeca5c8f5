//! What the entries of descriptors ask of a request.

use std::net::IpAddr;

use super::descriptors::{Descriptors, Meaning};
use super::found::short;
use super::like::{Like, matches};
use super::test::Test;
use super::tree::Value;
use crate::document::{Condition, Expected, Key, Texts};

/// Why an entry cannot be followed, in a sentence.
pub(super) type Unclear = String;

/// What a descriptor's key is; the error names the line of code to add.
fn meaning<'d>(descriptors: &'d Descriptors, key: &str) -> Result<&'d Meaning, Unclear> {
    descriptors.meaning(key).ok_or_else(|| {
        format!(
            "nothing says what {} is of a request: add .with({key:?}, Key::Header({key:?}.into())) to \
             the `Descriptors`, or whichever key it is; or, for what Envoy's routes say by themselves, \
             .when({key:?}, value, condition)",
            short(key)
        )
    })
}

/// Whether the key can be asked for without a value.
pub(super) fn is_clear(descriptors: &Descriptors, key: &str) -> Result<(), Unclear> {
    has(descriptors, key, &Value::Any).map(drop)
}

/// Whether a request's entry of this key has this value.
pub(super) fn has(descriptors: &Descriptors, key: &str, value: &Value) -> Result<Test, Unclear> {
    has_any(descriptors, key, std::slice::from_ref(&value))
}

/// Whether a request's entry of this key has one of these values: those that are said exactly are asked
/// for at once, however many there are.
pub(super) fn has_any(
    descriptors: &Descriptors,
    key: &str,
    values: &[&Value],
) -> Result<Test, Unclear> {
    let meaning = meaning(descriptors, key)?;
    let (mut tests, mut exact) = (Vec::new(), Vec::new());
    for value in values {
        match (meaning, value) {
            (Meaning::Key(of), Value::Any) => tests.push(is_there(of)),
            (Meaning::Key(of), Value::Like(pattern)) => tests.push(is_like(of, pattern)?),
            (Meaning::Key(_), Value::Exactly(value)) => exact.push(value.as_str()),
            (Meaning::Named, Value::Exactly(value)) => tests.push(named(descriptors, key, value)?),
            (Meaning::Named, Value::Any | Value::Like(_)) => return Err(without_name(key)),
        }
    }
    if let Meaning::Key(of) = meaning {
        tests.push(equals(of, &exact)?);
    }
    Ok(Test::any(tests))
}

fn without_name(key: &str) -> Unclear {
    format!(
        "only values that the file names are known of {}: expected a `value` without `*`, or a key, \
         by .with({key:?}, ..) on the `Descriptors`",
        short(key)
    )
}

fn named(descriptors: &Descriptors, key: &str, value: &str) -> Result<Test, Unclear> {
    match descriptors.condition(key, value) {
        Some(condition) => Ok(Test::when(condition.clone())),
        None if descriptors.has_conditions(key) => Err(format!(
            "nothing says for which requests {} is {}: add .when({key:?}, {value:?}, condition) to \
             the `Descriptors`",
            short(key),
            short(value)
        )),
        None => Ok(Test::Always),
    }
}

/// Whether a request has it at all.
fn is_there(key: &Key) -> Test {
    match key {
        Key::Header(name) => header(name, Expected::Present(true)),
        Key::Cookie(name) => cookie(name, Expected::Present(true)),
        Key::Query(name) => query(name, Expected::Present(true)),
        Key::Claim(name) => claim(name, Expected::Present(true)),
        Key::Host => like(key, "*"),
        Key::First(keys) => Test::any(keys.iter().map(is_there)),
        Key::All(keys) => Test::all(keys.iter().map(is_there)),
        Key::Optional(key) => is_there(key),
        // What is missing of these is for the server to mend.
        Key::Ip | Key::Route | Key::Method | Key::Path => Test::Always,
        Key::Global | Key::Country | Key::Region | Key::Const(_) => Test::Always,
    }
}

/// Whether it is one of these values.
fn equals(key: &Key, values: &[&str]) -> Result<Test, Unclear> {
    let texts: Vec<_> = values.iter().map(|&value| value.to_owned()).collect();
    let any = || Some(Texts::Any(texts.clone()));
    let expected = || match &texts[..] {
        [text] => Expected::Equal(text.clone()),
        _ => Expected::Any(texts.clone()),
    };
    Ok(match key {
        _ if values.is_empty() => Test::Never,
        Key::Header(name) => header(name, expected()),
        Key::Cookie(name) => cookie(name, expected()),
        Key::Query(name) => query(name, expected()),
        Key::Claim(name) => claim(name, expected()),
        Key::Method => Test::when(Condition { method: any(), ..Condition::default() }),
        Key::Country => Test::when(Condition { country: any(), ..Condition::default() }),
        Key::Region => Test::when(Condition { region: any(), ..Condition::default() }),
        Key::Path | Key::Route | Key::Host => Test::any(values.iter().map(|text| like(key, text))),
        Key::Const(own) => Test::known(values.contains(&own.as_str())),
        Key::Ip => networks(values)?,
        Key::Optional(key) => equals(key, values)?,
        Key::Global | Key::First(_) | Key::All(_) => return Err(without_values()),
    })
}

fn is_like(key: &Key, pattern: &str) -> Result<Test, Unclear> {
    Ok(match key {
        Key::Header(_) | Key::Query(_) | Key::Claim(_) => like(key, pattern),
        Key::Method | Key::Path | Key::Route | Key::Host => like(key, pattern),
        Key::Const(own) => Test::known(matches(pattern, own)),
        Key::Ip => networks(&[&octets(pattern)?])?,
        Key::Optional(key) => is_like(key, pattern)?,
        Key::Country | Key::Region | Key::Cookie(_) => {
            return Err("countries, regions and cookies are compared whole: expected a `value` \
                        without `*`"
                .to_owned());
        }
        Key::Global | Key::First(_) | Key::All(_) => return Err(without_values()),
    })
}

fn without_values() -> Unclear {
    "several keys together, or none, have no value to compare: expected no `value`, or a single key \
     in the `Descriptors`"
        .to_owned()
}

/// Whether the address is one of these, or in one of these networks, which is how
/// `masked_remote_address` has it.
fn networks(values: &[&str]) -> Result<Test, Unclear> {
    for value in values {
        let (address, prefix) = value.split_once('/').unwrap_or((value, "0"));
        if address.parse::<IpAddr>().is_err() || prefix.parse::<u8>().is_err() {
            return Err(format!(
                "{} is no address: expected one such as 10.0.0.7, or a network such as 10.0.0.0/8",
                short(value)
            ));
        }
    }
    let networks = values.iter().map(|&value| value.to_owned()).collect();
    let network = Some(Texts::Any(networks));
    Ok(Test::when(Condition { network, ..Condition::default() }))
}

/// The network of the addresses that begin with some octets: `10.1.*` is `10.1.0.0/16`.
fn octets(pattern: &str) -> Result<String, Unclear> {
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

fn like(key: &Key, pattern: &str) -> Test {
    let like = vec![Like { key: key.clone(), pattern: pattern.to_owned() }];
    Test::when(Condition { like, ..Condition::default() })
}

fn header(name: &str, expected: Expected) -> Test {
    let header = [(name.to_owned(), expected)].into();
    Test::when(Condition { header, ..Condition::default() })
}

fn cookie(name: &str, expected: Expected) -> Test {
    let cookie = [(name.to_owned(), expected)].into();
    Test::when(Condition { cookie, ..Condition::default() })
}

fn query(name: &str, expected: Expected) -> Test {
    let query = [(name.to_owned(), expected)].into();
    Test::when(Condition { query, ..Condition::default() })
}

fn claim(name: &str, expected: Expected) -> Test {
    let claim = [(name.to_owned(), expected)].into();
    Test::when(Condition { claim, ..Condition::default() })
}
