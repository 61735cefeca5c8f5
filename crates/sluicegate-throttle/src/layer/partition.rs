use sluicegate_core::condition::Condition;
use sluicegate_core::key::View;

/// A part of the work in flight. [`Throttle::partition`](super::Throttle::partition) returns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partition(pub(super) u8);

/// Says which partition a request belongs to: [`partition_when`] goes by conditions.
pub trait PartitionBy<V: View> {
    /// The partition of the request of `view`; `None` for no partition, which is guaranteed nothing.
    fn partition(&self, view: &V) -> Option<Partition>;
}

/// No partitions.
#[derive(Debug, Clone, Copy)]
pub struct NoPartition;

impl<V: View> PartitionBy<V> for NoPartition {
    fn partition(&self, _: &V) -> Option<Partition> {
        None
    }
}

impl<V: View> PartitionBy<V> for Partition {
    fn partition(&self, _: &V) -> Option<Partition> {
        Some(*self)
    }
}

/// Puts requests into `partition` if `condition` certainly holds. [`otherwise`](PartitionWhen::otherwise) sets the
/// partition of the others.
///
/// ```
/// use std::time::Duration;
/// use sluicegate::key::Path;
/// use sluicegate_throttle::Throttle;
/// use sluicegate_throttle::layer::partition_when;
///
/// // Checkout always gets 30 of the 100 places, and search 50. Idle places are lent to all.
/// let throttle = Throttle::builder()
///     .in_flight(100)
///     .partition("checkout", 0.3)
///     .partition("search", 0.5)
///     .queue(Duration::from_millis(200))
///     .build()?;
/// let (checkout, search) = (throttle.partition("checkout")?, throttle.partition("search")?);
/// let layer = throttle.layer().partition_by(
///     partition_when(Path.matches("/checkout/{*rest}"), checkout)
///         .otherwise(partition_when(Path.matches("/search"), search)),
/// );
/// # let _ = layer;
/// # Ok::<(), sluicegate_throttle::ConfigError>(())
/// ```
pub fn partition_when<K>(condition: K, partition: Partition) -> PartitionWhen<K, NoPartition> {
    PartitionWhen { condition, partition, otherwise: NoPartition }
}

/// A partition by a condition: see [`partition_when`].
#[derive(Debug, Clone)]
#[must_use]
pub struct PartitionWhen<K, O> {
    condition: K,
    partition: Partition,
    otherwise: O,
}

impl<K> PartitionWhen<K, NoPartition> {
    /// The partition of requests for which the condition does not hold: none by default.
    pub fn otherwise<O>(self, otherwise: O) -> PartitionWhen<K, O> {
        PartitionWhen { condition: self.condition, partition: self.partition, otherwise }
    }
}

impl<V: View, K: Condition<V>, O: PartitionBy<V>> PartitionBy<V> for PartitionWhen<K, O> {
    fn partition(&self, view: &V) -> Option<Partition> {
        if self.condition.surely_holds(view).unwrap_or(false) {
            return Some(self.partition);
        }
        self.otherwise.partition(view)
    }
}
