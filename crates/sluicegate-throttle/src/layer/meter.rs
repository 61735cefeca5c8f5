#[cfg(feature = "metrics")]
use std::sync::OnceLock;

#[cfg(feature = "metrics")]
use metrics::{Histogram, Unit, describe_histogram, histogram};

#[cfg(feature = "metrics")]
use crate::class::Class;
use crate::class::Classes;
use crate::scheduler::Running;

/// A histogram of waits by class. It is looked up once and kept, so install the recorder before the first request.
/// Without the feature `metrics` it is empty.
#[derive(Default)]
pub(super) struct Meter {
    #[cfg(feature = "metrics")]
    waits: OnceLock<Box<[Histogram]>>,
}

#[cfg_attr(
    not(feature = "metrics"),
    expect(
        unused_variables,
        clippy::unused_self,
        reason = "without the feature nothing is measured"
    )
)]
impl Meter {
    /// A request that waited is started.
    pub(super) fn waited(&self, throttle: &str, classes: &Classes, running: &Running) {
        #[cfg(feature = "metrics")]
        {
            let waits = self.waits.get_or_init(|| registered(throttle, classes));
            waits[running.class().rank()].record(running.waited() as f64 / 1e6);
        }
    }
}

#[cfg(feature = "metrics")]
fn registered(throttle: &str, classes: &Classes) -> Box<[Histogram]> {
    describe_histogram!(
        "sluicegate_throttle_wait_seconds",
        Unit::Seconds,
        "How long requests that were queued waited until they were started, by class."
    );
    let class = |rank| {
        let class = classes.name(Class::at(rank as u8)).to_owned();
        histogram!("sluicegate_throttle_wait_seconds", "throttle" => throttle.to_owned(), "class" => class)
    };
    (0..classes.len()).map(class).collect()
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meter")
    }
}
