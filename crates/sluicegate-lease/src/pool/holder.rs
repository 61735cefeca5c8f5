use crate::amount::Amount;
use crate::demand::Demand;
use crate::pool::ask::Ask;
use crate::rules::{Rule, holds};

/// A client of a resource.
#[derive(Debug, Clone)]
pub(super) struct Holder {
    /// The newest request.
    pub(super) sequence: u64,
    pub(super) demands: Demands,
    /// The most that it may be using: what it reported, or what it was granted since.
    pub(super) held: Amount,
    /// When it has lost all of that.
    pub(super) expires: u64,
}

impl Holder {
    /// Whether a request with this number comes late or twice.
    pub(super) fn has_seen(&self, sequence: u64) -> bool {
        sequence <= self.sequence && holds(Rule::IgnoreStaleRequests)
    }
}

/// Nearly every client has one demand, which needs no allocation.
#[derive(Debug, Clone)]
pub(super) enum Demands {
    One(Demand),
    Several(Box<[Demand]>),
}

impl Demands {
    pub(super) fn of(ask: &Ask<'_>) -> Self {
        match ask.demands {
            [demand] => Self::One(*demand),
            several => Self::Several(several.into()),
        }
    }

    pub(super) fn as_slice(&self) -> &[Demand] {
        match self {
            Self::One(demand) => std::slice::from_ref(demand),
            Self::Several(demands) => demands,
        }
    }
}
