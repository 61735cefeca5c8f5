use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::clients::Clients;

/// A request, by its number.
pub type Job = usize;

/// What the contenders and the core know of a request.
#[derive(Debug, Clone)]
pub struct Request {
    pub(super) group: usize,
    pub(super) class: u8,
    /// Microseconds of the core.
    pub(super) cost: u64,
    pub(super) flow: u64,
    pub(super) route: u64,
    pub(super) arrived: u64,
    pub(super) patience: u64,
    pub(super) hangs_up: Option<u64>,
    pub(super) has_left: bool,
}

/// What a contender does with a request.
#[derive(Debug)]
pub enum Act {
    /// Has the core run it.
    Start(Job),
    /// Answers that the server is overloaded.
    Refuse,
}

/// How the core ended a request.
#[derive(Debug, Clone, Copy)]
pub struct End {
    /// Microseconds of the core that it took.
    pub cost: u64,
    /// The client hung up in the middle.
    pub has_hung_up: bool,
}

/// What stands between the clients and the core.
pub trait Contender {
    /// A request has come.
    fn arrive(&mut self, now: u64, job: Job, request: &Request, acts: &mut Vec<Act>);
    /// The core has run a request.
    fn done(&mut self, now: u64, job: Job, request: &Request, end: End, acts: &mut Vec<Act>);
    /// The client has gone before its request was run. Returns whether it is noticed.
    fn leave(&mut self, now: u64, job: Job, acts: &mut Vec<Act>) -> bool;
    /// When it wants to be [drained](Self::drain).
    fn next_at(&self) -> Option<u64> {
        None
    }
    /// The time of [`next_at`](Self::next_at) has come.
    fn drain(&mut self, _now: u64, _acts: &mut Vec<Act>) {}
}

/// What happened to the requests, by group.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Requests that came.
    pub offered: Vec<u64>,
    /// Requests that were answered in time.
    pub served: Vec<u64>,
    /// The part of the core's time that a group took.
    pub used: Vec<f64>,
    /// The part of the core's time that went into answers in time.
    pub useful: f64,
}

impl Report {
    /// The part of a group's requests that was answered in time.
    pub fn goodput(&self, group: usize) -> f64 {
        self.served[group] as f64 / self.offered[group] as f64
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    CoreDone(Job),
    Leave(Job),
    Drain,
    Arrive(usize),
}

/// Runs `contender` for `seconds` of simulated time.
pub fn run(contender: &mut dyn Contender, clients: &mut Clients, seconds: u64) -> Report {
    let groups = clients.groups.len();
    let mut report = Report {
        offered: vec![0; groups],
        served: vec![0; groups],
        used: vec![0.0; groups],
        useful: 0.0,
    };
    let (mut requests, mut acts, end) = (Vec::<Request>::new(), Vec::new(), seconds * 1_000_000);
    let first = |group| Reverse((clients.gap(group), Event::Arrive(group)));
    let mut events: BinaryHeap<_> = (0..groups).map(first).collect();
    let mut waiting: VecDeque<Job> = VecDeque::new();
    let mut is_busy = false;
    while let Some(Reverse((now, event))) = events.pop() {
        match event {
            // Those that are inside by then get their answers.
            Event::Arrive(_) if now > end => {}
            Event::Arrive(group) => {
                let (request, next) = clients.next(group, now);
                let job = requests.len();
                report.offered[group] += 1;
                contender.arrive(now, job, &request, &mut acts);
                events.push(Reverse((now + request.patience, Event::Leave(job))));
                events.push(Reverse((next, Event::Arrive(group))));
                requests.push(request);
            }
            Event::CoreDone(job) => {
                let request = &mut requests[job];
                is_busy = false;
                let ended = request.ended();
                if now <= end {
                    report.used[request.group] += ended.cost as f64 / end as f64;
                }
                if !ended.has_hung_up && now - request.arrived <= request.patience {
                    report.useful += if now <= end { ended.cost as f64 / end as f64 } else { 0.0 };
                    report.served[request.group] += 1;
                }
                request.has_left = true;
                contender.done(now, job, request, ended, &mut acts);
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
            events.push(Reverse((now + requests[job].ended().cost, Event::CoreDone(job))));
        }
        if let Some(next) = contender.next_at()
            && events.peek().is_none_or(|Reverse((event, _))| *event > next)
        {
            events.push(Reverse((next.max(now), Event::Drain)));
        }
    }
    report
}

impl Request {
    fn ended(&self) -> End {
        let cost = self.hangs_up.map_or(self.cost, |after| after.min(self.cost));
        End { cost, has_hung_up: cost < self.cost }
    }
}
