//! A server that shares its cores between the requests that run, under an adaptive limit. Time is simulated; the
//! scheduler and the algorithm are the real ones.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use sluicegate_throttle::Class;
use sluicegate_throttle::adaptive::Algorithm;
use sluicegate_throttle::scheduler::{Completion, Instruction, Offer, Offered, Running, Scheduler};

use crate::random::Random;

/// What the server can do, and what it is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Requests that run at full speed side by side: the best limit.
    pub cores: f64,
    /// Mean microseconds that a request takes on a core of its own: each takes half to one and a half times as much.
    pub service: f64,
    /// Requests in a second.
    pub arrivals: f64,
}

impl Setting {
    /// A server under this many times the load that it can serve.
    pub fn new(cores: f64, service: Duration, load: f64) -> Self {
        let service = service.as_micros() as f64;
        Self { cores, service, arrivals: load * cores * 1e6 / service }
    }
}

/// The simulation, from one part to the next.
#[derive(Debug)]
pub struct Simulation {
    scheduler: Scheduler,
    random: Random,
    now: f64,
    next_arrival: f64,
    /// How much work each running request has got so far, since the start: all get the same.
    work: f64,
    /// Running requests, by the work at which they end.
    running: BinaryHeap<Reverse<(u64, u64)>>,
    /// What `done` wants back, by number.
    permits: Vec<Option<Running>>,
    out: Vec<Instruction>,
}

/// What was seen in a part.
#[derive(Debug, Default)]
pub struct Seen {
    /// The highest limit.
    pub max_limit: usize,
    /// The mean limit over time.
    pub mean_limit: f64,
    /// Requests that came.
    pub offered: u64,
    /// Requests that were refused.
    pub shed: u64,
    /// Requests that were served.
    pub ended: u64,
    times: Vec<f64>,
}

impl Seen {
    /// The 99th percentile of the time that admitted requests ran, in microseconds.
    pub fn p99(&mut self) -> f64 {
        self.times.sort_unstable_by(f64::total_cmp);
        self.times.get(self.times.len() * 99 / 100).copied().unwrap_or_default()
    }
}

impl Simulation {
    /// The queue holds 200 requests.
    ///
    /// # Panics
    ///
    /// Never: the settings work.
    pub fn new(seed: u64, algorithm: impl Algorithm + 'static) -> Self {
        let builder = Scheduler::builder().adaptive(algorithm).queue(200);
        Self {
            scheduler: builder.build().expect("it works"),
            random: Random(seed),
            now: 0.0,
            next_arrival: 0.0,
            work: 0.0,
            running: BinaryHeap::new(),
            permits: Vec::new(),
            out: Vec::new(),
        }
    }

    /// What is seen in this time.
    ///
    /// # Panics
    ///
    /// When the scheduler starts a request twice.
    pub fn run(&mut self, setting: Setting, time: Duration) -> Seen {
        let Setting { cores, service, arrivals } = setting;
        let (start, end) = (self.now, self.now + time.as_micros() as f64);
        let mut seen = Seen::default();
        while self.now < end {
            let speed = (cores / self.running.len().max(1) as f64).min(1.0);
            let next_end = self.running.peek().map_or(f64::INFINITY, |Reverse((work, _))| {
                self.now + (*work as f64 / 1e3 - self.work).max(0.0) / speed
            });
            let next = next_end.min(self.next_arrival).min(end);
            let limit = self.scheduler.limit().expect("work in flight");
            seen.max_limit = seen.max_limit.max(limit);
            seen.mean_limit += limit as f64 * (next - self.now);
            self.work += (next - self.now) * speed;
            self.now = next;
            let now = next as u64;
            if next == next_end {
                let Some(Reverse((_, number))) = self.running.pop() else { break };
                let permit = self.permits[number as usize].take().expect("it runs");
                seen.times.push(now.saturating_sub(permit.started()) as f64);
                seen.ended += 1;
                self.scheduler.done(now, permit, None, Completion::Success, &mut self.out);
            } else if next == self.next_arrival {
                self.next_arrival += self.random.gap(arrivals) * 1e6;
                let offer = Offer {
                    class: Class::CRITICAL,
                    flow: 0,
                    cost: 1,
                    deadline: None,
                    partition: None,
                    key: None,
                };
                seen.offered += 1;
                match self.scheduler.offer(now, offer, &mut self.out) {
                    Offered::Start(permit) => self.start(permit, service),
                    Offered::Queued(_) => {}
                    Offered::Shed(_) => seen.shed += 1,
                }
            }
            while let Some(instruction) = self.out.pop() {
                if let Instruction::Start(_, permit) = instruction {
                    self.start(permit, service);
                }
            }
        }
        seen.mean_limit /= end - start;
        seen
    }

    fn start(&mut self, permit: Running, service: f64) {
        let work = self.work + service * (0.5 + self.random.unit());
        self.running.push(Reverse(((work * 1e3) as u64, self.permits.len() as u64)));
        self.permits.push(Some(permit));
    }
}
