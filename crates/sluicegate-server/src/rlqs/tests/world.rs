//! Envoys, a server, and a network between them that takes its time.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::capacity::{BucketId, Capacities};
use crate::rlqs::quotas::{Quotas, StreamId};
use crate::rlqs::unit::BucketUsage;
use sluicegate_lease::Pool;

use super::envoy::Envoy;
use sluicegate_tests::random::Random;

/// Time goes on in these steps, in milliseconds.
const STEP: u64 = 10;
pub(super) const SECOND: u64 = 1_000;

pub(super) struct World {
    pub(super) now: u64,
    pub(super) envoys: Vec<Envoy>,
    pub(super) random: Random,
    /// How long a message may take.
    pub(super) slowest: u64,
    capacities: Arc<Capacities>,
    quotas: Quotas,
    pool: Pool,
    fence: u64,
    /// Until when nobody answers.
    away_until: u64,
    /// Reports in flight: arrival time, Envoy and stream.
    reports: VecDeque<(u64, usize, StreamId, BucketUsage)>,
    /// What passed in each step of the last second.
    second: VecDeque<u64>,
    /// The most that passed in any second.
    pub(super) most: u64,
    /// The highest sum of all rates in force at one time, and of all bursts.
    pub(super) in_force: (f64, u64),
}

impl World {
    /// A capacity of 1,000 a second with a burst of 100, which nobody has used before.
    pub(super) fn new(seed: u64) -> Self {
        let text = "[[capacity]]\nname = \"db\"\nlimit = \"1000/second burst 100\"\nlease = \"20 seconds\"\n\
            [[capacity.envoy]]\ndomain = \"edge\"\nbucket = { service = \"db\" }\n";
        let capacities = Arc::new(Capacities::read(text).expect("capacities"));
        let mut pool = Pool::new(capacities.templates().clone());
        pool.lead(0, 1, Some(Vec::new()));
        Self {
            now: 0,
            envoys: Vec::new(),
            random: Random(seed),
            slowest: 50,
            quotas: Quotas::new(Arc::clone(&capacities)),
            capacities,
            pool,
            fence: 1,
            away_until: 0,
            reports: VecDeque::new(),
            second: VecDeque::new(),
            most: 0,
            in_force: (0.0, 0),
        }
    }

    pub(super) fn join(&mut self, demand: f64, name: Option<String>) {
        let envoy = Envoy::new(self.now, demand, name, &mut self.random);
        self.envoys.push(envoy);
    }

    /// An Envoy loses its stream, and connects again with its next report.
    pub(super) fn lose(&mut self, envoy: usize) {
        if let Some(stream) = self.envoys[envoy].lose() {
            self.quotas.close(stream);
        }
    }

    /// It ends for ever.
    pub(super) fn kill(&mut self, envoy: usize) {
        self.lose(envoy);
        self.envoys[envoy].is_dead = true;
    }

    /// The server is killed, and another one follows after so many milliseconds.
    pub(super) fn follow(&mut self, after: u64) {
        self.restart();
        self.away_until = self.now + after;
    }

    /// The server forgets everything.
    pub(super) fn restart(&mut self) {
        self.envoys.iter_mut().for_each(|envoy| {
            envoy.lose();
        });
        self.reports.clear();
        self.fence += 1;
        self.quotas = Quotas::new(Arc::clone(&self.capacities));
        self.pool = Pool::new(self.capacities.templates().clone());
        self.pool.lead(self.now, self.fence, None);
    }

    pub(super) fn run(&mut self, seconds: u64) {
        let end = self.now + seconds * SECOND;
        while self.now < end {
            self.step();
        }
    }

    pub(super) fn step(&mut self) {
        self.now += STEP;
        let now = self.now;
        let mut passed = 0;
        let mut in_force = (0.0, 0);
        for at in 0..self.envoys.len() {
            if self.envoys[at].is_dead {
                continue;
            }
            self.envoys[at].receive(now);
            let (rate, burst) = self.envoys[at].in_force(now);
            in_force = (in_force.0 + rate, in_force.1 + burst);
            passed += self.envoys[at].serve(now, STEP, &mut self.random);
            let Some(used) = self.envoys[at].report(now) else { continue };
            if now < self.away_until {
                continue;
            }
            let stream = match self.envoys[at].stream {
                Some(stream) => stream,
                None => self.quotas.open(self.envoys[at].name.as_deref()).expect("a stream"),
            };
            self.envoys[at].stream = Some(stream);
            let arrives = now + self.random.below(self.slowest);
            self.reports.push_back((arrives, at, stream, used));
        }
        self.reports.make_contiguous().sort_by_key(|(arrives, ..)| *arrives);
        while self.reports.front().is_some_and(|(arrives, ..)| *arrives <= now) {
            let Some((_, at, stream, used)) = self.reports.pop_front() else { return };
            if self.envoys[at].stream != Some(stream) {
                continue;
            }
            let bucket = BucketId::from([("service".into(), "db".into())]);
            let reported =
                self.quotas.report(now, stream, "edge", [(bucket, used)], &mut self.pool);
            assert_eq!(reported, Ok(0));
            self.deliver();
        }
        if now == self.away_until {
            self.pool.lead(now, self.fence, None);
        }
        if now >= self.away_until && now.is_multiple_of(100) {
            self.pool.tick(now);
            self.quotas.tick(now, &mut self.pool);
            self.deliver();
        }
        self.in_force = (self.in_force.0.max(in_force.0), self.in_force.1.max(in_force.1));
        self.second.push_back(passed);
        if self.second.len() as u64 > SECOND / STEP {
            self.second.pop_front();
        }
        self.most = self.most.max(self.second.iter().sum());
    }

    fn deliver(&mut self) {
        for (stream, orders) in self.quotas.orders() {
            let arrives = self.now + self.random.below(self.slowest);
            let envoy = self.envoys.iter_mut().find(|envoy| envoy.stream == Some(stream));
            if let Some(envoy) = envoy {
                orders.into_iter().for_each(|order| envoy.send(arrives, order));
            }
        }
    }

    /// What passes at each Envoy in these seconds, each second.
    pub(super) fn rates(&mut self, seconds: u64) -> Vec<f64> {
        let before: Vec<_> = self.envoys.iter().map(|envoy| envoy.passed).collect();
        self.run(seconds);
        let after = self.envoys.iter().zip(before);
        after.map(|(envoy, before)| (envoy.passed - before) as f64 / seconds as f64).collect()
    }

    /// How many requests have come to all Envoys.
    pub(super) fn came(&self) -> u64 {
        self.envoys.iter().map(|envoy| envoy.came).sum()
    }

    /// The part of each Envoy's requests that passes in these seconds.
    pub(super) fn passing(&mut self, seconds: u64) -> Vec<f64> {
        let before: Vec<_> = self.envoys.iter().map(|envoy| (envoy.passed, envoy.came)).collect();
        self.run(seconds);
        let after = self.envoys.iter().zip(before);
        after
            .map(|(envoy, (passed, came))| {
                (envoy.passed - passed) as f64 / (envoy.came - came).max(1) as f64
            })
            .collect()
    }

    pub(super) fn buckets(&self) -> usize {
        self.quotas.buckets()
    }
}
