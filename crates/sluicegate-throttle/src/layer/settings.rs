use std::sync::Arc;

use sluicegate_core::key::View;

use super::admission::{Admission, Place};
use super::announcing::Announcing;
use super::hold_until::HoldUntil;
use super::in_service::InService;
use super::passing::Passing;
use super::requests::Describe;
use super::respond::Respond;
use super::shared::Shared;
use super::started::Started;
use super::when_shed::WhenShed;
use crate::scheduler::{Shed, ShedReason};

/// The settings of a layer, shared by its services and their requests.
#[derive(Debug, Clone)]
pub(super) struct Settings<R> {
    pub(super) shared: Arc<Shared>,
    pub(super) requests: R,
    pub(super) respond: Respond,
    pub(super) when_shed: WhenShed,
    pub(super) hold_until: HoldUntil,
    pub(super) announces: bool,
}

/// What to do with a request that arrives at a layer. Adapters for frameworks only carry this out.
#[derive(Debug)]
pub(super) enum Turn {
    /// It is served now; uncounted if it is exempt, or was started by another layer of this throttle.
    Start(InService),
    /// It waits.
    Wait(Place),
    /// It is answered, and not served.
    Refuse(Shed),
}

impl<R> Settings<R> {
    pub(super) fn announcing(&self) -> Announcing {
        Announcing::new(&self.shared, self.announces)
    }

    /// Decides about a request.
    #[inline(always)]
    pub(super) fn admit<V: View>(&self, view: &V) -> Turn
    where
        R: Describe<V>,
    {
        if Passing::is_inside(&self.shared) || Started::is_in(view, &self.shared) {
            return Turn::Start(InService::UNCOUNTED);
        }
        let Some(described) = self.requests.describe(view, &self.shared.classes) else {
            return Turn::Start(InService::UNCOUNTED);
        };
        match self.shared.admit(&described) {
            Admission::Start(in_service) => Turn::Start(in_service),
            Admission::Wait(place) => Turn::Wait(place),
            Admission::Shed(shed) => self.instead(shed),
        }
    }

    /// What to do with a request whose wait is over.
    pub(super) fn told(&self, told: Result<InService, Shed>) -> Turn {
        match told {
            Ok(in_service) => Turn::Start(in_service),
            Err(shed) => self.instead(shed),
        }
    }

    /// What to do with a request that is shed.
    #[cold]
    fn instead(&self, shed: Shed) -> Turn {
        let is_awaited = shed.reason != ShedReason::Missed;
        match is_awaited.then(|| self.when_shed.permit()).flatten() {
            Some(permit) => Turn::Start(InService::less(&self.shared, permit)),
            None => Turn::Refuse(shed),
        }
    }
}
