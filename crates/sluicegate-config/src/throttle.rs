use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use sluicegate_throttle::layer::{HoldUntil, Partition, Requests, ThrottleLayer, WhenShed};
use sluicegate_throttle::{ConfigError, Throttle};

pub use crate::compile::throttle::FileRequests;
use crate::compile::throttle::{self, Throttling};
use crate::document;

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
    requests: FileRequests,
    in_force: Arc<ArcSwap<throttle::Requests>>,
    /// The settings in force, locked while they are replaced.
    said: Arc<Mutex<document::Throttle>>,
    once: Once,
}

/// What a layer reads when it is made.
#[derive(Debug, Clone)]
struct Once {
    when_shed: WhenShed,
    hold_until: HoldUntil,
    announces: bool,
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
        let said = &throttling.said;
        let once = Once {
            when_shed: when_shed(said),
            hold_until: match said.hold_until.unwrap_or_default() {
                document::HoldUntil::Head => HoldUntil::Head,
                document::HoldUntil::End => HoldUntil::Body,
            },
            announces: said.announce,
        };
        let said = Arc::new(Mutex::new(said.clone()));
        Ok(Self { throttle, requests, in_force, said, once })
    }

    /// The throttle, for its snapshot and its metrics.
    pub const fn throttle(&self) -> &Throttle {
        &self.throttle
    }

    /// A layer that lets requests through as the throttle starts them, and reads them as the file in force says.
    pub fn layer(&self) -> FileThrottleLayer {
        let requests = &self.requests;
        let layer = self
            .throttle
            .layer()
            .criticality(requests.clone())
            .predict_by(requests.clone())
            .fair_by(requests.fair())
            .deadline(requests.clone())
            .exempt(requests.clone())
            .partition_by(requests.clone())
            .when_shed(self.once.when_shed.clone())
            .hold_until(self.once.hold_until);
        if self.once.announces { layer.announce() } else { layer }
    }

    /// Changes the settings.
    pub(crate) fn change(&self, new: &Throttling) -> Result<(), ConfigError> {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if *said == new.said {
            return Ok(());
        }
        self.throttle.reconfigure(new.builder())?;
        self.in_force.store(Arc::new(new.requests.clone()));
        *said = new.said.clone();
        Ok(())
    }
}

fn when_shed(said: &document::Throttle) -> WhenShed {
    match &said.when_shed {
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
