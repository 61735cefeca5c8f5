use std::sync::Arc;

use super::shared::Shared;
use crate::error::ConfigError;
use crate::scheduler::SchedulerBuilder;

impl Shared {
    /// Changes the settings.
    pub(super) fn reconfigure(
        self: &Arc<Self>,
        builder: SchedulerBuilder,
    ) -> Result<(), ConfigError> {
        let mut state = self.lock();
        let now = self.now();
        let mut instructions = std::mem::take(&mut state.instructions);
        let changed = state.scheduler.reconfigure(now, builder, &mut instructions);
        let wakers = state.tell(instructions);
        self.let_go(state, wakers);
        changed
    }
}
