use std::sync::Arc;

use super::announced::Announced;
use super::shared::{Ended, Shared};
use crate::departure::Stage;
use crate::table::RowKey;

/// A request on its way to the server. Dropped before it has ended, its caller has given it up.
#[derive(Debug)]
pub(super) struct Flight {
    shared: Arc<Shared>,
    /// Keys are long, and futures are moved.
    key: RowKey,
    /// When it left; `None` while a layer further in holds it back, and when it has ended.
    sent: Option<u64>,
}

impl Flight {
    pub(super) fn new(shared: Arc<Shared>, key: RowKey, now: u64, stage: Stage) -> Self {
        let sent = (stage != Stage::Held).then_some(now);
        Self { shared, key, sent }
    }

    /// Notes what the layers further in say.
    pub(super) fn is_at(&mut self, stage: Stage) {
        match stage {
            Stage::Held => self.sent = None,
            Stage::Silent | Stage::Left => {
                self.sent.get_or_insert_with(|| self.shared.clock.now());
            }
        }
    }

    /// Notes how it ended.
    pub(super) fn ended(&mut self, ended: Ended, announced: Option<Announced>) {
        let sent = self.sent.take().unwrap_or_else(|| self.shared.clock.now());
        self.shared.ended(self.key, sent, ended, announced);
    }

    /// Notes that it was not sent.
    pub(super) const fn was_held_back(&mut self) {
        self.sent = None;
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if let Some(sent) = self.sent.take() {
            self.shared.given_up(self.key, sent);
        }
    }
}
