//! Reads the values of variables, as the service does that is written in Go.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The environment. A variable that is empty is not set.
pub(super) struct Variables<'a>(pub(super) &'a dyn Fn(&str) -> Option<String>);

impl Variables<'_> {
    pub(super) fn get(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.is_empty())
    }

    pub(super) fn text(&self, name: &str, default: &str) -> String {
        self.get(name).unwrap_or_else(|| default.to_owned())
    }

    /// Whether a variable is set to something else than `value`.
    pub(super) fn differs(&self, name: &str, value: &str) -> bool {
        let is_boolean = matches!(value, "true" | "false");
        self.get(name).is_some_and(|given| match flag(&given) {
            Some(given) if is_boolean => given.to_string() != value,
            _ => !given.eq_ignore_ascii_case(value),
        })
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, String> {
        let Some(given) = self.get(name) else { return Ok(false) };
        flag(&given).ok_or(format!("{name}: `{given}` is no boolean, expected true or false"))
    }

    /// A map as Go reads it, `name:value,..`, as options have it: `name=value,..`.
    pub(super) fn pairs(&self, name: &str) -> Result<Option<String>, String> {
        let Some(given) = self.get(name) else { return Ok(None) };
        let pairs = given.split(',').map(|pair| {
            let (key, value) = pair.split_once(':')?;
            (!key.contains('=')).then(|| format!("{key}={value}"))
        });
        let pairs: Option<Vec<_>> = pairs.collect();
        let wrong = || format!("{name}: `{given}` is no list of pairs, expected a:b,c:d");
        pairs.map(|pairs| Some(pairs.join(","))).ok_or_else(wrong)
    }

    pub(super) fn host(&self, name: &str) -> Result<IpAddr, String> {
        let host = self.text(name, "0.0.0.0");
        if host == "localhost" {
            return Ok(Ipv4Addr::LOCALHOST.into());
        }
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        bare.parse().map_err(|_| format!("{name}: `{host}` is no IP address"))
    }

    pub(super) fn address(&self, host: &str, port: &str, default: u16) -> Result<String, String> {
        let number = self.text(port, &default.to_string());
        let number = number.parse::<u16>().map_err(|_| format!("{port}: `{number}` is no port"))?;
        Ok(SocketAddr::new(self.host(host)?, number).to_string())
    }

    pub(super) fn duration(&self, name: &str, default: &str) -> Result<Duration, String> {
        let given = self.text(name, default);
        duration(&given).ok_or(format!(
            "{name}: `{given}` is no duration, expected one such as 10s, 1h30m or 500ms"
        ))
    }
}

/// A boolean as Go reads it.
fn flag(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// A duration as Go writes it, in whole milliseconds: numbers with units, such as `1h30m`.
fn duration(mut text: &str) -> Option<Duration> {
    let mut millis = 0.0;
    while !text.is_empty() {
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').filter(|&at| at > 0)?;
        let (number, rest) = text.split_at(digits);
        let units = [("ms", 1.0), ("s", 1e3), ("m", 6e4), ("h", 36e5), ("us", 1e-3), ("ns", 1e-6)];
        let (unit, factor) = units.into_iter().find(|(unit, _)| rest.starts_with(unit))?;
        millis += number.parse::<f64>().ok()? * factor;
        text = &rest[unit.len()..];
    }
    Duration::try_from_secs_f64(millis / 1e3).ok()
}
