//! A server with one core, its clients, and what stands between them. Time is simulated; the throttle is the real one.
//!
//! Four of five requests need 1 ms of the core, one needs 20 ms. Clients leave after a second. Handlers do not yield, so
//! the core runs what was started one after the other.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::time::Duration;

use sluicegate_throttle::Class;
use sluicegate_throttle::predict::Predictor;
use sluicegate_throttle::scheduler::{
    Id, Instruction, Offer, Offered, Outcome, Running, Scheduler, SchedulerBuilder,
};

const CHEAP: u64 = 1_000;
const DEAR: u64 = 20_000;
const PATIENCE: u64 = 1_000_000;

/// The part of each class in all requests, in percent.
const CLASSES: [u64; 4] = [10, 30, 30, 30];

/// What the core does in 0.2 s.
const QUEUE: u64 = 200_000;

/// As many requests as need 0.2 s on average.
const QUEUED: usize = 42;

const IN_FLIGHT: usize = 10;

/// What happened to the requests.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) offered: [u64; 4],
    /// Answered in time.
    pub(crate) served: [u64; 4],
    /// The part of the core's time that went into answers in time.
    pub(crate) useful: f64,
}

impl Report {
    /// The part of a class's requests that was answered in time.
    pub(crate) fn goodput(&self, class: usize) -> f64 {
        self.served[class] as f64 / self.offered[class] as f64
    }
}

/// A request, by its number.
type Job = usize;

struct Request {
    arrived: u64,
    cost: u64,
    class: usize,
    has_left: bool,
}

/// What a contender does with a request.
pub(crate) enum Act {
    Start(Job),
    Refuse,
}

/// What stands between the clients and the core.
pub(crate) trait Contender {
    fn arrive(&mut self, now: u64, job: Job, class: usize, cost: u64, acts: &mut Vec<Act>);
    fn done(&mut self, now: u64, job: Job, cost: u64, acts: &mut Vec<Act>);
    /// The client has gone before its request was run. Returns whether it is noticed.
    fn leave(&mut self, now: u64, job: Job, acts: &mut Vec<Act>) -> bool;
    fn next_at(&self) -> Option<u64> {
        None
    }
    fn drain(&mut self, _now: u64, _acts: &mut Vec<Act>) {}
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    CoreDone(Job),
    Leave(Job),
    Drain,
    Arrive,
}

/// Runs `contender` for `seconds` of simulated time. The requests cost `load` times what the core can do.
pub(crate) fn run(contender: &mut dyn Contender, load: f64, seconds: u64) -> Report {
    let mean_cost = (4 * CHEAP + DEAR) as f64 / 5.0;
    let (mut random, mut acts) = (Random(0x5eed), Vec::new());
    let mut requests: Vec<Request> = Vec::new();
    let mut report = Report::default();
    let mut events = BinaryHeap::from([Reverse((0, Event::Arrive))]);
    let mut waiting: VecDeque<Job> = VecDeque::new();
    let (mut is_busy, mut useful, end) = (false, 0, seconds * 1_000_000);
    while let Some(Reverse((now, event))) = events.pop() {
        match event {
            // Those that are inside by then get their answers.
            Event::Arrive if now > end => {}
            Event::Arrive => {
                let cost = if random.below(5) == 0 { DEAR } else { CHEAP };
                let class = random.class();
                let job = requests.len();
                requests.push(Request { arrived: now, cost, class, has_left: false });
                report.offered[class] += 1;
                contender.arrive(now, job, class, cost, &mut acts);
                events.push(Reverse((now + PATIENCE, Event::Leave(job))));
                let gap = -(1.0 - random.unit()).ln() * mean_cost / load;
                events.push(Reverse((now + gap as u64, Event::Arrive)));
            }
            Event::CoreDone(job) => {
                let request = &mut requests[job];
                is_busy = false;
                if now - request.arrived <= PATIENCE {
                    useful += if now <= end { request.cost } else { 0 };
                    report.served[request.class] += 1;
                }
                request.has_left = true;
                contender.done(now, job, request.cost, &mut acts);
            }
            Event::Leave(job) if !requests[job].has_left => {
                requests[job].has_left = contender.leave(now, job, &mut acts);
            }
            Event::Leave(_) => {}
            Event::Drain => contender.drain(now, &mut acts),
        }
        for act in acts.drain(..) {
            if let Act::Start(job) = act {
                waiting.push_back(job);
            }
        }
        while !is_busy {
            let Some(job) = waiting.pop_front() else { break };
            if requests[job].has_left {
                continue;
            }
            is_busy = true;
            events.push(Reverse((now + requests[job].cost, Event::CoreDone(job))));
        }
        if let Some(next) = contender.next_at() {
            if events.peek().is_none_or(|Reverse((event, _))| *event > next) {
                events.push(Reverse((next.max(now), Event::Drain)));
            }
        }
    }
    report.useful = useful as f64 / end as f64;
    report
}

/// Numbers that look random (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn class(&mut self) -> usize {
        let mut part = self.below(100);
        let in_class = |share: &u64| {
            let is_in = part < *share;
            part = part.saturating_sub(*share);
            is_in
        };
        CLASSES.iter().position(in_class).unwrap_or(3)
    }
}

/// A first-in, first-out queue in front of the core, of any length or bounded in the number of requests. The server does
/// not notice that a client has gone.
pub(crate) struct Fifo {
    bound: usize,
    inside: usize,
}

impl Fifo {
    pub(crate) const fn unbounded() -> Self {
        Self { bound: usize::MAX, inside: 0 }
    }

    pub(crate) const fn bounded() -> Self {
        Self { bound: QUEUED, inside: 0 }
    }
}

impl Contender for Fifo {
    fn arrive(&mut self, _: u64, job: Job, _: usize, _: u64, acts: &mut Vec<Act>) {
        if self.inside < self.bound {
            self.inside += 1;
            acts.push(Act::Start(job));
        }
    }

    fn done(&mut self, _: u64, _: Job, _: u64, _: &mut Vec<Act>) {
        self.inside -= 1;
    }

    fn leave(&mut self, _: u64, _: Job, _: &mut Vec<Act>) -> bool {
        false
    }
}

/// `tower::limit::ConcurrencyLimit`: ten requests inside. The others wait in the order of their arrival, or, with
/// `tower::load_shed` around it, are refused. Clients that leave are noticed.
#[derive(Default)]
pub(crate) struct ConcurrencyLimit {
    sheds: bool,
    inside: Vec<Job>,
    waiting: VecDeque<Job>,
}

impl ConcurrencyLimit {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn with_load_shed() -> Self {
        Self { sheds: true, ..Self::default() }
    }

    fn next(&mut self, acts: &mut Vec<Act>) {
        if let Some(job) = self.waiting.pop_front() {
            self.inside.push(job);
            acts.push(Act::Start(job));
        }
    }
}

impl Contender for ConcurrencyLimit {
    fn arrive(&mut self, _: u64, job: Job, _: usize, _: u64, acts: &mut Vec<Act>) {
        if self.inside.len() < IN_FLIGHT {
            self.inside.push(job);
            acts.push(Act::Start(job));
        } else if !self.sheds {
            self.waiting.push_back(job);
        }
    }

    fn done(&mut self, _: u64, job: Job, _: u64, acts: &mut Vec<Act>) {
        self.inside.retain(|inside| *inside != job);
        self.next(acts);
    }

    fn leave(&mut self, _: u64, job: Job, acts: &mut Vec<Act>) -> bool {
        if self.inside.contains(&job) {
            self.inside.retain(|inside| *inside != job);
            self.next(acts);
        } else {
            self.waiting.retain(|waiting| *waiting != job);
        }
        true
    }
}

/// The scheduler and the predictor of this crate.
pub(crate) struct Throttle {
    scheduler: Scheduler,
    predictor: Predictor,
    queued: HashMap<usize, Job>,
    waiting: HashMap<Job, Id>,
    running: HashMap<Job, Running>,
    instructions: Vec<Instruction>,
}

impl Throttle {
    /// Drained by the core's time, with a queue for 0.2 s of it.
    pub(crate) fn new() -> Self {
        Self::with(|builder| builder)
    }

    pub(crate) fn with(change: impl FnOnce(SchedulerBuilder) -> SchedulerBuilder) -> Self {
        let builder = Scheduler::builder().rate(1_000_000, Duration::from_secs(1)).queue(QUEUE);
        Self {
            scheduler: change(builder).build().expect("it works"),
            predictor: Predictor::new(64, CHEAP),
            queued: HashMap::new(),
            waiting: HashMap::new(),
            running: HashMap::new(),
            instructions: Vec::new(),
        }
    }

    fn carry_out(&mut self, acts: &mut Vec<Act>) {
        for instruction in self.instructions.drain(..) {
            let (Instruction::Start(id, _) | Instruction::Shed(id, _)) = &instruction;
            let job = self.queued.remove(&id.slot()).expect("a queued request");
            self.waiting.remove(&job);
            match instruction {
                Instruction::Start(_, running) => {
                    self.running.insert(job, running);
                    acts.push(Act::Start(job));
                }
                Instruction::Shed(..) => acts.push(Act::Refuse),
            }
        }
    }
}

impl Contender for Throttle {
    fn arrive(&mut self, now: u64, job: Job, class: usize, cost: u64, acts: &mut Vec<Act>) {
        let class = Class::at(class as u8);
        // Two routes, with the cost of a request as their key: what it is is learnt all the same.
        let predicted = self.predictor.predict(cost, class).mean;
        let offer = Offer {
            class,
            flow: 0,
            cost: predicted,
            deadline: Some(now + PATIENCE),
            partition: None,
        };
        let offered = self.scheduler.offer(now, offer, &mut self.instructions);
        self.carry_out(acts);
        match offered {
            Offered::Start(running) => {
                self.running.insert(job, running);
                acts.push(Act::Start(job));
            }
            Offered::Queued(id) => {
                self.queued.insert(id.slot(), job);
                self.waiting.insert(job, id);
            }
            Offered::Shed(_) => acts.push(Act::Refuse),
        }
    }

    fn done(&mut self, now: u64, job: Job, cost: u64, acts: &mut Vec<Act>) {
        let Some(running) = self.running.remove(&job) else { return };
        self.predictor.learn(cost, running.class(), cost);
        let out = &mut self.instructions;
        self.scheduler.done(now, running, Some(cost), Outcome::Success, out);
        self.carry_out(acts);
    }

    fn leave(&mut self, now: u64, job: Job, acts: &mut Vec<Act>) -> bool {
        if let Some(id) = self.waiting.remove(&job) {
            self.queued.remove(&id.slot());
            self.scheduler.cancel(id);
        } else if let Some(running) = self.running.remove(&job) {
            let out = &mut self.instructions;
            self.scheduler.done(now, running, Some(0), Outcome::Cancelled, out);
            self.carry_out(acts);
        }
        true
    }

    fn next_at(&self) -> Option<u64> {
        self.scheduler.next_at()
    }

    fn drain(&mut self, now: u64, acts: &mut Vec<Act>) {
        self.scheduler.drain(now, &mut self.instructions);
        self.carry_out(acts);
    }
}
