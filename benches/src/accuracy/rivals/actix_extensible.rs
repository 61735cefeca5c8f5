use actix_extensible_rate_limit::backend::memory::InMemoryBackend;
use actix_extensible_rate_limit::backend::{Backend, SimpleInput};

use super::paused::Paused;
use crate::accuracy::{Contestant, Promise, Rate};

/// A fixed window that begins with the first request.
pub(super) fn contestant(rate: Rate) -> Contestant {
    let mut paused = Paused::new();
    let backend = InMemoryBackend::builder().with_gc_interval(None).build();
    let name = "actix-extensible-rate-limit, fixed window";
    Contestant::at_once(name, Promise::windows(rate, true), move |at, _cost| {
        let input =
            SimpleInput { interval: rate.every(), max_requests: rate.count, key: "key".to_owned() };
        paused.at(at, async {
            let (decision, ..) =
                backend.request(input).await.unwrap_or_else(|never| match never {});
            decision.is_allowed()
        })
    })
}
