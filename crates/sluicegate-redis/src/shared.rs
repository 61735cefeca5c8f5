//! What all clones of a store share.

use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::ManualClock;
use sluicegate_core::adapter::{Charge, Debit};

use crate::ask::Question;
use crate::background::Background;
use crate::backoff::Backoff;
use crate::counts::Counters;
use crate::places::{Claim, Places};
use crate::refusals::Refusals;
use crate::route::Route;
use crate::rows::{Naming, row_key};
use crate::runtime::Runtime;
use crate::script::{Asker, Call, Row};

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) naming: Naming,
    pub(crate) route: Route,
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) background: Arc<Background>,
    pub(crate) refusals: Refusals,
    pub(crate) places: Arc<Places>,
    /// How long a decision may take.
    pub(crate) deadline: Duration,
    /// How long what is in the background may take.
    pub(crate) grace: Duration,
    pub(crate) backoff: Backoff,
}

/// What a store is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    Take,
    Peek,
    Reset,
}

impl Shared {
    /// Who asks, for the places of this claim, if it is about any. In tests, the scripts go by their clock
    /// instead of the server's.
    pub(crate) fn asker(&self, claim: Option<&Claim>) -> Asker {
        Asker {
            now: self.runtime.clock.as_manual().map(ManualClock::now),
            holder: self.places.holder(),
            lease: self.places.lease(),
            turn: claim.map_or(0, Claim::turn),
        }
    }

    pub(crate) fn key(&self, debit: &Debit) -> Vec<u8> {
        row_key(&self.naming, &debit.key, &debit.limit)
    }

    /// The question whether `charge` is admitted, whose rows have these `keys`.
    pub(crate) fn question(
        self: &Arc<Self>,
        ask: Ask,
        charge: &Charge,
        keys: &[Vec<u8>],
        (slot, claim): (u16, Option<&Claim>),
    ) -> Question {
        let rows: Vec<_> =
            charge.debits().zip(keys).map(|(debit, key)| Row { key, debit }).collect();
        let (of, by) = (charge.keys(), self.asker(claim));
        let call = match ask {
            Ask::Take => Call::take(&rows, charge.patience(), of, by),
            Ask::Peek => Call::peek(&rows, charge.patience(), of, by),
            Ask::Reset => Call::reset(&rows, charge.patience(), of, by),
        };
        Question::new(self, slot, &call)
    }
}
