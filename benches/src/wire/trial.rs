//! Servers that are compared: all of them run, and one at a time is busy.

use std::fmt;
use std::io;
use std::time::Duration;

use tokio::runtime::Runtime;

use super::client::{Asked, Client};
use super::cores::Cores;
use super::serve::Kind;
use super::server::Server;
use crate::{Figure, Turns, services};

/// Keeps a server of one thread busy, and its queue short.
const CONNECTIONS: usize = 16;

/// Turns that each server gets. Odd, so that the median is one of them.
const ROUNDS: usize = 61;

/// Thousands of requests, and still so short that a disturbance of the machine hits all alike.
const TURN: Duration = Duration::from_millis(100);

/// Runs before each turn without being timed: the caches of the server's core still hold the data of the turn before.
const WARM_UP: Duration = Duration::from_millis(20);

/// The measurements of each server, round by round.
#[derive(Debug)]
pub struct Trial {
    turns: Vec<Vec<Turn>>,
}

impl Trial {
    /// Starts the servers, lets them take turns, and ends them. `None` if the command line does not ask for the table
    /// with that title.
    ///
    /// # Errors
    ///
    /// If a server does not start, does not answer, or gives an unexpected answer.
    pub fn of(
        turns: &Turns,
        title: &str,
        cores: Option<Cores>,
        kinds: &[Kind],
    ) -> io::Result<Option<Self>> {
        if !turns.wants(title) {
            return Ok(None);
        }
        let runtime = services::runtime();
        let mut contenders = Vec::with_capacity(kinds.len());
        for kind in kinds {
            contenders.push(Contender::start(&runtime, *kind, cores)?);
        }

        let (rounds, warm_up, turn) = if turns.is_measuring() {
            (ROUNDS, WARM_UP, TURN)
        } else {
            (1, Duration::ZERO, Duration::ZERO)
        };
        let mut taken = vec![Vec::with_capacity(rounds); kinds.len()];
        for round in 0..rounds {
            // No server always follows the same one.
            for i in (0..kinds.len()).map(|i| (i + round) % kinds.len()) {
                taken[i].push(contenders[i].turn(&runtime, warm_up, turn)?);
            }
        }
        Ok(Some(Self { turns: taken }))
    }

    /// Requests that number `i` answered in a second.
    pub fn per_second(&self, i: usize) -> Figure {
        self.figure(i, |turn| turn.per_second)
    }

    /// The multiple of the rate of server number `base`, in the same round.
    pub fn ratio(&self, i: usize, base: usize) -> impl fmt::Display + use<> {
        let pairs = self.turns[i].iter().zip(&self.turns[base]);
        let ratios = pairs.map(|(turn, base)| turn.per_second / base.per_second);
        let Figure { median, low, high } = Figure::of(ratios.collect());
        format!("{median:.2} ({low:.2}–{high:.2})")
    }

    /// The median time of a request, in microseconds.
    pub fn median_latency(&self, i: usize) -> Figure {
        self.figure(i, |turn| turn.median)
    }

    /// The 99th percentile of the time of a request, in microseconds.
    pub fn p99(&self, i: usize) -> Figure {
        self.figure(i, |turn| turn.p99)
    }

    /// The time that a request takes on the server's core, in microseconds; `–` if the system does not report it.
    pub fn server_time(&self, i: usize) -> impl fmt::Display + use<> {
        let told = self.turns[i].iter().map(|turn| turn.on_core).collect::<Option<Vec<f64>>>();
        told.map_or_else(|| "–".to_owned(), |turns| Figure::of(turns).to_string())
    }

    /// How much of the time the server was running, in per cent: the less, the more it was the client
    /// that set the pace.
    pub fn busy(&self, i: usize) -> impl fmt::Display + use<> {
        let told = self.turns[i].iter().map(|turn| Some(turn.on_core? * turn.per_second / 1e4));
        let told = told.collect::<Option<Vec<f64>>>();
        told.map_or_else(|| "–".to_owned(), |turns| format!("{:.0}", Figure::of(turns).median))
    }

    fn figure(&self, i: usize, of: impl Fn(&Turn) -> f64) -> Figure {
        Figure::of(self.turns[i].iter().map(of).collect())
    }
}

struct Contender {
    server: Server,
    client: Client,
}

impl Contender {
    fn start(runtime: &Runtime, kind: Kind, cores: Option<Cores>) -> io::Result<Self> {
        let server = Server::start(&[&kind.argument()], cores)?;
        let connect = Client::connect(server.address, CONNECTIONS, kind.status());
        let client = runtime.block_on(connect)?;
        Ok(Self { server, client })
    }

    fn turn(&mut self, runtime: &Runtime, warm_up: Duration, time: Duration) -> io::Result<Turn> {
        runtime.block_on(self.client.ask(warm_up))?;
        let before = self.server.time_on_core();
        let asked = runtime.block_on(self.client.ask(time))?;
        let after = self.server.time_on_core();
        let on_core = after.zip(before).map(|(after, before)| after.saturating_sub(before));
        Ok(Turn::of(asked, on_core))
    }
}

/// The measurements of one turn.
#[derive(Debug, Clone, Copy)]
struct Turn {
    per_second: f64,
    /// Of the latencies, in microseconds.
    median: f64,
    p99: f64,
    /// Of the server, in microseconds a request.
    on_core: Option<f64>,
}

impl Turn {
    fn of(asked: Asked, on_core: Option<Duration>) -> Self {
        let Asked { took, mut latencies } = asked;
        latencies.sort_unstable();
        let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
        let at = |percent| micros(latencies[(latencies.len() - 1) * percent / 100]);
        let count = latencies.len() as f64;
        Self {
            per_second: count / took.as_secs_f64(),
            median: at(50),
            p99: at(99),
            on_core: on_core.map(|time| micros(time) / count),
        }
    }
}
