//! All clients: each of them while they fit, then a sample of them by hash, and those who come most.

use sluicegate_core::adapter::ByHash;
use sluicegate_core::adapter::peaks::{LEVELS, level, level_of};

use super::client::{Arrival, Client};
use super::ladder::{RATES, WINDOWS, rates};

/// As many clients who come most are followed when not all are.
const HEAVY: usize = 1_024;

/// Clients, and what limits would do to them.
#[derive(Debug)]
pub(super) struct Population {
    pub(super) clients: Vec<Client>,
    index: ByHash<u32>,
    max: usize,
    /// A client is followed by chance if this many of the last bits of its hash are 0.
    halvings: u32,
    /// How many clients outside of the sample are followed.
    heavy: usize,
    frequent: Frequent,
    rates: [f32; RATES],
    /// For small counts, the first level of at least that many.
    small: Vec<u16>,
    /// For each window, the requests by the first level that is at least their number in the window.
    numbers: [Vec<f64>; WINDOWS.len()],
    pub(super) requests: u64,
}

impl Population {
    /// For as many clients. Each takes about 400 bytes.
    pub(super) fn new(max: usize) -> Self {
        Self {
            clients: Vec::new(),
            index: ByHash::default(),
            max,
            halvings: 0,
            heavy: 0,
            frequent: Frequent::default(),
            rates: rates(),
            small: (0..SMALL).map(|count| level_of(count) as u16).collect(),
            numbers: std::array::from_fn(|_| vec![0.0; LEVELS]),
            requests: 0,
        }
    }

    /// Takes a request. Returns whether its client is new.
    #[inline]
    pub(super) fn add(&mut self, key: u64, arrival: Arrival) -> bool {
        self.requests += 1;
        let mut is_new = false;
        let at = match self.index.get(&key) {
            Some(at) => *at,
            None => {
                let Some(at) = self.follow(key, arrival) else { return false };
                is_new = true;
                at
            }
        };
        let client = &mut self.clients[at as usize];
        let weight = weight(client, self.halvings, self.frequent.enough);
        let Self { small, numbers, .. } = self;
        client.add(arrival, &self.rates, |window, number| {
            let number = u64::from(number);
            let first = match small.get(number as usize) {
                Some(first) => usize::from(*first),
                None => level_of(number),
            };
            numbers[window][first] += weight;
        });
        is_new
    }

    /// Follows a client from now on, if it is in the sample or comes often.
    fn follow(&mut self, key: u64, first: Arrival) -> Option<u32> {
        while self.is_in_sample(key) && self.clients.len() >= self.max {
            self.halve();
        }
        let is_heavy = !self.is_in_sample(key);
        if is_heavy {
            if !self.frequent.add(key) {
                return None;
            }
            if self.heavy >= 4 * HEAVY {
                self.prune();
            }
            self.heavy += 1;
        }
        let at = u32::try_from(self.clients.len()).ok()?;
        self.clients.push(Client::new(key, is_heavy, first));
        self.index.insert(key, at);
        Some(at)
    }

    fn is_in_sample(&self, key: u64) -> bool {
        key.trailing_zeros() >= self.halvings
    }

    /// Lets go of half of the clients by chance, but not of those who come most.
    fn halve(&mut self) {
        self.halvings += 1;
        let halvings = self.halvings;
        let is_out = |client: &Client| client.key.trailing_zeros() < halvings;
        let out = self.clients.iter().filter(|client| is_out(client)).map(|client| client.requests);
        let least = least_of_most(out.collect(), HEAVY);
        self.clients.retain_mut(|client| {
            client.is_heavy = is_out(client) && client.requests > least;
            client.is_heavy || !is_out(client)
        });
        self.frequent.enough = self.frequent.enough.max(least);
        self.index_again();
    }

    /// Lets go of those outside of the sample who come least.
    fn prune(&mut self) {
        let heavy =
            self.clients.iter().filter(|client| client.is_heavy).map(|client| client.requests);
        let least = least_of_most(heavy.collect(), HEAVY);
        self.clients.retain(|client| !client.is_heavy || client.requests > least);
        // Clients have to come more and more often, so this is rare.
        self.frequent.enough = self.frequent.enough.saturating_mul(2).max(least);
        self.index_again();
    }

    fn index_again(&mut self) {
        self.heavy = self.clients.iter().filter(|client| client.is_heavy).count();
        self.index.clear();
        self.index.extend((0..).zip(&self.clients).map(|(at, client)| (client.key, at)));
    }

    /// How many clients a client stands for.
    pub(super) fn weight(&self, client: &Client) -> f64 {
        weight(client, self.halvings, self.frequent.enough)
    }

    /// How many of them are followed: one in as many.
    pub(super) fn one_in(&self) -> u64 {
        1 << self.halvings
    }

    /// The share of requests that a limit of a window of the clock would have refused. The limit is a level.
    pub(super) fn refused(&self, window: usize, limit: u64) -> f64 {
        let over: f64 = self.numbers[window][level_of(limit) + 1..].iter().sum();
        let all: f64 = self.numbers[window].iter().sum();
        if all > 0.0 { over / all } else { 0.0 }
    }

    /// The levels where there is something, with the clients and the requests of each.
    pub(super) fn steps(&self, window: usize) -> Vec<(u64, u64, u64)> {
        let mut clients = vec![0.0; LEVELS];
        for client in &self.clients {
            clients[level_of(u64::from(client.highest(window)))] += self.weight(client);
        }
        let steps = clients.into_iter().zip(&self.numbers[window]).enumerate();
        steps
            .filter(|(_, (clients, requests))| *clients > 0.0 || **requests > 0.0)
            .map(|(place, (clients, requests))| (level(place), clients as u64, *requests as u64))
            .collect()
    }

    pub(super) fn rates(&self) -> &[f32; RATES] {
        &self.rates
    }
}

/// How many clients a client stands for. One that comes often is there for certain.
fn weight(client: &Client, halvings: u32, enough: u32) -> f64 {
    let is_certain = client.is_heavy || client.requests >= enough;
    if is_certain { 1.0 } else { (1_u64 << halvings) as f64 }
}

/// The number of requests that at most `most` of the clients exceed.
fn least_of_most(mut requests: Vec<u32>, most: usize) -> u32 {
    match requests.len().checked_sub(most + 1) {
        None => 0,
        Some(at) => *requests.select_nth_unstable(at).1,
    }
}

const SMALL: u64 = 1_024;

/// Finds the clients outside of the sample who come often, in bounded memory: the algorithm of Misra and Gries, with many
/// keys let go at once.
#[derive(Debug)]
struct Frequent {
    counts: ByHash<u32>,
    /// From this number of requests on, a client is followed.
    enough: u32,
}

impl Default for Frequent {
    fn default() -> Self {
        Self { counts: ByHash::default(), enough: 16 }
    }
}

/// Most clients with a counter.
const COUNTERS: usize = 1 << 15;

impl Frequent {
    /// Counts a request, and returns whether its client has become one to follow.
    fn add(&mut self, key: u64) -> bool {
        let count = self.counts.entry(key).or_default();
        *count += 1;
        if *count >= self.enough {
            self.counts.remove(&key);
            return true;
        }
        if self.counts.len() > COUNTERS {
            let mut counts: Vec<_> = self.counts.values().copied().collect();
            let middle = counts.len() / 2;
            let median = *counts.select_nth_unstable(middle).1;
            self.counts.retain(|_, count| {
                *count = count.saturating_sub(median);
                *count > 0
            });
        }
        false
    }
}
