//! Small services behind each limiter, called directly: no sockets, and nothing in them waits.

pub mod actix;
pub mod axum;
pub mod policies;
pub mod throttle;
pub mod tower;

mod rivals;

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use sluicegate::Limit;
use tokio::runtime::{self, Runtime};

/// The distance between the addresses of two consecutive requests. It has no factor in common with a power of ten, so
/// all addresses are used.
const STRIDE: u32 = 38_197;

/// A service that answers requests from some addresses, one after the other.
pub struct App {
    /// Its name in a table.
    pub name: &'static str,
    answer: Box<dyn FnMut(SocketAddr) -> u16>,
    expected: u16,
    peers: u32,
    next: u32,
}

impl App {
    /// `answer` has a request from an address answered, and says the status.
    fn new(
        name: &'static str,
        budget: Budget,
        peers: u32,
        mut answer: impl FnMut(SocketAddr) -> u16 + 'static,
    ) -> Self {
        // From here on every address has been met, and those that are to be refused are.
        for number in 0..peers {
            answer(peer(number));
        }
        Self { name, answer: Box::new(answer), expected: budget.status(), peers, next: 0 }
    }

    /// Makes a request and has it answered.
    ///
    /// # Panics
    ///
    /// If the status is not the expected one.
    pub fn call(&mut self) {
        self.next = (self.next + STRIDE) % self.peers;
        let status = (self.answer)(peer(self.next));
        assert_eq!(status, self.expected, "{}", self.name);
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("name", &self.name).finish_non_exhaustive()
    }
}

fn peer(number: u32) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::from_bits(0x0a00_0000 + number), 50_123))
}

/// The result of a future of these services, which is ready at once.
fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("none of the services waits"),
    }
}

/// A runtime with a clock and one thread.
pub fn runtime() -> Runtime {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made")
}

/// How much each address may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budget {
    /// A burst so large that no request is refused, and a rate of one a second, so that nothing recovers. Each
    /// request finds and writes the row of its address.
    Plenty,
    /// One an hour: all requests but the first of each address are refused.
    Spent,
}

impl Budget {
    /// The parameters of the token bucket for all limiters that have one.
    pub fn limit(self) -> Limit {
        Limit::per(1, self.period()).burst(self.burst().into())
    }

    fn burst(self) -> u32 {
        match self {
            Self::Plenty => 1_000_000_000,
            Self::Spent => 1,
        }
    }

    /// The time in which one token comes back.
    fn period(self) -> Duration {
        match self {
            Self::Plenty => Duration::from_secs(1),
            Self::Spent => Duration::from_secs(3_600),
        }
    }

    fn status(self) -> u16 {
        match self {
            Self::Plenty => 200,
            Self::Spent => 429,
        }
    }
}
