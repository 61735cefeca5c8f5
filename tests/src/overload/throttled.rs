use std::collections::HashMap;
use std::time::Duration;

use sluicegate_throttle::Class;
use sluicegate_throttle::predict::Predictor;
use sluicegate_throttle::scheduler::{
    Completion, Id, Instruction, Offer, Offered, Running, Scheduler, SchedulerBuilder,
};

use super::server::{Act, Contender, End, Job, Request};
use super::{CHEAP, QUEUE, SHARE};

/// The scheduler and the predictor of `sluicegate-throttle`, as its layer uses them.
#[derive(Debug)]
pub struct Throttled {
    scheduler: Scheduler,
    predictor: Predictor,
    /// Of requests that were started and have ended.
    predicted: u64,
    actual: u64,
    queued: HashMap<usize, Job>,
    waiting: HashMap<Job, Id>,
    running: HashMap<Job, Running>,
    instructions: Vec<Instruction>,
}

impl Default for Throttled {
    /// As documented: drained by the core's time, with a queue for 0.2 s of it.
    fn default() -> Self {
        Self::with(|builder| builder)
    }
}

impl Throttled {
    /// With other settings.
    ///
    /// # Panics
    ///
    /// When those cannot work.
    pub fn with(change: impl FnOnce(SchedulerBuilder) -> SchedulerBuilder) -> Self {
        Self::new(change(Self::drained_by(SHARE)))
    }

    /// Drained by this share of the core's time, as `cpu` does, with a queue for 0.2 s of it.
    ///
    /// # Panics
    ///
    /// When the share is none.
    pub fn cpu(share: f64) -> Self {
        Self::new(Self::drained_by(share))
    }

    fn drained_by(share: f64) -> SchedulerBuilder {
        Scheduler::builder()
            .rate((share * 1e6) as u64, Duration::from_secs(1))
            .queue_time(Duration::from_micros(QUEUE))
    }

    fn new(builder: SchedulerBuilder) -> Self {
        Self {
            scheduler: builder.build().expect("it works"),
            predictor: Predictor::new(1_024, CHEAP),
            predicted: 0,
            actual: 0,
            queued: HashMap::new(),
            waiting: HashMap::new(),
            running: HashMap::new(),
            instructions: Vec::new(),
        }
    }

    /// The sum of predicted costs, divided by the sum of costs.
    pub fn accuracy(&self) -> f64 {
        self.predicted as f64 / self.actual as f64
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

impl Contender for Throttled {
    fn arrive(&mut self, now: u64, job: Job, request: &Request, acts: &mut Vec<Act>) {
        let Request { flow, route, patience, .. } = *request;
        let class = Class::at(request.class);
        let most = self.scheduler.bound();
        let cost = self.predictor.predict_for(route, flow, class).mean.clamp(1, most);
        let deadline = Some(now + patience);
        let offer = Offer { class, flow, cost, deadline, partition: None, key: Some(route) };
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

    fn done(&mut self, now: u64, job: Job, request: &Request, end: End, acts: &mut Vec<Act>) {
        let Some(running) = self.running.remove(&job) else { return };
        let outcome = if end.has_hung_up { Completion::Cancelled } else { Completion::Success };
        if outcome != Completion::Cancelled || end.cost > running.cost() {
            self.predicted += running.cost();
            self.actual += end.cost;
            self.predictor.learn_for(request.route, request.flow, running.class(), end.cost);
        }
        let out = &mut self.instructions;
        self.scheduler.done(now, running, Some(end.cost), outcome, out);
        self.carry_out(acts);
    }

    fn leave(&mut self, now: u64, job: Job, acts: &mut Vec<Act>) -> bool {
        if let Some(id) = self.waiting.remove(&job) {
            self.queued.remove(&id.slot());
            self.scheduler.cancel(id);
        } else if let Some(running) = self.running.remove(&job) {
            let out = &mut self.instructions;
            self.scheduler.done(now, running, Some(0), Completion::Cancelled, out);
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
