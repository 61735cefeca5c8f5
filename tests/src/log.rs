//! What a crate logs.

use std::fmt::{Debug, Write};
use std::sync::{Arc, LazyLock, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{DefaultGuard, set_default};
use tracing::{Dispatch, Event, Metadata, Subscriber};

/// A subscriber that keeps a line for each event. Clones share the lines.
///
/// A line is the level, the message and each field: `WARN something happened code="400"`.
#[derive(Debug, Clone)]
pub struct Log {
    target: &'static str,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Log {
    /// Keeps the events whose target begins like this.
    pub fn of(target: &'static str) -> Self {
        Self { target, lines: Arc::default() }
    }

    /// Keeps the events of this thread until what it returns is dropped.
    pub fn attach(&self) -> DefaultGuard {
        // Where only one subscriber was ever there, `tracing` asks that of the thread that comes to an event first whether
        // anybody wants it, and remembers the answer for all. That may be the thread of another test, which has none.
        static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(Log::of("none")));
        LazyLock::force(&SECOND);
        set_default(self.clone())
    }

    /// The lines since the last call.
    pub fn taken(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines.lock().expect("no panic"))
    }

    /// The lines so far that have this part.
    pub fn lines(&self, part: &str) -> Vec<String> {
        let lines = self.lines.lock().expect("no panic");
        lines.iter().filter(|line| line.contains(part)).cloned().collect()
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let written = match field.name() {
            "message" => write!(self.0, " {value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
        written.expect("a string takes everything");
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with(self.target)
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.lines.lock().expect("no panic").push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
