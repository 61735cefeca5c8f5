//! A discrete-event simulation of clients and servers: the real [`Server`] and the real [`Session`], with a network
//! that loses, repeats, delays and reorders messages and breaks, clocks that differ, and masters that crash.

mod network;

use std::collections::BTreeSet;

use sluicegate_lease::client::{Action, OnLoss, Session};
use sluicegate_lease::fair::{Want, max_min};
use sluicegate_lease::message::{Request, Response};
use sluicegate_lease::pool::{Change, LeaseHolder};
use sluicegate_lease::{Amount, Demand, Server, Template, Templates};

use self::network::{Link, Party};
use super::buckets::Bucket;
use super::random::Random;
use super::rules::Rule;
use super::seen::{Sample, Seen};
use super::setting::{Clock, Setting};
use super::wheel::Wheel;

pub(crate) const RESOURCE: &str = "resource0";

pub(crate) struct World {
    setting: Setting,
    capacity: Amount,
    random: Random,
    events: Wheel<Event>,
    jobs: Vec<Job>,
    clients: Vec<Client>,
    /// The sum of what clients had when they were last looked at: at least the sum of what they have.
    leased: Amount,
    pub(crate) seen: Seen,
}

/// A group of servers of which at most one is the master.
struct Job {
    link: Link,
    has_parent: bool,
    server: Server,
    is_up: bool,
    fence: u64,
    known: BTreeSet<Box<str>>,
    clock: Clock,
}

struct Client {
    link: Link,
    session: Session,
    wants: Amount,
    had: Amount,
    clock: Clock,
    wake: u64,
    bucket: Option<Box<Bucket>>,
}

enum Event {
    PollClient(usize),
    PollJob(usize),
    Asked { from: Party, request: Request },
    Answered { to: Party, response: Option<Response> },
    ChangeWants(usize),
    Elect(usize),
    LoseMaster(usize),
    Spike(usize, f64),
    Mishap,
    Cut,
}

impl World {
    pub(crate) fn new(setting: Setting, seed: u64) -> Self {
        let mut events = Wheel::new();
        if let Some(every) = setting.network.cut_every {
            events.at(every * 500, Event::Cut);
        }
        Self {
            capacity: amount(setting.capacity),
            setting,
            random: Random::new(seed),
            events,
            jobs: Vec::new(),
            clients: Vec::new(),
            leased: Amount::ZERO,
            seen: Seen::default(),
        }
    }

    /// Adds a group of servers at the given level; the root is 0.
    pub(crate) fn job(&mut self, level: usize, parent: Option<usize>) -> usize {
        let at = self.jobs.len();
        let template = match parent {
            None => Template::new("*", self.capacity),
            Some(_) => Template::from_parent("*"),
        };
        let template = template.lease(self.setting.lease).refresh(self.setting.refresh[level]);
        let templates = Templates::new([template]).expect("a template that works");
        let name = format!("job-{at}");
        let server = match parent {
            None => Server::root(name, templates),
            Some(_) => Server::child(name, templates),
        };
        self.jobs.push(Job {
            link: Link::to(parent.unwrap_or_default()),
            has_parent: parent.is_some(),
            server,
            is_up: false,
            fence: 0,
            known: BTreeSet::new(),
            clock: Clock::new(&self.setting, &mut self.random),
        });
        self.elect(at);
        self.events.at(0, Event::PollJob(at));
        at
    }

    /// Adds a client whose wants change by up to a tenth every ten seconds.
    pub(crate) fn client(&mut self, job: usize, wants: f64) -> usize {
        let at = self.clients.len();
        let mut session = Session::new(format!("client-{at}"), 0, self.random.next());
        session.add(RESOURCE, amount(wants), OnLoss::Stop);
        let start = self.random.below(1_000);
        self.clients.push(Client {
            link: Link::to(job),
            session,
            wants: amount(wants),
            had: Amount::ZERO,
            clock: Clock::new(&self.setting, &mut self.random),
            wake: start,
            bucket: None,
        });
        self.events.at(start, Event::PollClient(at));
        self.events.at(start, Event::ChangeWants(at));
        at
    }

    pub(crate) fn lose_master(&mut self, at: u64, job: usize) {
        self.events.at(at, Event::LoseMaster(job));
    }

    pub(crate) fn elect_master(&mut self, at: u64, job: usize) {
        self.events.at(at, Event::Elect(job));
    }

    /// A client wants so much from then on.
    pub(crate) fn spike(&mut self, at: u64, client: usize, wants: f64) {
        self.events.at(at, Event::Spike(client, wants));
    }

    /// Once a minute something bad happens, as in Doorman's seventh scenario.
    pub(crate) fn mishaps(&mut self) {
        self.events.at(60_000, Event::Mishap);
    }

    /// From now on, one client in `every` has a real token bucket, and sends requests.
    pub(crate) fn fill_buckets(&mut self, every: usize) {
        let now = self.now();
        for (at, client) in self.clients.iter_mut().enumerate().step_by(every) {
            client.bucket = Some(Box::new(Bucket::new(now, at as u64)));
        }
    }

    /// What all token buckets have let through, and the fluid model.
    pub(crate) fn admitted(&self) -> (u64, f64) {
        let buckets = self.clients.iter().filter_map(|client| client.bucket.as_ref());
        buckets.fold((0, 0.0), |sum, bucket| (sum.0 + bucket.admitted, sum.1 + bucket.fluid))
    }

    /// Runs until `end`, in milliseconds.
    pub(crate) fn run(&mut self, end: u64) {
        while self.events.now() < end {
            while let Some(event) = self.events.next() {
                self.happen(event);
            }
            self.events.advance();
            if self.now() % 1_000 == 0 {
                self.sample();
            }
        }
    }

    fn now(&self) -> u64 {
        self.events.now()
    }

    fn in_(&mut self, millis: u64, event: Event) {
        self.events.at(self.now() + millis, event);
    }

    /// What each client wants and may use.
    pub(crate) fn clients(&self) -> impl Iterator<Item = (Amount, Amount)> {
        let now = self.now();
        self.clients.iter().map(move |client| (client.wants, client.capacity(now)))
    }

    fn sample(&mut self) {
        self.count();
        let now = self.now();
        self.clients.iter_mut().for_each(|client| client.run_bucket(now));
        let mut wants: Vec<Want> =
            self.clients().map(|(wants, _)| Want { wants, weight: 1 }).collect();
        let wanted: Amount = wants.iter().map(|want| want.wants).sum();
        let division = max_min(self.capacity, &mut wants);
        let (mut used, mut short) = (Amount::ZERO, Amount::ZERO);
        for (wants, leased) in self.clients() {
            used = used + leased.min(wants);
            short = short + division.share(Want { wants, weight: 1 }).saturating_sub(leased);
        }
        let could = wanted.min(self.capacity).as_f64();
        let (leased, used, short) = (self.leased.as_f64(), used.as_f64(), short.as_f64());
        self.seen.samples.push(Sample { could, leased, used, short });
    }

    /// Looks at what every client has.
    fn count(&mut self) {
        let now = self.now();
        for client in &mut self.clients {
            client.had = client.capacity(now);
        }
        self.leased = self.clients.iter().map(|client| client.had).sum();
        self.seen.largest = self.seen.largest.max(self.leased.as_f64());
        self.seen.over_grants += u64::from(self.leased > self.capacity);
    }

    /// Looks at what a client has. Only with an answer can it be more than before.
    fn count_client(&mut self, at: usize) {
        let client = &mut self.clients[at];
        let has = client.capacity(self.events.now());
        self.leased = self.leased - client.had + has;
        client.had = has;
        if self.leased > self.capacity {
            // Unless leases of others have ended.
            self.count();
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::PollClient(at) => self.poll_client(at),
            Event::PollJob(at) => self.poll_job(at),
            Event::Asked { from, request } => self.asked(from, &request),
            Event::Answered { to, response } => self.answered(to, response),
            Event::ChangeWants(at) => {
                let change = 0.1 * (1.0 - 2.0 * self.random.fraction());
                let wants = self.clients[at].wants.as_f64() * (1.0 + change);
                self.set_wants(at, wants);
                self.in_(10_000, Event::ChangeWants(at));
            }
            Event::Spike(at, wants) => self.set_wants(at, wants),
            Event::Elect(at) => self.elect(at),
            Event::LoseMaster(at) => {
                self.seen.happened.crashed += u64::from(self.jobs[at].is_up);
                self.jobs[at].is_up = false;
                self.jobs[at].server.step_down();
            }
            Event::Mishap => self.mishap(),
            Event::Cut => self.cut(),
        }
    }

    fn set_wants(&mut self, at: usize, wants: f64) {
        let now = self.now();
        let client = &mut self.clients[at];
        client.run_bucket(now);
        if wants > client.wants.as_f64() * 2.0 && client.session.hurry(client.clock.local(now)) {
            client.wake = now;
            self.events.at(now, Event::PollClient(at));
        }
        client.wants = amount(wants);
        client.session.set_demands(RESOURCE, vec![Demand::of(client.wants)]);
    }

    fn mishap(&mut self) {
        self.in_(60_000, Event::Mishap);
        let job = self.random.below(self.jobs.len() as u64) as usize;
        match self.random.below(30) {
            0..5 => {
                let client = self.random.below(self.clients.len() as u64) as usize;
                self.set_wants(client, self.clients[client].wants.as_f64() + 100.0);
            }
            5..15 => self.elect(job),
            _ => {
                let away = self.random.below(60_000);
                self.in_(0, Event::LoseMaster(job));
                self.in_(away, Event::Elect(job));
            }
        }
    }

    /// A new master takes over. It knows nothing but its fence, and perhaps who the clients are.
    fn elect(&mut self, at: usize) {
        let seed = self.random.next();
        let now = self.now();
        let known = self.setting.knows_clients || self.jobs[at].fence == 0;
        let job = &mut self.jobs[at];
        self.seen.happened.elected += u64::from(job.fence > 0);
        job.fence += 1;
        job.is_up = true;
        let clients = job
            .known
            .iter()
            .map(|client| LeaseHolder { resource: RESOURCE.into(), client: client.clone() });
        let clients = match self.setting.without {
            Some(Rule::Learn) => Some(Vec::new()),
            _ => known.then(|| clients.collect()),
        };
        job.server.lead(job.clock.local(now), job.fence, clients, seed);
    }

    fn poll_client(&mut self, at: usize) {
        let now = self.now();
        let client = &mut self.clients[at];
        if client.wake > now {
            return;
        }
        match client.session.poll(client.clock.local(now)) {
            Action::Wait(until) => client.wake = client.clock.global(until, now),
            Action::Ask(request) => {
                // In case that nothing comes back.
                client.wake = now + 5_100;
                self.send(Party::Client(at), request);
            }
        }
        self.events.at(self.clients[at].wake, Event::PollClient(at));
    }

    fn poll_job(&mut self, at: usize) {
        self.in_(100, Event::PollJob(at));
        let now = self.now();
        let job = &mut self.jobs[at];
        if !job.is_up {
            return;
        }
        let action = job.server.poll(job.clock.local(now));
        self.write_down(at);
        if let (Action::Ask(request), true) = (action, self.jobs[at].has_parent) {
            self.send(Party::Job(at), request);
        }
    }

    /// Keeps the list of clients that outlives the master.
    fn write_down(&mut self, at: usize) {
        let job = &mut self.jobs[at];
        for change in job.server.pool().take_changes() {
            match change {
                Change::Add { client, .. } => job.known.insert(client),
                Change::Remove { client, .. } => job.known.remove(&client),
            };
        }
    }
}

impl Client {
    fn capacity(&self, now: u64) -> Amount {
        self.session.capacity(self.clock.local(now), RESOURCE)
    }

    fn run_bucket(&mut self, now: u64) {
        let Self { bucket, session, clock, wants, .. } = self;
        if let Some(bucket) = bucket {
            bucket.run(now, *wants, |moment| session.capacity(clock.local(moment), RESOURCE));
        }
    }
}

fn amount(units: f64) -> Amount {
    Amount::from_f64(units).expect("an amount")
}
