use super::QUEUED;
use super::server::{Act, Contender, End, Job, Request};

/// A first-in, first-out queue in front of the core, of any length or bounded in the number of requests. The server does
/// not notice that a client has gone.
#[derive(Debug)]
pub struct Fifo {
    bound: usize,
    inside: usize,
}

impl Fifo {
    /// Of any length.
    pub const fn unbounded() -> Self {
        Self { bound: usize::MAX, inside: 0 }
    }

    /// Of [`QUEUED`] requests.
    pub const fn bounded() -> Self {
        Self { bound: QUEUED, inside: 0 }
    }
}

impl Contender for Fifo {
    fn arrive(&mut self, _: u64, job: Job, _: &Request, acts: &mut Vec<Act>) {
        if self.inside < self.bound {
            self.inside += 1;
            acts.push(Act::Start(job));
        }
    }

    fn done(&mut self, _: u64, _: Job, _: &Request, _: End, _: &mut Vec<Act>) {
        self.inside -= 1;
    }

    fn leave(&mut self, _: u64, _: Job, _: &mut Vec<Act>) -> bool {
        false
    }
}
