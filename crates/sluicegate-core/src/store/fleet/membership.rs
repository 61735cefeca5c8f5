use std::any::Any;
use std::fmt;

use super::Fleet;

/// This process as a member of a [`Fleet`], for as long as a source tells it of the others. Dropped, it leaves: the
/// process has no part from then on.
pub struct Membership {
    fleet: Fleet,
    source: Option<Box<dyn Any + Send + Sync>>,
}

impl Membership {
    /// For a source of your own: `source` ends it when it is dropped, which is before the fleet is left.
    pub fn new(fleet: Fleet, source: impl Send + Sync + 'static) -> Self {
        Self { fleet, source: Some(Box::new(source)) }
    }

    /// What part is left to this process, for a [`Share`](crate::store::Share).
    pub const fn fleet(&self) -> &Fleet {
        &self.fleet
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.source = None;
        self.fleet.leave();
    }
}

impl fmt::Debug for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Membership").field(&self.fleet).finish()
    }
}
