use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use sluicegate_core::clock::Clock;
use sluicegate_core::condition::InFlight;

use crate::absent::GeoDatabase;
use crate::request::Request;
use crate::words::one_of;

/// What a document can only name, from code: functions that say how much room there is and what a request
/// costs, and the clock that hours are told by.
///
/// ```
/// use sluicegate_config::Environment;
///
/// let environment = Environment::new()
///     .room("database", || true)
///     .cost("by_path", |request| if request.path().starts_with("/export") { 10 } else { 1 });
/// # let _ = environment;
/// ```
#[derive(Clone, Default)]
pub struct Environment {
    rooms: BTreeMap<String, RoomFn>,
    costs: BTreeMap<String, CostFn>,
    clock: Option<Clock>,
    load: Option<InFlight>,
    geoip: Option<GeoDatabase>,
    /// Whether whatever a document names is taken to be there: for checking it without the service.
    assuming: bool,
    /// Whether files that a document names are left alone.
    guessing: bool,
}

pub(crate) type RoomFn = Arc<dyn Fn() -> bool + Send + Sync>;
pub(crate) type CostFn = Arc<dyn Fn(&Request<'_>) -> u64 + Send + Sync>;

impl Environment {
    /// Provides nothing: enough for documents that name nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Provides the function that documents call `name` in `while = { room = ".." }`: whether there is room
    /// for more than the usual limits. It is asked for each request that it matters for, so it has to be
    /// quick.
    #[must_use]
    pub fn room(
        mut self,
        name: impl Into<String>,
        room: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        self.rooms.insert(name.into(), Arc::new(room));
        self
    }

    /// Provides the function that documents call `name` in `cost = { call = ".." }`: what a request costs.
    #[must_use]
    pub fn cost(
        mut self,
        name: impl Into<String>,
        cost: impl Fn(&Request<'_>) -> u64 + Send + Sync + 'static,
    ) -> Self {
        self.costs.insert(name.into(), Arc::new(cost));
        self
    }

    /// Tells the time of `hours` by `clock` instead of the machine's, for tests.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<Clock>) -> Self {
        self.clock = Some(clock.into());
        self
    }

    /// Provides the count of requests under way that `while = { in_flight = .. }` goes by: the same as
    /// `sluicegate`'s `InFlightLayer` counts into. Its own bound does not matter.
    #[must_use]
    pub fn in_flight(mut self, load: &InFlight) -> Self {
        self.load = Some(load.clone());
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

    /// Provides whatever a document may name, in some way or other.
    pub(crate) fn assuming() -> Self {
        Self { assuming: true, ..Self::default() }
    }

    #[cfg(any(feature = "toml", feature = "json"))]
    /// The same, and opens no file: for what can be said of a document without looking at anything else.
    pub(crate) fn guessing() -> Self {
        Self { guessing: true, ..Self::assuming() }
    }

    pub(crate) fn opens_files(&self) -> bool {
        !self.guessing
    }

    pub(crate) fn named_room(&self, name: &str) -> Result<RoomFn, String> {
        let assumed = || self.assuming.then(|| Arc::new(|| true) as RoomFn);
        let room = self.rooms.get(name).cloned().or_else(assumed);
        room.ok_or_else(|| not_provided("function for room", name, self.rooms.keys()))
    }

    pub(crate) fn named_cost(&self, name: &str) -> Result<CostFn, String> {
        let assumed = || self.assuming.then(|| Arc::new(|_: &Request<'_>| 1_u64) as CostFn);
        let cost = self.costs.get(name).cloned().or_else(assumed);
        cost.ok_or_else(|| not_provided("function for costs", name, self.costs.keys()))
    }

    pub(crate) fn load_below(&self, bound: u64) -> Result<InFlight, &'static str> {
        let bound = usize::try_from(bound).unwrap_or(usize::MAX);
        let assumed = self.assuming.then(|| InFlight::below(bound));
        let load = self.load.as_ref().map(|load| load.also_below(bound)).or(assumed);
        load.ok_or(
            "the service counts no requests under way, expected `Environment::in_flight` in its \
             code",
        )
    }

    pub(crate) fn own_geoip(&self) -> Option<&GeoDatabase> {
        self.geoip.as_ref()
    }

    pub(crate) fn own_clock(&self) -> Option<&Clock> {
        self.clock.as_ref()
    }
}

fn not_provided<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a String>) -> String {
    let expected = one_of(known).unwrap_or_else(|| "none: it provides none".to_owned());
    format!("the service provides no {what} called `{name}`, expected {expected}")
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("rooms", &self.rooms.keys())
            .field("costs", &self.costs.keys())
            .finish_non_exhaustive()
    }
}
