//! What the operator is told of those who are not limited.

use std::fmt::{self, Debug, Write};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::*;

/// Keeps what it is told, a line each.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let written: fmt::Result = write!(self.0, " {field}={value:?}");
        written.expect("a string takes everything");
    }
}

/// The lines that `run` makes.
fn logged(run: impl FnOnce()) -> Vec<String> {
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), run);
    let lines = log.0.lock().unwrap();
    lines.clone()
}

#[test]
fn who_is_not_limited_is_said_in_the_log() {
    let made = logged(|| drop(tiers()));
    assert_eq!(
        made,
        ["INFO message=requests in this tier are not limited tiers=\"api\" tier=\"partner\""]
    );

    let tiers = tiers();
    assert_eq!(logged(|| tiers.lift("paid").unwrap()).len(), 1);
    assert_eq!(logged(|| tiers.lift("gold").unwrap_err().to_string().clear()).len(), 0);

    let rule = tiers.by_tier(Claim("plan")).by(Global);
    let served = |name| logged(|| drop(owes(&rule, &plan(name))));
    assert_eq!(served("partner"), ["DEBUG message=not limited tiers=\"api\" tier=\"partner\""]);
    assert_eq!(served("free").len(), 0);
}
