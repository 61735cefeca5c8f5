//! Contenders that take turns.

use std::fmt;
use std::time::Duration;

use tokio::runtime::Runtime;

use super::Remote;
use super::server::{Redis, time_on_core};
use super::traffic::{self, Asked, Keys};
use crate::{Figure, Turns};

/// Thousands of decisions, and still so short that a disturbance of the machine hits all alike.
const TURN: Duration = Duration::from_millis(60);

/// Runs before each turn without being timed: connections wake up, and caches are filled.
const WARM_UP: Duration = Duration::from_millis(10);

/// A contender.
pub struct Contender<'a> {
    name: String,
    prime: Box<dyn Fn(&Keys) + 'a>,
    turn: Box<AskFor<'a>>,
}

/// Makes requests with these keys, with this many in flight, for this long.
type AskFor<'a> = dyn Fn(&Keys, usize, Duration) -> Asked + 'a;

impl<'a> Contender<'a> {
    /// `admits` is the expected answer of every request.
    pub fn new<R: Remote>(name: &str, runtime: &'a Runtime, remote: R, admits: bool) -> Self {
        let name = name.to_owned();
        let first = remote.clone();
        let prime = move |keys: &Keys| runtime.block_on(traffic::prime(&first, keys));
        let turn = move |keys: &Keys, in_flight: usize, time| {
            let asked = runtime.block_on(traffic::ask(&remote, keys, in_flight, time));
            let expected = if admits { asked.count } else { 0 };
            assert_eq!(asked.admitted, expected, "not decided as it should be");
            asked
        };
        Self { name, prime: Box::new(prime), turn: Box::new(turn) }
    }

    /// Its name in a table.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for Contender<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contender").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The measurements of each contender, for each number of requests in flight, round by round.
#[derive(Debug)]
pub struct Trial {
    turns: Vec<Vec<Vec<Turn>>>,
}

impl Trial {
    /// Lets them take turns.
    pub fn of(
        turns: &Turns,
        server: &Redis,
        contenders: &[Contender<'_>],
        keys: usize,
        in_flight: &[usize],
    ) -> Self {
        let keys = Keys::new(keys);
        let (rounds, warm_up, time) = match (turns.is_measuring(), turns.is_full()) {
            (false, _) => (1, Duration::ZERO, Duration::ZERO),
            (_, false) => (9, WARM_UP, TURN),
            (_, true) => (61, WARM_UP, TURN),
        };
        contenders.iter().for_each(|contender| (contender.prime)(&keys));
        let mut taken = vec![vec![Vec::with_capacity(rounds); in_flight.len()]; contenders.len()];
        for round in 0..rounds {
            for (level, in_flight) in in_flight.iter().enumerate() {
                // No contender always follows the same one.
                for i in (0..contenders.len()).map(|i| (i + round) % contenders.len()) {
                    let turn = |time| (contenders[i].turn)(&keys, *in_flight, time);
                    turn(warm_up);
                    taken[i][level].push(Turn::of(server, || turn(time)));
                }
            }
        }
        Self { turns: taken }
    }

    /// Decisions that contender number `i` made in a second, for each number in flight.
    pub fn per_second(&self, i: usize) -> Vec<String> {
        self.cells(i, |turn| Some(turn.per_second))
    }

    /// The multiple of contender number `base`'s rate, in the same round.
    pub fn ratios(&self, i: usize, base: usize) -> Vec<String> {
        let levels = self.turns[i].iter().zip(&self.turns[base]);
        let ratio = |(turns, bases): (&Vec<Turn>, &Vec<Turn>)| {
            let pairs = turns.iter().zip(bases);
            let ratios = pairs.map(|(turn, base)| turn.per_second / base.per_second).collect();
            let Figure { median, low, high } = Figure::of(ratios);
            format!("{median:.2} ({low:.2}–{high:.2})")
        };
        levels.map(ratio).collect()
    }

    /// The median time of a decision, in microseconds.
    pub fn medians(&self, i: usize) -> Vec<String> {
        self.cells(i, |turn| Some(turn.median))
    }

    /// The 99th percentile of the time of a decision, in microseconds.
    pub fn p99s(&self, i: usize) -> Vec<String> {
        self.cells(i, |turn| Some(turn.p99))
    }

    /// The time that a decision takes on the server's core, in microseconds; `–` if the system does not report it.
    pub fn server_times(&self, i: usize) -> Vec<String> {
        self.cells(i, |turn| turn.server)
    }

    /// The time that a decision takes on the client's core, in microseconds.
    pub fn client_times(&self, i: usize) -> Vec<String> {
        self.cells(i, |turn| turn.client)
    }

    fn cells(&self, i: usize, of: impl Fn(&Turn) -> Option<f64>) -> Vec<String> {
        let cell = |turns: &Vec<Turn>| {
            let told = turns.iter().map(&of).collect::<Option<Vec<f64>>>();
            told.map_or_else(|| "–".to_owned(), |told| Figure::of(told).to_string())
        };
        self.turns[i].iter().map(cell).collect()
    }
}

/// The measurements of one turn.
#[derive(Debug, Clone, Copy)]
struct Turn {
    per_second: f64,
    /// Of the latencies, in microseconds.
    median: f64,
    p99: f64,
    /// Time on its core, in microseconds a decision.
    server: Option<f64>,
    client: Option<f64>,
}

impl Turn {
    fn of(server: &Redis, turn: impl FnOnce() -> Asked) -> Self {
        let on_cores = || [server.time_on_core(), time_on_core("self")];
        let before = on_cores();
        let asked = turn();
        let after = on_cores();
        let count = asked.count as f64;
        let spent = |i: usize| {
            let spent = after[i]?.checked_sub(before[i]?)?;
            Some(spent.as_nanos() as f64 / 1e3 / count)
        };
        let micros = |one_in| asked.latencies.all_but_one_in(one_in) as f64 / 1e3;
        Self {
            per_second: count / asked.took.as_secs_f64(),
            median: micros(2),
            p99: micros(100),
            server: spent(0),
            client: spent(1),
        }
    }
}
