use super::Charge;
use crate::limit::{Decision, Outcome};

impl Outcome {
    /// The status of each limit of the charge that this is the outcome of.
    pub fn decision(&self, charge: &Charge) -> Decision {
        self.about(charge.debits().map(|debit| (&debit.limit, debit.cost)))
    }
}
