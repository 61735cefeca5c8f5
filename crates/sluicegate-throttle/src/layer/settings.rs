use std::sync::Arc;

use super::refusal::Respond;
use super::shared::Shared;

/// Until when a request counts as running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HoldUntil {
    /// Until the body of its response has ended.
    #[default]
    Body,
    /// Until the head of its response is there: for services whose responses stream for a long time.
    Head,
}

/// What a layer was told, for its services and the requests under way.
#[derive(Debug, Clone)]
pub(super) struct Settings<R> {
    pub(super) shared: Arc<Shared>,
    pub(super) requests: R,
    pub(super) respond: Respond,
    pub(super) hold_until: HoldUntil,
}
