use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use sluicegate_core::Claim;
use sluicegate_core::clock::Clock;
use sluicegate_core::condition::InFlight;
use sluicegate_core::key::{Text, View};

use crate::absent::GeoDatabase;
use crate::words::one_of;

/// What a document can name but code has to provide: functions for capacity and costs, the count of requests in
/// flight, a GeoIP database, and the clock for `hours`.
///
/// ```
/// use sluicegate_config::Environment;
///
/// let environment = Environment::new()
///     .has_capacity("database", || true)
///     .cost("by_path", |request| if request.path().starts_with("/export") { 10 } else { 1 });
/// # let _ = environment;
/// ```
#[derive(Clone, Default)]
pub struct Environment {
    capacities: BTreeMap<String, CapacityFn>,
    costs: BTreeMap<String, CostFn>,
    pub(crate) clock: Option<Clock>,
    load: Option<InFlight>,
    cpu: Option<CpuFn>,
    pub(crate) geoip: Option<GeoDatabase>,
    /// Why there is no throttle.
    pub(crate) no_throttle: Option<&'static str>,
    pub(crate) is_never_reloaded: bool,
    /// Whether everything that a document names is assumed to exist, for a check without the service.
    assuming: bool,
    /// Whether files that a document names are not opened.
    pub(crate) guessing: bool,
}

pub(crate) type CapacityFn = Arc<dyn Fn() -> bool + Send + Sync>;
type CpuFn = Arc<dyn Fn() -> f64 + Send + Sync>;
pub(crate) type CostFn = Arc<dyn Fn(&dyn Request) -> u64 + Send + Sync>;

impl Environment {
    /// Provides nothing. This is enough for documents that name nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Provides the function `name` for `while = { has_capacity = ".." }`. It returns whether there is capacity for
    /// more generous limits. It is called for each request that it matters for, so it has to be fast.
    #[must_use]
    pub fn has_capacity(
        mut self,
        name: impl Into<String>,
        has_capacity: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        self.capacities.insert(name.into(), Arc::new(has_capacity));
        self
    }

    /// Provides the function `name` for `cost = { call = ".." }`. It returns the cost of a request.
    #[must_use]
    pub fn cost(
        mut self,
        name: impl Into<String>,
        cost: impl Fn(&dyn Request) -> u64 + Send + Sync + 'static,
    ) -> Self {
        self.costs.insert(name.into(), Arc::new(cost));
        self
    }

    /// Refuses documents with a `[throttle]`, for a service without its layer, where it would do nothing. `why` is the error.
    #[must_use]
    pub fn without_throttle(mut self, why: &'static str) -> Self {
        self.no_throttle = Some(why);
        self
    }

    /// Says that the policies are never read again, and that no process before or after this one counts in the same store. Limits
    /// then carry over what was spent only between tiers and cases. Other rows of [`Memory`](sluicegate_core::Memory) take a fifth
    /// of the room. A document that is not valid otherwise is not valid here either.
    #[must_use]
    pub fn never_reloaded(mut self) -> Self {
        self.is_never_reloaded = true;
        self
    }

    /// Uses `clock` for `hours` and for a throttle instead of the system clock. For tests.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<Clock>) -> Self {
        self.clock = Some(clock.into());
        self
    }

    /// Provides the count of requests in flight for `while = { in_flight = .. }`: the one that the `InFlightLayer`
    /// of `sluicegate` updates. Its own bound does not matter.
    #[must_use]
    pub fn in_flight(mut self, load: &InFlight) -> Self {
        self.load = Some(load.clone());
        self
    }

    /// Uses what `share` returns for `while = { cpu = .. }`, instead of measuring: the share of the processors in use, from 0 to
    /// 1. For tests, and for programs whose time is virtual.
    #[must_use]
    pub fn cpu(mut self, share: impl Fn() -> f64 + Send + Sync + 'static) -> Self {
        self.cpu = Some(Arc::new(share));
        self
    }

    /// Provides the GeoIP database, instead of the file that documents name. The application keeps the
    /// database and reloads it itself; reading a document again does not.
    #[cfg(feature = "geoip")]
    #[must_use]
    pub fn geoip(mut self, database: &GeoDatabase) -> Self {
        self.geoip = Some(database.clone());
        self
    }

    /// Assumes that everything a document can name exists.
    pub(crate) fn assuming() -> Self {
        Self { assuming: true, ..Self::default() }
    }

    #[cfg(any(feature = "toml", feature = "json"))]
    /// Like [`assuming`](Self::assuming), and opens no files.
    pub(crate) fn guessing() -> Self {
        Self { guessing: true, ..Self::assuming() }
    }

    pub(crate) fn named_capacity(&self, name: &str) -> Result<CapacityFn, String> {
        let assumed = || self.assuming.then(|| Arc::new(|| true) as CapacityFn);
        let capacity = self.capacities.get(name).cloned().or_else(assumed);
        capacity.ok_or_else(|| not_provided("function for capacity", name, self.capacities.keys()))
    }

    pub(crate) fn named_cost(&self, name: &str) -> Result<CostFn, String> {
        let assumed = || self.assuming.then(|| Arc::new(|_: &dyn Request| 1_u64) as CostFn);
        let cost = self.costs.get(name).cloned().or_else(assumed);
        cost.ok_or_else(|| not_provided("function for costs", name, self.costs.keys()))
    }

    /// Whether less than a share of the processors is in use, if that is not measured.
    pub(crate) fn cpu_below(&self, below: f64) -> Option<CapacityFn> {
        let share = Arc::clone(self.cpu.as_ref()?);
        Some(Arc::new(move || share() < below))
    }

    pub(crate) fn load_below(&self, bound: u64) -> Result<InFlight, &'static str> {
        let bound = usize::try_from(bound).unwrap_or(usize::MAX);
        let assumed = self.assuming.then(|| InFlight::below(bound));
        let load = self.load.as_ref().map(|load| load.also_below(bound)).or(assumed);
        load.ok_or(
            "the service does not count requests in flight, expected `Environment::in_flight` in its \
             code",
        )
    }
}

fn not_provided<'a>(
    what: &str,
    name: &str,
    known: impl ExactSizeIterator<Item = &'a String>,
) -> String {
    let expected = one_of(known).unwrap_or_else(|| "no name: it provides none".to_owned());
    format!("the service provides no {what} called `{name}`, expected {expected}")
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("capacities", &self.capacities.keys())
            .field("costs", &self.costs.keys())
            .finish_non_exhaustive()
    }
}

/// A request, as a function of an [`Environment`](crate::Environment) sees it in every framework. Each [`View`] is one.
pub trait Request {
    /// The method, such as `GET`.
    fn method(&self) -> &str;

    /// The path as the client sent it, such as `/users/7`.
    fn path(&self) -> &str;

    /// The query without the `?`, not decoded.
    fn query(&self) -> Option<&str>;

    /// The host that the request is for, as the client sent it.
    fn host(&self) -> Option<&str>;

    /// The pattern of the matched route, such as `/users/{id}`.
    fn route(&self) -> Option<&str>;

    /// The address of the peer.
    fn peer(&self) -> Option<IpAddr>;

    /// The value of the header `name`, if it occurs exactly once.
    fn header<'s>(&'s self, name: &'s str) -> Option<&'s [u8]>;

    /// The claim `name` from the application's [`Claims`](sluicegate_core::key::Claims).
    fn claim(&self, name: &str) -> Option<String>;
}

impl<V: View> Request for V {
    fn method(&self) -> &str {
        View::method(self)
    }

    fn path(&self) -> &str {
        View::path(self)
    }

    fn query(&self) -> Option<&str> {
        View::query(self)
    }

    fn host(&self) -> Option<&str> {
        View::host(self)
    }

    fn route(&self) -> Option<&str> {
        View::route(self)
    }

    fn peer(&self) -> Option<IpAddr> {
        View::peer(self)
    }

    fn header<'s>(&'s self, name: &'s str) -> Option<&'s [u8]> {
        let mut lines = self.header_lines(name);
        lines.next().filter(|_| lines.next().is_none())
    }

    fn claim(&self, name: &str) -> Option<String> {
        Claim(name).read(self, str::to_owned).ok()
    }
}
