use tokio::time::Instant;

use crate::amount::Amount;
use crate::client::OnLoss;

/// What a client knows of its lease of one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseState {
    /// What the server has granted last.
    pub granted: Amount,
    /// When the grant ends; `None` before the first one.
    pub expires: Option<Instant>,
    /// What [`OnLoss::Safe`] uses without a lease.
    pub safe: Amount,
    /// What is used without a lease.
    pub on_loss: OnLoss,
}

/// Why a client may use what it may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// A lease.
    Lease,
    /// The lease has ended, and the client goes on as before: [`OnLoss::Keep`].
    Kept,
    /// There is no lease, and the client uses its safe capacity: [`OnLoss::Safe`].
    Safe,
    /// There is no lease, and the client uses nothing.
    Nothing,
}

impl LeaseState {
    pub(super) fn before_the_first_grant(on_loss: OnLoss, safe: Amount) -> Self {
        Self { granted: Amount::ZERO, expires: None, safe, on_loss }
    }

    /// What may be used at this moment.
    pub fn capacity_at(&self, now: Instant) -> Amount {
        match self.basis_at(now) {
            Basis::Lease | Basis::Kept => self.granted,
            Basis::Safe => self.safe,
            Basis::Nothing => Amount::ZERO,
        }
    }

    /// Why that may be used.
    pub fn basis_at(&self, now: Instant) -> Basis {
        match self.on_loss {
            _ if self.expires.is_some_and(|expires| now < expires) => Basis::Lease,
            OnLoss::Keep if self.expires.is_some() => Basis::Kept,
            OnLoss::Safe => Basis::Safe,
            OnLoss::Stop | OnLoss::Keep => Basis::Nothing,
        }
    }
}
