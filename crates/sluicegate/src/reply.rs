use http::Response;
use sluicegate_core::Cost;
use sluicegate_core::adapter::{Refused, Reply};
use sluicegate_core::cost::RunningCost;
use sluicegate_core::cost::llm::TokenUsage;

/// What rules can see of an `http` response.
pub(crate) struct HttpReply<'a, B>(pub(crate) &'a Response<B>);

impl<B> HttpReply<'_, B> {
    /// The cost that the handler reports while it streams its answer.
    pub(crate) fn running(&self) -> Option<RunningCost> {
        self.0.extensions().get().cloned()
    }
}

impl<B> Reply for HttpReply<'_, B> {
    fn status(&self) -> u16 {
        self.0.status().as_u16()
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        self.0.headers().get(name).map(|value| value.as_bytes())
    }

    fn cost(&self) -> Option<u64> {
        let running = self.0.extensions().get().map(RunningCost::total);
        running.or_else(|| self.0.extensions().get().map(|Cost(cost)| *cost))
    }

    fn is_running(&self) -> bool {
        let extensions = self.0.extensions();
        extensions.get::<RunningCost>().is_some() || extensions.get::<TokenUsage>().is_some()
    }

    fn usage(&self) -> Option<TokenUsage> {
        self.0.extensions().get().cloned()
    }

    fn is_refusal(&self) -> bool {
        self.0.extensions().get::<Refused>().is_some()
    }
}
