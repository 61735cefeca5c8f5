//! What all rooms share: the policies, the store, and how to ask it.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;
use sluicegate_config::envoy::service::Settings;
use sluicegate_core::adapter::{Gate, Observer};
use sluicegate_core::clock::Clock;
use sluicegate_core::key::Proxies;
use sluicegate_core::observe::Watch;
use sluicegate_core::store::{BoxStore, OnStoreError, Store};
use sluicegate_core::{Memory, Rejection};
use sluicegate_lease::Mastership;
use tokio::sync::Semaphore;

use crate::auth::Authorizer;
use crate::capacity::{Election, Masters, Shared};
use crate::fields::{Fields, NAMES};
use crate::health::Health;
use crate::policies::Policies;
use crate::policies::PoliciesError;
use crate::rls::{Counters, Statistics};
use crate::rules::{Enforcer, Rules};
use crate::status::{Capacity, Dashboard, Source, leased};

/// How long a decision may take: Envoy's filter waits 20 ms by default.
const DEADLINE: Duration = Duration::from_millis(15);

/// Most reports that are counted at a time in a store elsewhere, after the answers to their calls. Each takes about a kilobyte.
const COUNTING: u32 = 4_096;

/// Policies, and the store that counts. Clones are the same service.
#[derive(Debug, Clone)]
pub struct Service(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    policies: Policies,
    enforcer: Arc<Enforcer>,
    by_rules: Arc<Enforcer>,
    counting: Arc<Semaphore>,
    envoy: Settings,
    fields: Fields,
    field_names: [String; 3],
    resets: bool,
    metadata: bool,
    rules: Option<Rules>,
    authorizer: Option<Authorizer>,
    capacity: Option<Shared>,
    health: Arc<Health>,
    rls: Counters,
    statistics: Option<Statistics>,
    dashboard: Dashboard,
}

impl Service {
    /// Sets up a service with these policies.
    pub fn builder(policies: Policies) -> ServiceBuilder {
        ServiceBuilder {
            policies,
            store: None,
            source: Source::default(),
            watch: None,
            deadline: DEADLINE,
            on_store_error: OnStoreError::Refuse,
            envoy: Settings::default(),
            near: None,
            fields: Fields::default(),
            field_names: NAMES.map(str::to_owned),
            resets: false,
            metadata: false,
            proxies: Proxies::loopback(),
            election: Election::alone(false),
        }
    }

    /// The policies.
    pub fn policies(&self) -> &Policies {
        &self.0.policies
    }

    /// The store.
    pub(crate) fn store(&self) -> &BoxStore {
        &self.0.enforcer.store
    }

    /// The store's clock.
    pub(crate) fn clock(&self) -> &Clock {
        &self.0.enforcer.clock
    }

    /// Reports decisions to operators.
    pub(crate) fn observer(&self) -> &Observer {
        &self.0.enforcer.observer
    }

    /// How charges are decided, by core's admission: each limit refuses what exceeds it.
    pub(crate) fn enforcer(&self) -> &Arc<Enforcer> {
        &self.0.enforcer
    }

    /// The same, where rules say what becomes of requests that exceed their limits.
    pub(crate) fn by_rules(&self) -> &Arc<Enforcer> {
        &self.0.by_rules
    }

    /// Places for what is counted after an answer.
    pub(crate) fn counting(&self) -> &Arc<Semaphore> {
        &self.0.counting
    }

    /// Ready when all that came before is counted.
    pub(crate) async fn counted(&self) {
        // Nobody closes it.
        let _ = self.0.counting.acquire_many(COUNTING).await;
    }

    /// How long a decision may take.
    pub(crate) fn deadline(&self) -> Duration {
        self.0.enforcer.deadline.unwrap_or(DEADLINE)
    }

    /// How descriptors of Envoy are decided.
    pub(crate) fn envoy_settings(&self) -> Settings {
        self.0.envoy
    }

    /// Which header fields an answer asks Envoy to add.
    pub(crate) fn fields(&self) -> Fields {
        self.0.fields
    }

    /// The names of [`Fields::Three`].
    pub(crate) fn field_names(&self) -> &[String; 3] {
        &self.0.field_names
    }

    /// Whether clients of the HTTP API may forget what was spent.
    pub(crate) fn resets(&self) -> bool {
        self.0.resets
    }

    /// Whether an answer to Envoy says in its metadata what it is about.
    pub(crate) fn has_metadata(&self) -> bool {
        self.0.metadata
    }

    /// Decides about requests that proxies ask about, by the file of rules, if there is one.
    pub fn authorizer(&self) -> Option<&Authorizer> {
        self.0.authorizer.as_ref()
    }

    /// The capacity that clients share, if there is a file of it.
    pub fn capacity(&self) -> Option<&Shared> {
        self.0.capacity.as_ref()
    }

    /// The servers of which one divides the capacity, unless this is the only one.
    pub(crate) fn masters(&self) -> Option<&Masters> {
        self.capacity().and_then(Shared::masters)
    }

    /// The rules, if there is a file of them.
    pub(crate) fn rules(&self) -> Option<&Rules> {
        self.0.rules.as_ref()
    }

    /// What the dashboard shows.
    pub(crate) fn dashboard(&self) -> &Dashboard {
        &self.0.dashboard
    }

    /// Shows leased capacity on the dashboard. `source` is called for each status.
    pub fn show_capacity(&self, source: impl Fn() -> Capacity + Send + Sync + 'static) {
        self.0.dashboard.show_capacity(source);
    }

    /// What operators and load balancers are told.
    pub(crate) fn health(&self) -> &Arc<Health> {
        &self.0.health
    }

    pub(crate) fn rls_counters(&self) -> &Counters {
        &self.0.rls
    }

    /// Counts under the names of Envoy's service, if somebody wants them.
    pub(crate) fn statistics(&self) -> Option<&Statistics> {
        self.0.statistics.as_ref()
    }

    /// Whether the service is about to stop: load balancers should send requests elsewhere.
    pub(crate) fn is_stopping(&self) -> bool {
        self.0.health.is_stopping()
    }
}

/// Sets up a [`Service`].
#[derive(Debug)]
#[must_use = "`build` makes the service"]
pub struct ServiceBuilder {
    policies: Policies,
    store: Option<BoxStore>,
    source: Source,
    watch: Option<Watch>,
    deadline: Duration,
    on_store_error: OnStoreError,
    envoy: Settings,
    near: Option<f32>,
    fields: Fields,
    field_names: [String; 3],
    resets: bool,
    metadata: bool,
    proxies: Proxies,
    election: Election,
}

impl ServiceBuilder {
    /// Counts in this store. The default is the memory of the process, with room for 131,072 keys.
    pub fn store<S>(mut self, store: S) -> Self
    where
        S: Store<Future: Send + 'static> + Send + Sync + 'static,
    {
        self.source = Source::of(&store);
        self.store = Some(BoxStore::new(store));
        self
    }

    /// Notes the keys that are refused most.
    pub fn watch(mut self, watch: &Watch) -> Self {
        self.watch = Some(watch.clone());
        self
    }

    /// How long a decision may take. The default is 15 ms, which is less than the 20 ms that Envoy waits.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// What happens to a request when the store cannot decide. By default it is refused with an error, and Envoy does
    /// what its `failure_mode_deny` says. It is never answered as over the limit.
    pub fn on_store_error(mut self, on_store_error: OnStoreError) -> Self {
        self.on_store_error = on_store_error;
        self
    }

    /// Whether a limit that a request brings along is used. The default is yes, as in Envoy's service.
    pub fn overrides(mut self, allowed: bool) -> Self {
        self.envoy.overrides = allowed;
        self
    }

    /// Counts everything and refuses nothing, for Envoy and for everybody else: the global shadow mode of Envoy's service.
    pub fn shadow(mut self, shadow: bool) -> Self {
        self.envoy.shadow = shadow;
        self
    }

    /// Counts each descriptor of Envoy by itself, as Envoy's service does: a request that one limit refuses is charged by all
    /// others too, and hits beyond a limit are counted. The default is no: what one limit refuses is charged by none.
    ///
    /// The store counts without refusing, so it has to know all of a count: no store that takes parts of limits out of Redis.
    pub fn apart(mut self, apart: bool) -> Self {
        self.envoy.apart = apart;
        self
    }

    /// Takes every limit of Envoy's files for a quota, and so refuses a request only if all of its descriptors are over: the
    /// global quota mode of Envoy's service. It is for descriptors that are counted [apart](Self::apart).
    pub fn quota(mut self, quota: bool) -> Self {
        self.envoy.quota = quota;
        self
    }

    /// Also counts under the names of Envoy's rate limit service, such as `ratelimit_service_rate_limit_over_limit` with the labels
    /// `domain`, `key1` and `key2`. A descriptor is near its limit once more than this share of it is spent; the service's
    /// default is 0.8. At most 10,000 names are counted.
    pub fn statistics(mut self, near_limit_ratio: f32) -> Self {
        self.near = Some(near_limit_ratio);
        self
    }

    /// Which header fields an answer asks Envoy to add to responses. The default is none.
    pub fn fields(mut self, fields: Fields) -> Self {
        self.fields = fields;
        self
    }

    /// The names of [`Fields::Three`], instead of those that it has.
    pub fn field_names(mut self, limit: &str, remaining: &str, reset: &str) -> Self {
        self.field_names = [limit, remaining, reset].map(str::to_owned);
        self
    }

    /// Lets every client of the HTTP API forget what was spent on any key. The default is no.
    pub fn allow_resets(mut self, allowed: bool) -> Self {
        self.resets = allowed;
        self
    }

    /// Repeats the domain, the descriptors and the hits of each call of Envoy in the metadata of the answer, which other filters
    /// may read, as Envoy's service does if it is told to. The default is no: only answers about quotas have metadata. Answers in
    /// JSON never have any.
    pub fn metadata(mut self, metadata: bool) -> Self {
        self.metadata = metadata;
        self
    }

    /// The proxies that are believed when they ask about requests of their clients: see [`auth`](crate::auth). The default
    /// is this host alone.
    ///
    /// Every program at such an address can ask about any request in the name of any client, so name no more than the
    /// proxies.
    pub fn proxies(mut self, proxies: Proxies) -> Self {
        self.proxies = proxies;
        self
    }

    /// Says that no server has handed out the capacity before this one, or that the leases of the last one have ended.
    /// So there is nothing to learn, and clients get their parts at once. The default is no: for the length of a lease,
    /// clients get what they have shown to have, and new ones nothing.
    pub fn nothing_leased(mut self, nothing: bool) -> Self {
        self.election = Election::alone(nothing);
        self
    }

    /// Divides the capacity only while this server is the master among those that share the mastership, and has the same
    /// file. It takes the place of [`nothing_leased`](Self::nothing_leased).
    pub fn mastership(mut self, mastership: impl Mastership) -> Self {
        self.election = Election::among(mastership);
        self
    }

    /// Builds the service.
    ///
    /// # Errors
    ///
    /// If the store cannot keep a limit of the policies, two settings contradict each other, or a name cannot be that of a header field.
    pub fn build(self) -> Result<Service, PoliciesError> {
        let is_name = |name: &String| HeaderName::from_bytes(name.as_bytes()).is_ok();
        if let Some(name) = self.field_names.iter().find(|name| !is_name(name)) {
            return Err(PoliciesError::of(format!("`{name}` is no name of a header field")));
        }
        if self.envoy.quota && !self.envoy.apart {
            let what = "every limit is a quota: expected descriptors that are counted apart";
            return Err(PoliciesError::of(what.to_owned()));
        }
        let (store, source) = match self.store {
            Some(store) => (store, self.source),
            None => {
                let memory = Memory::new();
                (BoxStore::new(memory.clone()), Source::Memory(memory))
            }
        };
        self.policies.kept_by(&store)?;
        let rules = self.policies.live().map(|live| Rules::new(live, self.envoy.shadow));
        // One log line a second for all refusals at most; answers tell Envoy the rest.
        let mut enforcer = Enforcer::new(store, &self.policies);
        let rejection = if self.envoy.shadow { Rejection::shadow() } else { Rejection::block() };
        enforcer.gate = Gate::new(rejection).without_waiting();
        enforcer.on_store_error = self.on_store_error;
        enforcer.deadline = Some(self.deadline);
        enforcer.observer.watch = self.watch;
        let mut by_rules = enforcer.clone();
        if let Some(live) = self.policies.live() {
            by_rules.gate = Gate::new(live.rejection()).without_waiting();
        }
        let health = Arc::new(Health::new(enforcer.clock.clone()));
        let watch = enforcer.observer.watch.as_ref();
        let dashboard = Dashboard::new(&self.policies, source, watch, &health);
        let authorizer = rules.as_ref().map(|rules| {
            Authorizer::new(rules.clone(), self.proxies, dashboard.latency(), &enforcer)
        });
        let statistics = self.near.map(Statistics::new);
        if let Some(statistics) = statistics.clone() {
            // A management server sends its first policies later.
            if self.policies.domains().iter().next().is_some() {
                statistics.loaded(true);
            }
            self.policies.on_event(move |event| {
                if event.starts_with("policies reloaded") {
                    statistics.loaded(true);
                } else if event.starts_with("policies not reloaded") {
                    statistics.loaded(false);
                }
            });
        }
        let capacity = self.policies.capacities();
        let capacity = capacity.map(|live| Shared::new(live.clone(), self.election));
        if let Some(shared) = capacity.clone() {
            dashboard.show_capacity(move || leased(&shared));
        }
        Ok(Service(Arc::new(Inner {
            policies: self.policies,
            enforcer: Arc::new(enforcer),
            by_rules: Arc::new(by_rules),
            counting: Arc::new(Semaphore::new(COUNTING as usize)),
            envoy: self.envoy,
            fields: self.fields,
            field_names: self.field_names,
            resets: self.resets,
            metadata: self.metadata,
            rules,
            authorizer,
            capacity,
            health,
            rls: Counters::new(),
            statistics,
            dashboard,
        })))
    }
}
