//! What there is to share, and which buckets of Envoy draw on it.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Write as _};
use std::iter;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use sluicegate_lease::pool::MAX_NAME;
use sluicegate_lease::{Amount, ConfigError, Template, Templates};

/// The capacities of a file.
#[derive(Debug, Clone)]
pub struct Capacities {
    list: Vec<Capacity>,
    templates: Templates,
    /// Buckets without a `*`, by domain and id: the capacity, and which of its draws.
    exact: HashMap<(Box<str>, BucketId), (usize, usize)>,
    /// Those with one, by domain, in the order of the file.
    any: HashMap<Box<str>, Vec<(usize, usize)>>,
}

/// A capacity that clients share.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Capacity {
    /// The resource that clients of leases ask for.
    pub(crate) name: Box<str>,
    /// Requests a second.
    pub(crate) per_second: Amount,
    /// The most requests beyond that at once, of all clients together.
    pub(crate) burst: u64,
    /// How long a part lasts that is not renewed.
    pub(crate) lease: Duration,
    /// The buckets of Envoy that draw on it.
    pub(crate) draws: Vec<Draw>,
    /// The clients of leases that may draw on it, and how. If there are none, every client may.
    pub(crate) clients: Vec<Client>,
}

/// Clients of leases that may draw on a capacity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Client {
    /// Their name, or how their names begin, followed by `*`.
    pub(crate) name: Box<str>,
    /// The largest weight that each may ask for.
    pub(crate) weight: u32,
    /// The first band that they may ask in.
    pub(crate) band: u8,
}

/// Buckets of Envoy that draw on a capacity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Draw {
    /// The domain of Envoy's filter.
    pub(crate) domain: Box<str>,
    /// The id of the bucket. Each value of a key with `*` has the whole capacity to itself.
    pub(crate) bucket: BTreeMap<Box<str>, Value>,
    /// The part of each Envoy, in relation to the weights of other clients.
    pub(crate) weight: u32,
    /// The band of priority. Band 0 is served first.
    pub(crate) band: u8,
}

/// What the id of a bucket has for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// This value.
    Exactly(Box<str>),
    /// Any value.
    Any,
}

/// The id of a bucket: its keys and values.
pub type BucketId = BTreeMap<Box<str>, Box<str>>;

/// What a bucket draws on: the capacity, and how it draws on it.
pub(crate) type Source<'a> = (&'a Capacity, &'a Draw);

impl Capacities {
    /// Makes the set of these capacities.
    ///
    /// # Errors
    ///
    /// If one of them cannot be divided: its name is empty or given twice, or its lease is too short or too long.
    pub(crate) fn new(list: Vec<Capacity>) -> Result<Self, ConfigError> {
        let templates = list.iter().map(Capacity::template);
        // Clients get nothing of a resource that is not in the file.
        let nothing = Template::new("*", Amount::ZERO);
        let templates = Templates::new(templates.chain([nothing]))?;
        let (mut exact, mut any) = (HashMap::new(), HashMap::<_, Vec<_>>::new());
        for (at, capacity) in list.iter().enumerate() {
            for (draws, draw) in capacity.draws.iter().enumerate() {
                match draw.exact() {
                    Some(id) => {
                        exact.entry((draw.domain.clone(), id)).or_insert((at, draws));
                    }
                    None => any.entry(draw.domain.clone()).or_default().push((at, draws)),
                }
            }
        }
        Ok(Self { list, templates, exact, any })
    }

    /// The capacities in words: one line for each, and below it one for each of its buckets and clients.
    pub fn describe(&self) -> Vec<String> {
        self.iter().flat_map(Capacity::describe).collect()
    }

    /// The capacities, in the order of the file.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Capacity> {
        self.list.iter()
    }

    /// The templates of the pool.
    pub fn templates(&self) -> &Templates {
        &self.templates
    }

    /// The capacity that a resource of the pool is, or is a part of.
    pub(crate) fn of(&self, resource: &str) -> Option<&Capacity> {
        let name = resource.split('/').next().unwrap_or_default();
        self.list.iter().find(|capacity| *capacity.name == *name)
    }

    /// What a bucket draws on. Without a `*` goes before with one; then the first in the file wins.
    pub(crate) fn source(&self, domain: &str, bucket: &BucketId) -> Option<Source<'_>> {
        let exact = self.exact.get(&(domain.into(), bucket.clone()));
        let found = exact.or_else(|| {
            let mut any = self.any.get(domain)?.iter();
            any.find(|(at, draw)| self.list[*at].draws[*draw].takes(bucket))
        });
        found.map(|&(at, draw)| {
            let capacity = &self.list[at];
            (capacity, &capacity.draws[draw])
        })
    }
}

impl Client {
    /// Whether this is for a client of that name.
    pub(crate) fn is_for(&self, name: &str) -> bool {
        match self.name.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == &*self.name,
        }
    }
}

impl Capacity {
    /// Itself in words, and indented lines for the buckets and clients that draw on it.
    fn describe(&self) -> Vec<String> {
        let draws = self.draws.iter().map(|draw| format!("  {draw}"));
        let clients = self.clients.iter().map(|client| format!("  {client}"));
        iter::once(self.to_string()).chain(draws).chain(clients).collect()
    }

    /// The same in one line, without its name.
    pub(crate) fn terms(&self) -> String {
        let lines =
            self.describe().iter().map(|line| line.trim_start().to_owned()).collect::<Vec<_>>();
        let prefix = format!("{}: ", self.name);
        let words = lines.join("; ");
        words.strip_prefix(&prefix).map_or(words.clone(), str::to_owned)
    }

    fn template(&self) -> Template {
        let template = match self.draws.iter().all(Draw::is_exact) {
            true => Template::new(self.name.clone(), self.per_second),
            false => Template::new(format!("{}/*", self.name), self.per_second),
        };
        template.lease(self.lease).refresh((self.lease / 4).min(REFRESH))
    }
}

/// How often clients of leases ask again.
const REFRESH: Duration = Duration::from_secs(5);

/// `db: 1000 a second, bursts of 100, leases of 20s`
impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, per_second, burst, lease, draws: _, clients: _ } = self;
        write!(f, "{name}: {per_second} a second, bursts of {burst}, leases of {lease:?}")
    }
}

/// `domain edge, service=db, tenant=*, weight 2, band 0`
impl fmt::Display for Draw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "domain {}", self.domain)?;
        for (key, value) in &self.bucket {
            match value {
                Value::Exactly(value) => write!(f, ", {key}={value}")?,
                Value::Any => write!(f, ", {key}=*")?,
            }
        }
        write!(f, ", weight {}, band {}", self.weight, self.band)
    }
}

/// `clients batch-*, weight up to 2, band from 1`
impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "clients {}, weight up to {}, band from {}", self.name, self.weight, self.band)
    }
}

impl Draw {
    /// The only bucket that it takes, if it takes one only.
    fn exact(&self) -> Option<BucketId> {
        let entries = self.bucket.iter().map(|(key, value)| match value {
            Value::Exactly(value) => Some((key.clone(), value.clone())),
            Value::Any => None,
        });
        entries.collect()
    }

    /// Whether it takes one bucket only.
    pub(crate) fn is_exact(&self) -> bool {
        !self.bucket.values().any(|value| *value == Value::Any)
    }

    fn takes(&self, bucket: &BucketId) -> bool {
        self.bucket.len() == bucket.len()
            && self.bucket.iter().zip(bucket).all(|((key, wanted), (other, value))| {
                key == other
                    && match wanted {
                        Value::Exactly(wanted) => wanted == value,
                        Value::Any => true,
                    }
            })
    }
}

impl Capacity {
    /// The resource of the pool: the name of the capacity, and after it each value of a key with `*`.
    ///
    /// Where that is longer than a name may be, a digest follows the name of the capacity. Otherwise nothing could be
    /// assigned to the bucket.
    pub(crate) fn resource(&self, draw: &Draw, bucket: &BucketId) -> Box<str> {
        let mut name = String::from(&*self.name);
        for (key, value) in bucket {
            if draw.bucket.get(key) == Some(&Value::Any) {
                name.push('/');
                // So that no two buckets have one name.
                name.push_str(&value.replace('%', "%25").replace('/', "%2F"));
            }
        }
        if name.len() <= MAX_NAME {
            return name.into();
        }
        // Behind a `%`, values have two digits.
        let mut short = format!("{}/%sha256-", self.name);
        for byte in Sha256::digest(&name) {
            let _ = write!(short, "{byte:02x}");
        }
        short.into()
    }
}
