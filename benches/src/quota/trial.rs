//! Servers that are compared: all of them run, and one at a time is busy.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use super::{Kind, requests};
use crate::load::{Load, Requests};
use crate::wire::{Cores, Server};
use crate::{Figure, Turns};

/// Turns that each server gets. Odd, so that the median is one of them.
const ROUNDS: usize = 21;

/// Tens of thousands of requests, and still so short that a disturbance of the machine hits all alike.
const TURN: Duration = Duration::from_millis(150);

/// Runs before each turn without being timed: the caches of the server's core still hold the data of the turn before.
const WARM_UP: Duration = Duration::from_millis(30);

/// A rate is kept for so long in one turn.
const PACED: Duration = Duration::from_millis(400);

/// The turns at half load.
const PACED_ROUNDS: usize = 7;

/// As many as a proxy with four threads opens.
const GRPC_CONNECTIONS: usize = 4;

/// Calls under way on each of them.
const GRPC_IN_FLIGHT: usize = 16;

/// Connections of HTTP/1, with one request under way on each.
const HTTP_CONNECTIONS: usize = 16;

/// At half load, this number may wait for an answer on a connection before the client waits too.
const WAITING: usize = 200;

/// The measurements of each server, round by round.
#[derive(Debug)]
pub struct Trial {
    turns: Vec<Vec<Turn>>,
    paced: Vec<Vec<Latency>>,
    asked: Vec<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Turn {
    per_second: f64,
    /// Of the server, in microseconds a request.
    on_core: Option<f64>,
}

/// In microseconds.
#[derive(Debug, Clone, Copy)]
struct Latency {
    median: f64,
    p99: f64,
}

/// What some servers need.
#[derive(Debug, Clone, Default)]
pub struct Needs {
    /// The URL of a Redis.
    pub redis: String,
    /// The path of throttlecrab-server.
    pub throttlecrab: String,
}

struct Contender {
    server: Server,
    load: Load,
    requests: Requests,
    asked: u64,
}

impl Trial {
    /// Starts the servers, lets them take turns, and ends them.
    ///
    /// # Errors
    ///
    /// If a server does not start, does not answer, or gives an unexpected answer.
    pub fn of(
        turns: &Turns,
        cores: Option<Cores>,
        kinds: &[Kind],
        needs: &Needs,
    ) -> Result<Self, Box<dyn Error>> {
        let start = |kind: &Kind| Contender::start(*kind, cores, needs);
        let mut contenders = kinds.iter().map(start).collect::<Result<Vec<_>, _>>()?;
        let (rounds, paced_rounds, warm_up, time, paced_time) = match turns.is_measuring() {
            true => (ROUNDS, PACED_ROUNDS, WARM_UP, TURN, PACED),
            false => (1, 1, Duration::ZERO, Duration::from_millis(1), Duration::from_millis(10)),
        };
        let mut trial = Self {
            turns: vec![Vec::new(); kinds.len()],
            paced: vec![Vec::new(); kinds.len()],
            asked: Vec::new(),
        };
        for round in 0..rounds {
            // No server always follows the same one.
            for i in (0..kinds.len()).map(|i| (i + round) % kinds.len()) {
                trial.turns[i].push(contenders[i].turn(warm_up, time)?);
            }
        }
        for round in 0..paced_rounds {
            for i in (0..kinds.len()).map(|i| (i + round) % kinds.len()) {
                let half = trial.per_second(i).median / 2.0;
                trial.paced[i].push(contenders[i].at(half, paced_time)?);
            }
        }
        trial.asked = contenders.iter().map(|contender| contender.asked).collect();
        Ok(trial)
    }

    /// How many requests server number `i` has answered, also those that were not timed.
    pub fn asked(&self, i: usize) -> u64 {
        self.asked[i]
    }

    /// Right answers of server number `i` in a second.
    pub fn per_second(&self, i: usize) -> Figure {
        Figure::of(self.turns[i].iter().map(|turn| turn.per_second).collect())
    }

    /// The multiple of the rate of server number `base`, in the same round.
    pub fn ratio(&self, i: usize, base: usize) -> impl fmt::Display + use<> {
        let pairs = self.turns[i].iter().zip(&self.turns[base]);
        let ratios = pairs.map(|(turn, base)| turn.per_second / base.per_second);
        let Figure { median, low, high } = Figure::of(ratios.collect());
        format!("{median:.2} ({low:.2}–{high:.2})")
    }

    /// The time that a request takes on the server's core, in microseconds; `–` if the system does not report it, or reports
    /// none because the server is a process of another one.
    pub fn server_time(&self, i: usize) -> impl fmt::Display + use<> {
        let told = self.turns[i].iter().map(|turn| turn.on_core).collect::<Option<Vec<f64>>>();
        let told = told.filter(|turns| turns.iter().any(|time| *time > 0.05));
        told.map_or_else(|| "–".to_owned(), |turns| Figure::of(turns).to_string())
    }

    /// The median time of a request at half of the server's own rate, in microseconds.
    pub fn median_latency(&self, i: usize) -> Figure {
        Figure::of(self.paced[i].iter().map(|latency| latency.median).collect())
    }

    /// The 99th percentile of that time, in microseconds.
    pub fn p99(&self, i: usize) -> Figure {
        Figure::of(self.paced[i].iter().map(|latency| latency.p99).collect())
    }
}

impl Contender {
    fn start(kind: Kind, cores: Option<Cores>, needs: &Needs) -> Result<Self, Box<dyn Error>> {
        let need = match kind {
            Kind::SluicegateRedis | Kind::LikeRedis => &needs.redis,
            Kind::Throttlecrab => &needs.throttlecrab,
            _ => "",
        };
        let server = Server::start(&[&kind.argument(), need], cores)?;
        let requests = requests(kind);
        let (connections, in_flight) = match requests {
            Requests::Grpc { .. } => (GRPC_CONNECTIONS, GRPC_IN_FLIGHT),
            Requests::Http { .. } => (HTTP_CONNECTIONS, 1),
        };
        let load = Load::connect(server.address(), &requests, connections, in_flight)?;
        Ok(Self { server, load, requests, asked: 0 })
    }

    fn turn(&mut self, warm_up: Duration, time: Duration) -> Result<Turn, Box<dyn Error>> {
        self.asked += self.load.flood(warm_up)?.count;
        let before = self.server.time_on_core();
        let asked = self.load.flood(time)?;
        let after = self.server.time_on_core();
        let on_core = after.zip(before).map(|(after, before)| after.saturating_sub(before));
        self.asked += asked.count;
        let count = asked.count as f64;
        Ok(Turn {
            per_second: count / asked.took.as_secs_f64(),
            on_core: on_core.map(|time| time.as_nanos() as f64 / 1e3 / count),
        })
    }

    fn at(&mut self, rate: f64, time: Duration) -> Result<Latency, Box<dyn Error>> {
        let (connections, waiting) = match self.requests {
            Requests::Grpc { .. } => (GRPC_CONNECTIONS, WAITING),
            Requests::Http { .. } => (HTTP_CONNECTIONS, 1),
        };
        // New ones, because servers close connections on which nothing is said.
        let mut paced = Load::connect(self.server.address(), &self.requests, connections, waiting)?;
        paced.once()?;
        self.asked += connections as u64;
        let asked = paced.pace(rate, time)?;
        self.asked += asked.count;
        let micros = |one_in| asked.latencies.all_but_one_in(one_in) as f64 / 1e3;
        Ok(Latency { median: micros(2), p99: micros(100) })
    }
}
