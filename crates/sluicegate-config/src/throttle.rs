use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use sluicegate_throttle::layer::{HoldUntil, Partition, Requests, ThrottleLayer, WhenShed};
use sluicegate_throttle::{ConfigError, Throttle};

use crate::compile::Policies;
use crate::compile::throttle::{self, Throttling, setting_of};
use crate::document::{self, Document, located};
use crate::source::{Diagnostic, DocumentPath};

pub use crate::compile::throttle::FileRequests;

/// The throttle of a policy file, `[throttle]`. Clones share one throttle.
///
/// [`Live::throttle`](crate::Live::throttle) makes it. A reload changes its settings. Queued and running requests and learnt
/// costs are kept.
///
/// ```
/// use sluicegate_config::{Environment, Live, Policies, read_toml};
///
/// let document = read_toml(
///     r#"
///     rules = []
///     [throttle]
///     capacity = { in_flight = 100 }
///     queue = "200 ms"
///     class = [{ name = "CRITICAL_PLUS", when = { path = "/checkout" } }]
///     exempt = { path = "/health" }
///     "#,
/// )?;
/// let live = Live::of(Policies::new(&document, &Environment::new())?);
/// let throttle = live.throttle().expect("the file has one");
/// let layer = throttle.layer();
/// assert_eq!(throttle.throttle().snapshot().limit, Some(100));
/// # let _ = layer;
/// # Ok::<(), sluicegate_config::PolicyError>(())
/// ```
#[derive(Debug, Clone)]
pub struct FileThrottle {
    throttle: Throttle,
    in_force: Arc<ArcSwap<throttle::Requests>>,
    /// The settings in force, locked while they are replaced.
    spec: Arc<Mutex<document::Throttle>>,
    /// What it reads when it is made does not change.
    layer: FileThrottleLayer,
}

/// A layer of the throttle of a file.
pub type FileThrottleLayer = ThrottleLayer<
    Requests<FileRequests, FileRequests, FileRequests, FileRequests, FileRequests, FileRequests>,
>;

impl FileThrottle {
    pub(crate) fn new(throttling: &Throttling) -> Result<Self, ConfigError> {
        let throttle = throttling.builder().build()?;
        let partitions: Result<Arc<[Partition]>, _> =
            throttling.partitions().map(|name| throttle.partition(name)).collect();
        let in_force = Arc::new(ArcSwap::from_pointee(throttling.requests.clone()));
        let requests = FileRequests::new(&in_force, partitions?);
        let spec = &throttling.spec;
        let layer = throttle
            .layer()
            .criticality(requests.clone())
            .predict_by(requests.clone())
            .fair_by(requests.fair())
            .deadline(requests.clone())
            .exempt(requests.clone())
            .partition_by(requests)
            .when_shed(when_shed(spec))
            .hold_until(match spec.hold_until.unwrap_or_default() {
                document::HoldUntil::Head => HoldUntil::Head,
                document::HoldUntil::End => HoldUntil::Body,
            });
        let layer = if spec.announce { layer.announce() } else { layer };
        let spec = Arc::new(Mutex::new(spec.clone()));
        Ok(Self { throttle, in_force, spec, layer })
    }

    /// The throttle, for its snapshot and its metrics.
    pub const fn throttle(&self) -> &Throttle {
        &self.throttle
    }

    /// A layer that lets requests through as the throttle starts them, and reads them as the file in force says.
    pub fn layer(&self) -> FileThrottleLayer {
        self.layer.clone()
    }

    /// Changes the settings.
    pub(crate) fn change(&self, new: &Throttling) -> Result<(), ConfigError> {
        let mut spec = self.spec.lock().unwrap_or_else(PoisonError::into_inner);
        if *spec != new.spec {
            self.throttle.reconfigure(new.builder())?;
            *spec = new.spec.clone();
        }
        // What is read from requests depends on other parts of the document too, such as its proxies and its time zone.
        self.in_force.store(Arc::new(new.requests.clone()));
        Ok(())
    }

    /// Checks whether the settings can change.
    fn check(&self, new: &Throttling) -> Result<(), ConfigError> {
        self.throttle.check(new.builder())
    }
}

fn when_shed(spec: &document::Throttle) -> WhenShed {
    match &spec.when_shed {
        None | Some(document::WhenShed::Block) => WhenShed::refuse(),
        Some(document::WhenShed::Redirect(to)) => {
            let redirect = WhenShed::redirect(&to.redirect);
            to.status.map_or(redirect.clone(), |status| redirect.status(status))
        }
        Some(document::WhenShed::Degrade(document::Degrade { degrade })) => {
            WhenShed::degrade(usize::try_from(*degrade).unwrap_or(usize::MAX))
        }
    }
}

/// The throttle of a file, once a service has asked for it. The service has no layer then if the file had no throttle.
#[derive(Debug, Default)]
pub(crate) struct ThrottleOnce(Mutex<Option<Option<FileThrottle>>>);

impl ThrottleOnce {
    pub(crate) fn of(&self, policies: &Policies) -> Option<FileThrottle> {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The settings were checked when the policies were compiled.
        let make = || policies.throttling().and_then(|spec| FileThrottle::new(spec).ok());
        asked.get_or_insert_with(make).clone()
    }

    /// Checks whether the service can take up the settings in `policies`. An error is located in `document`.
    pub(crate) fn check(
        &self,
        document: Option<&Document>,
        policies: &Policies,
    ) -> Result<(), Diagnostic> {
        self.apply(document, policies, FileThrottle::check)
    }

    /// Applies the settings in `policies` to the throttle, if one has been made. An error is located in `document`.
    pub(crate) fn change(
        &self,
        document: Option<&Document>,
        policies: &Policies,
    ) -> Result<(), Diagnostic> {
        self.apply(document, policies, FileThrottle::change)
    }

    fn apply(
        &self,
        document: Option<&Document>,
        policies: &Policies,
        apply: fn(&FileThrottle, &Throttling) -> Result<(), ConfigError>,
    ) -> Result<(), Diagnostic> {
        let asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let path = DocumentPath::Root.name("throttle");
        let problem =
            |path: &DocumentPath<'_>, message: &str| Err(located(document, path, message));
        match (&*asked, policies.throttling()) {
            (None, _) | (Some(None), None) => Ok(()),
            (Some(None), Some(_)) => problem(&path, ADDED),
            (Some(Some(_)), None) => problem(&path, REMOVED),
            (Some(Some(throttle)), Some(new)) => apply(throttle, new)
                .or_else(|error| problem(&path.name(setting_of(&error)), &error.to_string())),
        }
    }
}

const ADDED: &str =
    "the service runs without a throttle, and cannot begin to use one: start it anew";

const REMOVED: &str = "the throttle is in use, and cannot be removed while the service runs";
