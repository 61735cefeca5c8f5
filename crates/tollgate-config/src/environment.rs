use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tollgate_core::Clock;

/// What a document can only name, from code: functions that say how much room there is and what a request
/// costs, and the clock that hours are told by.
///
/// ```
/// use tollgate_config::Environment;
///
/// let environment = Environment::new().room("database", || true);
/// # let _ = environment;
/// ```
#[derive(Clone, Default)]
pub struct Environment {
    rooms: BTreeMap<String, RoomFn>,
    clock: Option<Clock>,
}

pub(crate) type RoomFn = Arc<dyn Fn() -> bool + Send + Sync>;

impl Environment {
    /// Provides nothing: enough for documents that name nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Provides the function that documents call `name` in `while = { room = ".." }`: whether there is room
    /// for more than the usual limits. It is asked for each request that it matters for, so it has to be
    /// quick.
    #[must_use]
    pub fn room(
        mut self,
        name: impl Into<String>,
        room: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        self.rooms.insert(name.into(), Arc::new(room));
        self
    }

    /// Tells the time by `clock` instead of the machine's, for tests.
    #[must_use]
    pub fn clock(mut self, clock: &Clock) -> Self {
        self.clock = Some(clock.clone());
        self
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("rooms", &self.rooms.keys()).finish_non_exhaustive()
    }
}
