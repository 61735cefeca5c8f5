use sluicegate_core::Decision;
use sluicegate_core::adapter::{Charge, Meter, Outcome};
use sluicegate_core::observe::Watch;
use sluicegate_core::store::StoreError;

/// Who is told what was decided, beside the one who asks.
#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    pub(super) meter: Meter,
    pub(super) watch: Option<Watch>,
}

impl Told {
    fn refused_or_admitted(&self, outcome: &Outcome, decision: &Decision, charge: &Charge) {
        if outcome.is_admitted() {
            return self.admitted(outcome, charge);
        }
        self.meter.refused(decision);
        if let Some(watch) = &self.watch {
            watch.saw(decision, charge);
        }
    }

    pub(super) fn admitted(&self, outcome: &Outcome, charge: &Charge) {
        if outcome.wait().is_zero() {
            self.meter.admitted(charge, outcome);
        } else {
            self.meter.waited(charge, outcome);
        }
    }
}

/// The decision, once everybody is told of it.
pub(super) fn decided(
    outcome: Result<Outcome, StoreError>,
    charge: &Charge,
    told: Option<&Told>,
) -> Result<Decision, StoreError> {
    match outcome {
        Ok(outcome) => {
            let decision = outcome.decision(charge);
            if let Some(told) = told {
                told.refused_or_admitted(&outcome, &decision, charge);
            }
            Ok(decision)
        }
        Err(error) => {
            if let Some(told) = told {
                told.meter.failed(&error);
            }
            Err(error)
        }
    }
}
