use std::fmt;
use std::sync::Arc;

use sluicegate_core::condition::{ChosenBy, Condition};
use sluicegate_core::key::{Missing, View};

use super::shared::Shared;

/// Holds while no request waits for a throttle: see [`Throttle::has_room`](super::Throttle::has_room).
#[derive(Clone)]
pub struct HasRoom(pub(super) Arc<Shared>);

impl HasRoom {
    /// Whether no request waits, for callers that have no request.
    pub fn has_capacity(&self) -> bool {
        self.0.has_capacity()
    }
}

impl<V: View> Condition<V> for HasRoom {
    fn holds(&self, _: &V) -> Result<bool, Missing> {
        Ok(self.has_capacity())
    }

    fn chosen_by(&self) -> ChosenBy {
        ChosenBy::Server
    }
}

impl fmt::Debug for HasRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HasRoom({})", self.has_capacity())
    }
}
