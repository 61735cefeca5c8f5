use crate::cost::account::Reply;
use crate::cost::llm::usage::{Count, Usage};

/// What a request is charged in the end, that was charged `charged` at first.
pub(crate) fn spent(reply: &dyn Reply, charged: u64, count: Count) -> u64 {
    match reply.usage() {
        Some(usage) if usage.is_final() => usage.usage().counted(count),
        Some(usage) => {
            let seen = usage.usage().counted(count);
            if seen == 0 && is_error(reply) { 0 } else { seen.max(charged) }
        }
        None if is_error(reply) => 0,
        None => reply.cost().unwrap_or(charged),
    }
}

/// Whether a response was charged what was reserved for it, or what was seen of it, because nobody has read what it used.
/// It was compressed, or did not say it, or its client has gone before.
pub(crate) fn is_unread(reply: &dyn Reply) -> bool {
    match reply.usage() {
        Some(usage) if usage.is_final() => false,
        Some(usage) => !is_error(reply) || usage.usage() != Usage::default(),
        None => !is_error(reply) && reply.cost().is_none(),
    }
}

/// No model has worked for such a response.
fn is_error(reply: &dyn Reply) -> bool {
    reply.status() >= 400
}
