use std::fmt;
use std::sync::Arc;

use sluicegate_core::condition::HasCapacity;

use super::builder::ThrottleBuilder;
use super::criticality::Partition;
use super::requests::Requests;
use super::shared::Shared;
use super::snapshot::Snapshot;
use super::throttle_layer::ThrottleLayer;
use crate::error::ConfigError;

/// Protects a service from overload. Clones, and all layers that it makes, share one queue and one capacity.
///
/// ```
/// use std::time::Duration;
/// use sluicegate_throttle::{Class, Throttle};
///
/// // At most 100 requests run at once. The queue holds what they do in a fifth of a second.
/// let throttle = Throttle::builder().in_flight(100).queue(Duration::from_millis(200)).build()?;
/// let layer = throttle.layer();
/// assert_eq!(throttle.snapshot().queued, 0);
/// # let _ = layer;
/// # Ok::<(), sluicegate_throttle::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct Throttle {
    pub(super) shared: Arc<Shared>,
}

impl Throttle {
    /// Settings of a throttle, to be changed.
    pub fn builder() -> ThrottleBuilder {
        ThrottleBuilder::new()
    }

    /// A layer that lets requests through as this throttle starts them: `.layer(throttle.layer())` in tower and axum,
    /// `.wrap(throttle.layer())` in actix-web.
    pub fn layer(&self) -> ThrottleLayer {
        let shared = &self.shared;
        let lowest = shared.classes.lowest();
        let requests = Requests::new(lowest, Arc::clone(&shared.hash), shared.shows_keys());
        ThrottleLayer::new(Arc::clone(shared), requests)
    }

    /// The partition with this name.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub fn partition(&self, name: &str) -> Result<Partition, ConfigError> {
        let known = self.shared.observing.partitions.iter().position(|known| known == name);
        // At most eight partitions.
        let partition = known.map(|at| Partition(at as u8));
        partition.ok_or_else(|| ConfigError::UnknownPartition(name.to_owned()))
    }

    /// What it is doing at present.
    pub fn snapshot(&self) -> Snapshot {
        self.shared.snapshot()
    }

    /// Changes settings while requests wait and run: the size of the capacity, the queue, weights, the shares of
    /// partitions, the order, CoDel. No request is lost, and learnt costs and an adaptive limit are kept. Requests for
    /// which the new capacity has room start at once.
    ///
    /// A queue that becomes smaller keeps its requests, and takes no others until there is room again. The name, the
    /// clock, [`first_cost`](ThrottleBuilder::first_cost), [`predicted_keys`](ThrottleBuilder::predicted_keys) and
    /// [`show_keys`](ThrottleBuilder::show_keys) stay as they were made.
    ///
    /// # Errors
    ///
    /// When the new settings cannot work, or have another kind of capacity, other classes or other partitions. Nothing
    /// changes then.
    ///
    /// ```
    /// use std::time::Duration;
    /// use sluicegate_throttle::Throttle;
    ///
    /// let settings = |places| Throttle::builder().in_flight(places).queue(Duration::from_millis(200));
    /// let throttle = settings(100).build()?;
    /// throttle.reconfigure(settings(150))?;
    /// assert_eq!(throttle.snapshot().limit, Some(150));
    /// # Ok::<(), sluicegate_throttle::ConfigError>(())
    /// ```
    pub fn reconfigure(&self, mut settings: ThrottleBuilder) -> Result<(), ConfigError> {
        let (scheduler, partitions) = settings.settle()?;
        let shared = &self.shared;
        if shared.unit != settings.unit {
            return Err(ConfigError::Fixed("kind of capacity"));
        }
        if shared.reported != settings.reported {
            return Err(ConfigError::Fixed("meaning of reported costs"));
        }
        if shared.classes != settings.classes {
            return Err(ConfigError::Fixed("list of classes"));
        }
        if shared.observing.partitions != partitions {
            return Err(ConfigError::Fixed("list of partitions"));
        }
        shared.reconfigure(scheduler, settings.processors.as_ref())
    }

    /// A condition for elastic limits: holds while no request waits.
    ///
    /// ```
    /// use std::time::Duration;
    /// use sluicegate::{Ip, Limit, when};
    /// use sluicegate_throttle::Throttle;
    ///
    /// let throttle = Throttle::builder().in_flight(10).queue(Duration::from_millis(200)).build()?;
    /// // Up to ten times as much while no request waits. Both limits have the same name and share one budget.
    /// let elastic = when(throttle.has_room(), Limit::per_minute(1_000).named("api"))
    ///     .otherwise(Limit::per_minute(100).named("api"))
    ///     .by(Ip::peer());
    /// # let _ = elastic;
    /// # Ok::<(), sluicegate_throttle::ConfigError>(())
    /// ```
    pub fn has_room(&self) -> HasCapacity<impl Fn() -> bool + Clone + Send + Sync + 'static> {
        let shared = Arc::clone(&self.shared);
        HasCapacity::from_fn(move || shared.has_capacity())
    }
}

impl fmt::Debug for Throttle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Throttle").field("snapshot", &self.snapshot()).finish()
    }
}
