use std::cell::{OnceCell, RefCell};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::{Ip, Limit, Tiers};

use super::proxy::why_removed;
use crate::absent::{GeoDatabase, GeoKey, Hours};
use crate::document::{Amount, Document, Texts};
use crate::environment::Environment;
use crate::source::DocumentPath;
use crate::source::{Diagnostic, MOST, PolicyError};

/// A name or a value from a document.
pub(super) type Name = Arc<str>;

/// What a document is compiled with, and the errors found in it.
pub(super) struct Context<'a> {
    pub(super) document: &'a Document,
    pub(super) environment: &'a Environment,
    /// Whether all limits carry over what was spent when their numbers change.
    pub(super) carries: bool,
    /// The client's address, with the document's proxies.
    pub(super) ip: Ip,
    geoip: Option<GeoDatabase>,
    /// Hours in the document's time zone.
    pub(super) hours: Option<Hours>,
    /// The customers of a document with tiers. All rules share them.
    pub(super) customers: OnceCell<Tiers>,
    problems: RefCell<Problems>,
}

/// The errors found so far: the first ones in the order of the text, and how many there are. A generated file may have one
/// in each line.
#[derive(Default)]
struct Problems {
    kept: Vec<Diagnostic>,
    /// The hashes of all: a value that several rules use is checked for each of them.
    seen: HashSet<u64>,
    reported: usize,
}

impl Problems {
    fn add(&mut self, problem: Diagnostic) {
        self.reported += 1;
        let mut hasher = DefaultHasher::new();
        problem.hash(&mut hasher);
        if !self.seen.insert(hasher.finish()) {
            return;
        }
        self.kept.push(problem);
        if self.kept.len() >= 2 * MOST {
            self.kept.sort_by_key(Diagnostic::location);
            self.kept.truncate(MOST);
        }
    }
}

/// A client that chooses HTTP/2 would be another one, or meet no condition.
const HOST: &str =
    "requests of HTTP/2 have no such header: expected `host`, which reads it in every version";

impl<'a> Context<'a> {
    pub(super) fn new(document: &'a Document, environment: &'a Environment, carries: bool) -> Self {
        let mut context = Self {
            document,
            environment,
            carries,
            ip: Ip::peer(),
            geoip: None,
            hours: None,
            customers: OnceCell::new(),
            problems: RefCell::default(),
        };
        if let Some(ip) = context.address() {
            context.ip = ip;
        }
        if let Some(prefixes) = &document.nat64 {
            context.ip = context.translated(prefixes);
        }
        context.geoip = context.open_geoip();
        context.hours = context.in_zone();
        context
    }

    fn in_zone(&self) -> Option<Hours> {
        if self.document.time_zone.is_none() && cfg!(not(feature = "hours")) {
            return None;
        }
        let zone = self.document.time_zone.as_deref().unwrap_or("UTC");
        self.check(&DocumentPath::Root.name("time_zone"), Hours::in_zone(zone))
    }

    fn open_geoip(&self) -> Option<GeoDatabase> {
        if let Some(database) = &self.environment.geoip {
            return Some(database.clone());
        }
        let database = &self.document.geoip.as_ref()?.database;
        if self.environment.guessing {
            return None;
        }
        let path = DocumentPath::Root.name("geoip");
        self.check(&path.name("database"), GeoDatabase::open(database))
    }

    /// The country of the client's address.
    pub(super) fn country(&self, path: &DocumentPath<'_>) -> Option<GeoKey> {
        self.known_geoip(path).map(|geo| geo.country(self.ip.clone()))
    }

    /// The region of the client's address.
    pub(super) fn region(&self, path: &DocumentPath<'_>) -> Option<GeoKey> {
        self.known_geoip(path).map(|geo| geo.region(self.ip.clone()))
    }

    fn known_geoip(&self, path: &DocumentPath<'_>) -> Option<&GeoDatabase> {
        if self.geoip.is_none() && self.document.geoip.is_none() {
            self.report(path, "there is no GeoIP database, expected `geoip` with a `database`");
        }
        self.geoip.as_ref()
    }

    fn address(&self) -> Option<Ip> {
        let proxies = self.document.proxies.as_ref()?;
        let path = DocumentPath::Root.name("proxies");
        let ip = self.behind(&proxies.trusted, &path.name("trusted"));
        let Some(header) = &proxies.header else { return ip };
        let path = path.name("header");
        let header = self.header_name(header, &path)?;
        // Without a trusted proxy, nobody is read, whatever the name is.
        if let Some(why) =
            why_removed(self.document, &header).filter(|_| !proxies.trusted.is_empty())
        {
            return self.refuse(&path, why);
        }
        Some(ip?.header(header.to_string()))
    }

    /// The address behind these proxies. Each proxy is checked by itself.
    fn behind(&self, trusted: &[String], path: &DocumentPath<'_>) -> Option<Ip> {
        for (i, proxy) in trusted.iter().enumerate() {
            self.check(&path.index(i), Ip::try_behind([proxy]));
        }
        Ip::try_behind(trusted).ok()
    }

    /// The address inside that of a NAT64 translator. Each prefix is checked by itself.
    fn translated(&self, spec: &Texts) -> Ip {
        let path = DocumentPath::Root.name("nat64");
        let prefixes = spec.as_slice();
        let check =
            |path: &DocumentPath<'_>, prefix| self.check(path, self.ip.clone().try_nat64([prefix]));
        match spec {
            Texts::One(prefix) => drop(check(&path, prefix)),
            Texts::Any(_) => prefixes.iter().enumerate().for_each(|(i, prefix)| {
                check(&path.index(i), prefix);
            }),
        }
        self.ip.clone().try_nat64(prefixes).unwrap_or_else(|_| self.ip.clone())
    }

    /// Reports an error in the value at `path`.
    pub(super) fn report(&self, path: &DocumentPath<'_>, message: impl Into<String>) {
        self.problems.borrow_mut().add(self.document.source.problem(path, message));
    }

    /// Reports an error in the value at `path`, of which nothing is made.
    pub(super) fn refuse<T>(
        &self,
        path: &DocumentPath<'_>,
        message: impl Into<String>,
    ) -> Option<T> {
        self.report(path, message);
        None
    }

    /// Reports a list that is empty in the text. It would mean the same as none, and reads like the opposite.
    pub(super) fn not_empty(&self, path: &DocumentPath<'_>) {
        if self.document.source.has_empty(path) {
            self.report(path, "the list is empty, expected at least one");
        }
    }

    /// Reports a table of values that is empty in the text: it would ask for nothing.
    pub(super) fn not_without_names(&self, kind: &str, path: &DocumentPath<'_>) {
        if self.document.source.has_empty(path) {
            self.report(path, format!("the table is empty, expected the name of a {kind}"));
        }
    }

    /// How many errors were reported so far.
    pub(super) fn problems(&self) -> usize {
        self.problems.borrow().reported
    }

    /// The value; an error is reported.
    pub(super) fn check<T, E: ToString>(
        &self,
        path: &DocumentPath<'_>,
        value: Result<T, E>,
    ) -> Option<T> {
        value.map_err(|error| self.report(path, error.to_string())).ok()
    }

    /// Checks a name that limits are named after.
    pub(super) fn rule_name<'n>(&self, name: &'n str, path: &DocumentPath<'_>) -> Option<&'n str> {
        self.check(path, Limit::per_second(1).try_named(name)).map(|_| name)
    }

    /// Checks that a name is not empty.
    pub(super) fn name(&self, kind: &str, name: &str, path: &DocumentPath<'_>) -> Option<Name> {
        if name.is_empty() {
            return self.refuse(path, format!("the name is empty, expected the name of a {kind}"));
        }
        Some(name.into())
    }

    /// Checks the name of a header.
    pub(super) fn header_name(&self, name: &str, path: &DocumentPath<'_>) -> Option<Name> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || !name.bytes().all(fits) {
            return self.refuse(
                path,
                format!(
                    "`{name}` is not the name of a header, expected a name such as `x-api-key`"
                ),
            );
        }
        Some(name.into())
    }

    /// Checks the name of a header that is read in requests.
    pub(super) fn request_header(&self, name: &str, path: &DocumentPath<'_>) -> Option<Name> {
        if name.eq_ignore_ascii_case("host") {
            return self.refuse(path, HOST);
        }
        let name = self.header_name(name, path)?;
        match why_removed(self.document, &name) {
            Some(why) => self.refuse(path, why),
            None => Some(name),
        }
    }

    /// Parses a duration such as `90 seconds`.
    pub(super) fn time(&self, text: &str, path: &DocumentPath<'_>) -> Option<Duration> {
        let plain = time(text);
        if plain.is_none() {
            let expected = "expected a number and a unit, such as `90 seconds` or `5 minutes`";
            self.report(path, format!("`{text}` is not a duration, {expected}"));
        }
        plain
    }

    /// Parses a percentage from 1 to 100.
    pub(super) fn percent(&self, text: &str, path: &DocumentPath<'_>) -> Option<u64> {
        let number = text.strip_suffix('%').map(str::trim_end);
        let digits = number.filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        let percent = digits.and_then(|digits| digits.parse().ok());
        let fits = percent.filter(|percent| (1..=100).contains(percent));
        if fits.is_none() {
            self.report(
                path,
                format!("`{text}` is not a percentage, expected 1% to 100%, such as `80%`"),
            );
        }
        fits
    }

    /// Parses a share such as `"80%"`. Percentages up to 100 are exact as `f64`.
    pub(super) fn share(&self, share: &Amount, path: &DocumentPath<'_>) -> Option<f64> {
        match share {
            Amount::Percent(text) => self.percent(text, path).map(|percent| percent as f64 / 100.0),
            Amount::Count(count) => self
                .refuse(path, format!("`{count}` is not a percentage, expected one such as `80%`")),
        }
    }

    /// `made`, if no error was reported.
    pub(super) fn finish<T>(self, made: T) -> Result<T, PolicyError> {
        let Problems { kept, seen, .. } = self.problems.into_inner();
        let more = seen.len() - kept.len();
        match PolicyError::and_more(kept, more) {
            Some(problems) => Err(problems),
            None => Ok(made),
        }
    }
}

/// Parses a duration such as `90 seconds`. None is longer than the longest period of a limit.
pub fn time(text: &str) -> Option<Duration> {
    let limit = format!("fixed 1 per {text}").parse::<Limit>().ok();
    let period = limit.and_then(|limit| limit.period());
    // Options must not follow.
    period.filter(|&period| Limit::try_fixed_window(1, period).ok() == limit)
}
