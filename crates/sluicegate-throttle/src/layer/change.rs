use std::sync::Arc;

use super::processors::Processors;
use super::shared::{Shared, State};
use super::turn;
use crate::error::ConfigError;
use crate::scheduler::SchedulerBuilder;

impl Shared {
    /// Changes the settings.
    pub(super) fn reconfigure(
        self: &Arc<Self>,
        builder: SchedulerBuilder,
        processors: Option<&Processors>,
    ) -> Result<(), ConfigError> {
        let mut state = self.lock();
        let now = self.now();
        let mut instructions = std::mem::take(&mut state.instructions);
        state.allow(turn::is_due(now));
        let changed = state.scheduler.reconfigure(now, builder, &mut instructions);
        if let (Ok(()), State { scheduler, processors: Some(known), .. }, Some(new)) =
            (&changed, &mut *state, processors)
        {
            known.change(new);
            scheduler.change_rate(now, known.cost_per_second(), &mut instructions);
        }
        let wakers = state.tell(instructions);
        self.let_go(state, wakers);
        changed
    }
}
