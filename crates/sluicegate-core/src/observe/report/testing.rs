//! The events for the operator, for tests to read.

use std::fmt::{self, Debug, Write};
use std::sync::{Arc, LazyLock, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Metadata, Subscriber};

/// Keeps the events, one in each line.
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
pub(crate) fn logged(run: impl FnOnce()) -> Vec<String> {
    // Where only one subscriber was ever there, `tracing` asks that of the thread that comes to an event first whether anybody
    // wants it, and remembers the answer for all. That may be the thread of another test, which has none.
    static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(Log::default()));
    LazyLock::force(&SECOND);
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), run);
    let lines = log.0.lock().unwrap();
    lines.clone()
}
