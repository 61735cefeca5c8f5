use std::sync::Arc;

use tokio::sync::{Notify, Semaphore};

use super::standing::Standing;
use crate::table::{Row, Worth};

/// What the client knows about a server, and the requests that wait for a turn.
#[derive(Debug, Default)]
pub(super) struct ServerRow {
    pub(super) standing: Standing,
    /// Requests that wait, and where they wait.
    pub(super) waiting: usize,
    line: Option<Arc<Line>>,
}

/// Where requests to one server wait: the first asks again and again, the others wait behind it.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) front: Semaphore,
    /// A response has come, or a request was given up.
    pub(super) news: Notify,
}

impl ServerRow {
    /// Joins the line.
    pub(super) fn join(&mut self) -> Arc<Line> {
        self.waiting += 1;
        let new = || Arc::new(Line { front: Semaphore::new(1), news: Notify::new() });
        self.line.get_or_insert_with(new).clone()
    }

    /// Leaves the line.
    pub(super) fn leave(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
        if self.waiting == 0 {
            self.line = None;
        }
    }

    /// Tells the first in the line that there is news.
    pub(super) fn tell(&self) {
        if let Some(line) = &self.line {
            line.news.notify_one();
        }
    }
}

/// The row that holds requests back for the shortest time is the least valuable.
impl Row for ServerRow {
    fn worth(&self, now: u64) -> Worth {
        match () {
            () if self.waiting > 0 => Worth::Keep,
            () if self.standing.is_idle(now) => Worth::Nothing,
            () => Worth::Something(self.standing.not_before()),
        }
    }
}
