use sluicegate_core::observe::ShowKeys;

use super::meter::Meter;
#[cfg(feature = "tracing")]
use super::report;
use crate::class::Classes;
use crate::scheduler::Shed;

/// How the throttle reports to its operator.
#[derive(Debug)]
pub(super) struct Observing {
    pub(super) name: String,
    /// The names of the partitions.
    pub(super) partitions: Vec<String>,
    pub(super) show: ShowKeys,
    pub(super) meter: Meter,
}

#[cfg_attr(
    not(feature = "tracing"),
    expect(unused_variables, clippy::unused_self, reason = "without the feature nobody is told")
)]
impl Observing {
    /// A request is shed.
    pub(super) fn report(&self, classes: &Classes, shed: &Shed) {
        #[cfg(feature = "tracing")]
        report::shed(&self.name, classes, shed);
    }
}
