//! Reads capacities from TOML.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Deserialize;
use sluicegate_config::reader::text_within_bounds;
use sluicegate_config::{Diagnostic, PolicyError, SourceLocation};
use sluicegate_core::Limit;
use sluicegate_lease::Amount;
use sluicegate_lease::pool::MAX_NAME;
use toml::Spanned;

use super::callers::{ENVOY, LARGEST_WEIGHT, LAST_BAND};
use super::plan::{Capacities, Capacity, Client, Draw, Value};
use crate::rlqs::Assignment;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    capacity: Vec<Spanned<Table>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    name: Spanned<String>,
    limit: Spanned<String>,
    #[serde(default)]
    lease: Option<Spanned<String>>,
    #[serde(default)]
    envoy: Vec<Spanned<Envoy>>,
    #[serde(default)]
    client: Vec<Spanned<Caller>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Caller {
    name: Spanned<String>,
    #[serde(default)]
    weight: Option<Spanned<u32>>,
    #[serde(default)]
    band: u8,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envoy {
    domain: Spanned<String>,
    bucket: Spanned<BTreeMap<String, String>>,
    #[serde(default)]
    weight: Option<Spanned<u32>>,
    #[serde(default)]
    band: u8,
}

/// How long a part lasts unless the file says otherwise.
const LEASE: Duration = Duration::from_secs(20);
/// Envoy reports every 5 seconds, and a report may be lost.
const SHORTEST_LEASE: Duration = Duration::from_secs(10);
/// The longest that a part may last by the file. Whatever elects the master among several servers has to know it, because
/// files change: until that time has passed, its list of who may hold a part may lack some.
pub const LONGEST_LEASE: Duration = Duration::from_secs(60 * 60);
/// A name leaves room for values of a bucket in the name of a resource.
const LONGEST_NAME: usize = 64;
const MOST_KEYS: usize = 16;

impl Capacities {
    /// Reads capacities from TOML.
    ///
    /// ```
    /// use sluicegate_server::capacity::Capacities;
    ///
    /// let capacities = Capacities::read(
    ///     r#"
    ///     [[capacity]]
    ///     name = "db"                          # what clients of leases ask for
    ///     limit = "1000/second burst 100"
    ///     lease = "20 seconds"
    ///
    ///     [[capacity.envoy]]                   # buckets of Envoy that draw on it
    ///     domain = "edge"
    ///     bucket = { service = "db" }
    ///     weight = 2
    ///
    ///     [[capacity.client]]                  # without any, every client of leases may draw on it
    ///     name = "batch-*"                     # a name, or how names begin
    ///     weight = 3                           # the largest that each may ask for; 1 unless told otherwise
    ///     band = 1                             # the first that they may ask in; 0 unless told otherwise
    ///     "#,
    /// )?;
    /// assert!(capacities.describe()[0].starts_with("db: "));
    /// # Ok::<(), sluicegate_config::PolicyError>(())
    /// ```
    ///
    /// A reload puts a shorter lease in force, and no more is in use than there is. A server that starts after that, or
    /// becomes the master, learns for the shorter time only. So none should be started within the old lease.
    ///
    /// # Errors
    ///
    /// What is wrong with the text, with line and column. A text without `capacity` is an error too: a program that
    /// writes a file in place empties it first, and clients must not lose what they share meanwhile.
    pub fn read(text: &str) -> Result<Self, PolicyError> {
        let text = text_within_bounds(text)?;
        let file: File = toml::from_str(text).map_err(|error| {
            let at = error.span().map(|span| location(text, span.start));
            let what = match error.message() {
                "missing field `capacity`" => {
                    "there is no capacity: say `capacity = []` if there is to be none".to_owned()
                }
                message => message.lines().collect::<Vec<_>>().join(", "),
            };
            Diagnostic::new("", what).at(at)
        })?;
        let mut reading = Reading { text, problems: Vec::new(), buckets: BTreeSet::new() };
        let tables = file.capacity.iter().enumerate();
        let list: Vec<_> = tables.map(|(at, table)| reading.capacity(at, table)).collect();
        if let Some(error) = PolicyError::of(reading.problems) {
            return Err(error);
        }
        Self::new(list.into_iter().flatten().collect())
            .map_err(|error| Diagnostic::new("capacity", error.to_string()).into())
    }
}

struct Reading<'a> {
    text: &'a str,
    problems: Vec<Diagnostic>,
    /// Domains and ids of buckets so far, and the names of capacities with an empty domain.
    buckets: BTreeSet<(String, BTreeMap<String, String>)>,
}

impl Reading<'_> {
    fn report<T>(&mut self, path: String, at: &Spanned<T>, what: impl Into<String>) {
        let at = location(self.text, at.span().start);
        self.problems.push(Diagnostic::new(path, what).at(Some(at)));
    }

    fn capacity(&mut self, at: usize, table: &Spanned<Table>) -> Option<Capacity> {
        let path = format!("capacity[{at}]");
        let table = table.get_ref();
        let name = self.name(&path, &table.name);
        let limit = self.limit(&path, &table.limit);
        let lease = match &table.lease {
            Some(lease) => self.lease(&path, lease),
            None => Some(LEASE),
        };
        let nothing = |(per_second, burst)| {
            Assignment::of(per_second, per_second, burst) == Assignment::Nothing
        };
        if !table.envoy.is_empty() && limit.is_some_and(nothing) {
            let what = format!(
                "`{}` is less than Envoy can be assigned: expected more than one in an hour",
                table.limit.get_ref()
            );
            self.report(format!("{path}.limit"), &table.limit, what);
        }
        let draws: Vec<_> = table
            .envoy
            .iter()
            .enumerate()
            .map(|(at, envoy)| self.draw(&format!("{path}.envoy[{at}]"), envoy))
            .collect();
        let callers = table.client.iter().enumerate();
        let clients: Vec<_> = callers
            .map(|(at, caller)| self.client(&format!("{path}.client[{at}]"), caller))
            .collect();
        let draws: Vec<Draw> = draws.into_iter().collect::<Option<_>>()?;
        let clients: Vec<Client> = clients.into_iter().collect::<Option<_>>()?;
        let any =
            draws.iter().filter(|draw| draw.bucket.values().any(|value| *value == Value::Any));
        if any.count() % draws.len().max(1) != 0 {
            let what =
                "some buckets have a `*` and some have none: give them capacities of their own";
            self.report(format!("{path}.envoy"), &table.envoy[0], what);
            return None;
        }
        let (per_second, burst) = limit?;
        Some(Capacity { name: name?, per_second, burst, lease: lease?, draws, clients })
    }

    fn name(&mut self, path: &str, said: &Spanned<String>) -> Option<Box<str>> {
        let (name, path) = (said.get_ref().as_str(), format!("{path}.name"));
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(plain) {
            let what = format!(
                "`{name}` is no name: expected 1 to {LONGEST_NAME} letters, digits, `-`, `_` or `.`"
            );
            self.report(path, said, what);
            return None;
        }
        if !self.buckets.insert((String::new(), BTreeMap::from([(name.to_owned(), String::new())])))
        {
            self.report(path, said, format!("another capacity has the name `{name}`"));
            return None;
        }
        Some(name.into())
    }

    /// The rate a second, and the burst.
    fn limit(&mut self, path: &str, said: &Spanned<String>) -> Option<(Amount, u64)> {
        let (text, path) = (said.get_ref().as_str(), format!("{path}.limit"));
        let limit: Limit = match text.parse() {
            Ok(limit) => limit,
            Err(error) => {
                self.report(path, said, format!("in `{text}`: {error}"));
                return None;
            }
        };
        let plain = limit.period().and_then(|period| {
            let plain = Limit::try_per(limit.count(), period).ok()?;
            let plain = plain.try_burst(limit.capacity()).ok()?;
            (plain == limit).then_some(limit.count() as f64 / period.as_secs_f64())
        });
        let amount = plain.and_then(Amount::from_f64).filter(|amount| !amount.is_zero());
        let Some(amount) = amount else {
            let what = format!(
                "`{text}` cannot be divided: expected a rate and a burst, such as `1000/second burst 100`"
            );
            self.report(path, said, what);
            return None;
        };
        Some((amount, limit.capacity()))
    }

    fn lease(&mut self, path: &str, said: &Spanned<String>) -> Option<Duration> {
        let text = said.get_ref();
        // Options must not follow.
        let limit = format!("fixed 1 per {text}").parse::<Limit>().ok();
        let period = limit.as_ref().and_then(Limit::period);
        let plain = period.filter(|&period| Limit::try_fixed_window(1, period).ok() == limit);
        let fits = plain.filter(|lease| (SHORTEST_LEASE..=LONGEST_LEASE).contains(lease));
        if fits.is_none() {
            let what = format!("`{text}` is no lease: expected 10 seconds to 1 hour");
            self.report(format!("{path}.lease"), said, what);
        }
        fits
    }

    fn draw(&mut self, path: &str, said: &Spanned<Envoy>) -> Option<Draw> {
        let envoy = said.get_ref();
        let before = self.problems.len();
        if envoy.domain.get_ref().is_empty() {
            self.report(format!("{path}.domain"), &envoy.domain, "the domain is empty");
        }
        let entries = envoy.bucket.get_ref();
        if entries.is_empty() || entries.len() > MOST_KEYS {
            let what = format!("expected 1 to {MOST_KEYS} keys, such as `{{ service = \"db\" }}`");
            self.report(format!("{path}.bucket"), &envoy.bucket, what);
        } else if !self.buckets.insert((envoy.domain.get_ref().clone(), entries.clone())) {
            let what = "this bucket draws on a capacity already";
            self.report(format!("{path}.bucket"), &envoy.bucket, what);
        }
        let weight = self.weight(path, envoy.weight.as_ref());
        self.band(path, said, envoy.band);
        let value = |value: &String| match value.as_str() {
            "*" => Value::Any,
            value => Value::Exactly(value.into()),
        };
        let bucket = entries.iter().map(|(key, said)| (key.as_str().into(), value(said))).collect();
        (self.problems.len() == before).then(|| Draw {
            domain: envoy.domain.get_ref().as_str().into(),
            bucket,
            weight,
            band: envoy.band,
        })
    }

    fn client(&mut self, path: &str, said: &Spanned<Caller>) -> Option<Client> {
        let caller = said.get_ref();
        let before = self.problems.len();
        let name = caller.name.get_ref().as_str();
        let beginning = name.strip_suffix('*').unwrap_or(name);
        if name.is_empty() || name.len() > MAX_NAME || beginning.contains('*') {
            let what = format!(
                "`{name}` names no clients: expected a name of up to {MAX_NAME} bytes, or how names begin, such as \
                 `batch-*`"
            );
            self.report(format!("{path}.name"), &caller.name, what);
        } else if name.starts_with(ENVOY) {
            let what = format!("names that begin with `{ENVOY}` are those of Envoys");
            self.report(format!("{path}.name"), &caller.name, what);
        }
        let weight = self.weight(path, caller.weight.as_ref());
        self.band(path, said, caller.band);
        let client = Client { name: name.into(), weight, band: caller.band };
        (self.problems.len() == before).then_some(client)
    }

    fn weight(&mut self, path: &str, said: Option<&Spanned<u32>>) -> u32 {
        let weight = said.map_or(1, |weight| *weight.get_ref());
        if let (Some(said), false) = (said, (1..=LARGEST_WEIGHT).contains(&weight)) {
            let what = format!("{weight} is no weight: expected 1 to {LARGEST_WEIGHT}");
            self.report(format!("{path}.weight"), said, what);
        }
        weight
    }

    fn band<T>(&mut self, path: &str, said: &Spanned<T>, band: u8) {
        if band > LAST_BAND {
            let what = format!("band {band} is not known: expected 0 to {LAST_BAND}");
            self.report(format!("{path}.band"), said, what);
        }
    }
}

/// The line and column of a byte.
fn location(text: &str, byte: usize) -> SourceLocation {
    let before = text.get(..byte).unwrap_or(text);
    let line = before.rsplit_once('\n').map_or(before, |(_, line)| line);
    SourceLocation { line: before.matches('\n').count() + 1, column: line.chars().count() + 1 }
}

#[cfg(test)]
mod tests {
    use super::Capacities;

    fn wrong(text: &str) -> String {
        Capacities::read(text).expect_err("an error").to_string()
    }

    #[test]
    fn everything_that_is_wrong_is_told_with_line_and_column() {
        let said = wrong(
            "[[capacity]]\nname = \"a b\"\nlimit = \"concurrent 5\"\nlease = \"1 second\"\n\
             [[capacity.envoy]]\ndomain = \"\"\nbucket = {}\nweight = 0\nband = 200\n",
        );
        for (line, what) in said.lines().zip([
            "2:8: capacity[0].name: `a b` is no name",
            "3:9: capacity[0].limit: `concurrent 5` cannot be divided",
            "4:9: capacity[0].lease: `1 second` is no lease",
            "5:1: capacity[0].envoy[0].band: band 200",
            "6:10: capacity[0].envoy[0].domain: the domain is empty",
            "7:10: capacity[0].envoy[0].bucket: expected 1 to 16 keys",
            "8:10: capacity[0].envoy[0].weight: 0 is no weight",
        ]) {
            assert!(line.starts_with(what), "{said}");
        }
        assert_eq!(said.lines().count(), 7, "{said}");
    }

    #[test]
    fn clients_that_cannot_be_are_told_with_line_and_column() {
        let table = "[[capacity]]\nname = \"db\"\nlimit = \"5/second\"\n";
        let client = |client: &str| wrong(&format!("{table}[[capacity.client]]\n{client}\n"));
        for (text, what) in [
            ("name = \"\"", "5:8: capacity[0].client[0].name: `` names no clients"),
            ("name = \"a*b\"", "5:8: capacity[0].client[0].name: `a*b` names no clients"),
            (
                "name = \"envoy/1\"",
                "5:8: capacity[0].client[0].name: names that begin with `envoy/`",
            ),
            ("name = \"a\"\nweight = 0", "6:10: capacity[0].client[0].weight: 0 is no weight"),
            ("name = \"a\"\nband = 101", "4:1: capacity[0].client[0].band: band 101"),
            ("name = \"a\"\nweights = 2", "6:1: unknown field `weights`"),
        ] {
            assert!(client(text).contains(what), "{} for {text}", client(text));
        }
    }

    #[test]
    fn a_capacity_of_which_envoy_cannot_be_assigned_anything_is_an_error() {
        let text = |limit: &str, draws: &str| {
            format!("[[capacity]]\nname = \"db\"\nlimit = \"{limit}\"\n{draws}")
        };
        let envoy = "[[capacity.envoy]]\ndomain = \"edge\"\nbucket = { service = \"db\" }\n";
        let said = wrong(&text("1/hour", envoy));
        assert!(said.starts_with("3:9: capacity[0].limit: `1/hour` is less than"), "{said}");
        for (limit, draws) in [("2/hour", envoy), ("1/hour", "")] {
            Capacities::read(&text(limit, draws)).expect("a capacity");
        }
    }

    #[test]
    fn an_unknown_key_and_a_wrong_type_have_their_place() {
        let said = wrong("[[capacity]]\nname = \"a\"\nlimit = 5\n");
        assert!(said.starts_with("3:9: invalid type: integer `5`"), "{said}");
        let said = wrong("[[capacity]]\nname = \"a\"\nlimits = \"5/second\"\n");
        assert!(said.starts_with("3:1: unknown field `limits`"), "{said}");
    }

    #[test]
    fn an_empty_file_is_an_error_and_an_empty_list_is_not() {
        assert!(wrong("# nothing yet\n").contains("say `capacity = []`"));
        assert_eq!(Capacities::read("capacity = []").expect("no capacities").iter().count(), 0);
    }

    #[test]
    fn a_name_or_a_bucket_that_is_given_twice_is_an_error() {
        let table = |name: &str| {
            format!(
                "[[capacity]]\nname = \"{name}\"\nlimit = \"5/second\"\n[[capacity.envoy]]\ndomain = \"edge\"\n\
                 bucket = {{ a = \"b\" }}\n"
            )
        };
        let said = wrong(&(table("one") + &table("one")));
        assert!(said.contains("8:8: capacity[1].name: another capacity"), "{said}");
        assert!(said.contains("12:10: capacity[1].envoy[0].bucket: this bucket"), "{said}");
    }

    #[test]
    fn a_bucket_finds_its_capacity_and_values_of_a_star_have_one_each() {
        let text = "[[capacity]]\nname = \"tenants\"\nlimit = \"60/minute burst 3\"\n[[capacity.envoy]]\n\
            domain = \"edge\"\nbucket = { tenant = \"*\", kind = \"web\" }\n\
            [[capacity]]\nname = \"acme\"\nlimit = \"5/second\"\n[[capacity.envoy]]\n\
            domain = \"edge\"\nbucket = { tenant = \"acme\", kind = \"web\" }\n";
        let capacities = Capacities::read(text).expect("capacities");
        let resource = |domain: &str, entries: &[(&str, &str)]| {
            let id = entries.iter().map(|&(key, value)| (key.into(), value.into())).collect();
            capacities.source(domain, &id).map(|(capacity, draw)| capacity.resource(draw, &id))
        };
        let web = |tenant| resource("edge", &[("tenant", tenant), ("kind", "web")]);
        assert_eq!(web("acme").as_deref(), Some("acme"));
        assert_eq!(web("other").as_deref(), Some("tenants/other"));
        assert_eq!(web("a/b%").as_deref(), Some("tenants/a%2Fb%25"));
        let long = ["x".repeat(2_000), "x".repeat(2_001), "%".repeat(90)];
        let long: Vec<_> = long
            .iter()
            .map(|tenant| resource("edge", &[("tenant", tenant), ("kind", "web")]).unwrap())
            .collect();
        for name in &long {
            assert!(name.starts_with("tenants/%sha256-") && name.len() <= 256, "{name}");
            assert_eq!(long.iter().filter(|other| *other == name).count(), 1, "{name}");
        }
        let longest = resource("edge", &[("tenant", &"x".repeat(248)), ("kind", "web")]);
        assert_eq!(longest.unwrap().len(), 256);
        assert_eq!(resource("edge", &[("tenant", "other")]), None);
        assert_eq!(resource("inner", &[("tenant", "other"), ("kind", "web")]), None);
        let tenants = capacities.iter().next().expect("a capacity");
        assert_eq!((tenants.per_second.as_f64(), tenants.burst), (1.0, 3));
    }
}
