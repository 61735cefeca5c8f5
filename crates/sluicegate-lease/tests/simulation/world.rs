//! A discrete-event simulation of clients and servers: the real [`Server`] and the real [`Session`], with a network
//! that loses, repeats, delays and reorders messages, clocks that differ, and masters that crash.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::time::Duration;

use sluicegate_lease::client::{Action, OnLoss, Session};
use sluicegate_lease::message::{Request, Response};
use sluicegate_lease::pool::{Change, Known};
use sluicegate_lease::{Amount, Demand, Server, Template, Templates};

use super::random::Random;

pub(crate) const RESOURCE: &str = "resource0";

/// How the world is.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) capacity: f64,
    pub(crate) lease: Duration,
    /// The refresh interval that each level tells its clients, the root first.
    pub(crate) refresh: [Duration; 3],
    /// Of 1,000 messages, how many are lost, and how many come twice.
    pub(crate) lost: u64,
    pub(crate) twice: u64,
    /// The longest time that a message takes, in milliseconds.
    pub(crate) latency: u64,
    /// Clocks run by up to one part in this many too quick or too slow.
    pub(crate) drift: Option<u64>,
    /// Whether the list of clients survives the master.
    pub(crate) knows_clients: bool,
}

impl Setting {
    pub(crate) fn doorman() -> Self {
        let refresh = [8, 4, 2].map(Duration::from_secs);
        Self {
            capacity: 500.0,
            lease: Duration::from_secs(60),
            refresh,
            lost: 0,
            twice: 0,
            latency: 5,
            drift: None,
            knows_clients: true,
        }
    }

    #[must_use]
    pub(crate) fn refresh(mut self, refresh: Duration) -> Self {
        self.refresh = [refresh; 3];
        self
    }

    #[must_use]
    pub(crate) fn bad_network(mut self) -> Self {
        (self.lost, self.twice, self.latency, self.drift) = (20, 20, 400, Some(300));
        self
    }
}

/// A group of servers of which at most one is the master.
struct Job {
    parent: Option<usize>,
    server: Server,
    is_up: bool,
    fence: u64,
    known: BTreeSet<Box<str>>,
    clock: Clock,
}

struct Client {
    job: usize,
    session: Session,
    wants: f64,
    clock: Clock,
    polled_at: u64,
}

/// A clock of a machine: it begins anywhere, and its speed is not quite right.
#[derive(Clone, Copy)]
struct Clock {
    offset: u64,
    drift: i64,
}

impl Clock {
    fn local(self, now: u64) -> u64 {
        let drifted = if self.drift == 0 { 0 } else { now as i64 / self.drift };
        self.offset + now.saturating_add_signed(drifted)
    }

    /// The first moment at which the clock shows `local` or more.
    fn global(self, local: u64, now: u64) -> u64 {
        let ahead = local.saturating_sub(self.local(now));
        // A clock that is slow by one part in 100 needs so much longer.
        now + ahead + ahead / 100 + 1
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Party {
    Client(usize),
    Job(usize),
}

enum Event {
    PollClient(usize),
    PollJob(usize),
    Asked { from: Party, job: usize, request: Request },
    Answered { to: Party, response: Option<Response> },
    ChangeWants(usize),
    Elect(usize),
    LoseMaster(usize),
    Spike(usize, f64),
    Mishap,
}

/// What has been seen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    /// How often the sum of all leases was above the capacity.
    pub(crate) over_grants: u64,
    /// The largest sum of all leases.
    pub(crate) largest: f64,
    /// Each second: what is wanted, at most the capacity; what is leased; what is both leased and wanted.
    pub(crate) samples: Vec<(f64, f64, f64)>,
    /// Requests that arrived at servers.
    pub(crate) requests: u64,
}

impl Seen {
    /// What was used, of what could have been used, after the first `skip` seconds.
    pub(crate) fn usage(&self, skip: usize) -> f64 {
        let samples = self.samples.iter().skip(skip);
        let (could, did) =
            samples.fold((0.0, 0.0), |sum, sample| (sum.0 + sample.0, sum.1 + sample.2));
        did / could
    }
}

pub(crate) struct World {
    setting: Setting,
    random: Random,
    now: u64,
    jobs: Vec<Job>,
    clients: Vec<Client>,
    events: BinaryHeap<Reverse<(u64, u64)>>,
    bodies: std::collections::HashMap<u64, Event>,
    event_count: u64,
    pub(crate) seen: Seen,
}

impl World {
    pub(crate) fn new(setting: Setting, seed: u64) -> Self {
        Self {
            setting,
            random: Random::new(seed),
            now: 0,
            jobs: Vec::new(),
            clients: Vec::new(),
            events: BinaryHeap::new(),
            bodies: std::collections::HashMap::new(),
            event_count: 0,
            seen: Seen::default(),
        }
    }

    /// Adds a group of servers at the given level; the root is 0.
    pub(crate) fn job(&mut self, level: usize, parent: Option<usize>) -> usize {
        let at = self.jobs.len();
        let template = match parent {
            None => {
                Template::new("*", Amount::from_f64(self.setting.capacity).expect("a capacity"))
            }
            Some(_) => Template::from_parent("*"),
        };
        let template = template.lease(self.setting.lease).refresh(self.setting.refresh[level]);
        let templates = Templates::new([template]).expect("a template that works");
        let name = format!("job-{at}");
        let server = match parent {
            None => Server::root(name, templates),
            Some(_) => Server::child(name, templates),
        };
        let clock = self.clock();
        let known = BTreeSet::new();
        self.jobs.push(Job { parent, server, is_up: false, fence: 0, known, clock });
        self.elect(at);
        self.at(0, Event::PollJob(at));
        at
    }

    /// Adds a client whose wants change by up to a tenth every ten seconds.
    pub(crate) fn client(&mut self, job: usize, wants: f64) -> usize {
        let at = self.clients.len();
        let mut session = Session::new(format!("client-{at}"), 0, self.random.next());
        session.add(RESOURCE, Amount::from_f64(wants).expect("wants"), OnLoss::Stop);
        let clock = self.clock();
        self.clients.push(Client { job, session, wants, clock, polled_at: 0 });
        let start = self.random.below(1_000);
        self.at(start, Event::PollClient(at));
        self.at(start, Event::ChangeWants(at));
        at
    }

    fn clock(&mut self) -> Clock {
        let offset = self.random.below(1_000_000_000);
        let sign = if self.random.happens(0.5) { 1 } else { -1 };
        Clock { offset, drift: self.setting.drift.map_or(0, |drift| sign * drift as i64) }
    }

    pub(crate) fn lose_master(&mut self, at: u64, job: usize) {
        self.at(at, Event::LoseMaster(job));
    }

    pub(crate) fn elect_master(&mut self, at: u64, job: usize) {
        self.at(at, Event::Elect(job));
    }

    /// A client wants so much from then on.
    pub(crate) fn spike(&mut self, at: u64, client: usize, wants: f64) {
        self.at(at, Event::Spike(client, wants));
    }

    /// Once a minute something bad happens, as in Doorman's seventh scenario.
    pub(crate) fn mishaps(&mut self) {
        self.at(60_000, Event::Mishap);
    }

    fn at(&mut self, time: u64, event: Event) {
        self.event_count += 1;
        self.events.push(Reverse((time.max(self.now), self.event_count)));
        self.bodies.insert(self.event_count, event);
    }

    /// Runs until `end`, in milliseconds.
    pub(crate) fn run(&mut self, end: u64) {
        let mut next_sample = (self.now / 1_000 + 1) * 1_000;
        while let Some(&Reverse((time, id))) = self.events.peek() {
            while next_sample <= time.min(end) {
                self.now = next_sample;
                self.sample();
                next_sample += 1_000;
            }
            if time > end {
                break;
            }
            self.events.pop();
            self.now = time;
            let event = self.bodies.remove(&id).expect("each event has a body");
            self.happen(event);
        }
        self.now = end;
    }

    /// What each client may use.
    pub(crate) fn leases(&self) -> Vec<f64> {
        self.clients.iter().map(|client| self.lease_of(client)).collect()
    }

    fn lease_of(&self, client: &Client) -> f64 {
        client.session.capacity(client.clock.local(self.now), RESOURCE).as_f64()
    }

    fn sample(&mut self) {
        let (mut wanted, mut leased, mut used) = (0.0, 0.0, 0.0);
        for client in &self.clients {
            let lease = self.lease_of(client);
            wanted += client.wants;
            leased += lease;
            used += lease.min(client.wants);
        }
        self.seen.samples.push((wanted.min(self.setting.capacity), leased, used));
        self.check(leased);
    }

    fn check(&mut self, leased: f64) {
        self.seen.largest = self.seen.largest.max(leased);
        self.seen.over_grants += u64::from(leased > self.setting.capacity + 1e-3);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::PollClient(at) => self.poll_client(at),
            Event::PollJob(at) => self.poll_job(at),
            Event::Asked { from, job, request } => self.asked(from, job, &request),
            Event::Answered { to, response } => self.answered(to, response),
            Event::ChangeWants(at) => {
                let change = 0.1 * (1.0 - 2.0 * self.random.fraction());
                let wants = self.clients[at].wants * (1.0 + change);
                self.set_wants(at, wants);
                self.at(self.now + 10_000, Event::ChangeWants(at));
            }
            Event::Spike(at, wants) => self.set_wants(at, wants),
            Event::Elect(at) => self.elect(at),
            Event::LoseMaster(at) => {
                self.jobs[at].is_up = false;
                self.jobs[at].server.step_down();
            }
            Event::Mishap => self.mishap(),
        }
    }

    fn set_wants(&mut self, at: usize, wants: f64) {
        let client = &mut self.clients[at];
        client.wants = wants;
        let wants = Demand::of(Amount::from_f64(wants).expect("wants"));
        client.session.set_demands(RESOURCE, vec![wants]);
    }

    fn mishap(&mut self) {
        self.at(self.now + 60_000, Event::Mishap);
        let job = self.random.below(self.jobs.len() as u64) as usize;
        match self.random.below(30) {
            0..5 => {
                let client = self.random.below(self.clients.len() as u64) as usize;
                self.set_wants(client, self.clients[client].wants + 100.0);
            }
            5..15 => self.elect(job),
            _ => {
                let away = self.random.below(60_000);
                self.at(self.now, Event::LoseMaster(job));
                self.at(self.now + away, Event::Elect(job));
            }
        }
    }

    /// A new master takes over. It knows nothing but its fence, and perhaps who the clients are.
    fn elect(&mut self, at: usize) {
        let seed = self.random.next();
        let known = self.setting.knows_clients || self.jobs[at].fence == 0;
        let job = &mut self.jobs[at];
        job.fence += 1;
        job.is_up = true;
        let clients = job
            .known
            .iter()
            .map(|client| Known { resource: RESOURCE.into(), client: client.clone() });
        let clients = known.then(|| clients.collect());
        job.server.lead(job.clock.local(self.now), job.fence, clients, seed);
    }

    fn poll_client(&mut self, at: usize) {
        if self.clients[at].polled_at == self.now && self.now > 0 {
            return;
        }
        let client = &mut self.clients[at];
        client.polled_at = self.now;
        match client.session.poll(client.clock.local(self.now)) {
            Action::Wait(u64::MAX) => {}
            Action::Wait(until) => {
                let time = client.clock.global(until, self.now);
                self.at(time, Event::PollClient(at));
            }
            Action::Ask(request) => {
                let job = client.job;
                self.send(Party::Client(at), job, request);
                // In case that nothing comes back.
                self.at(self.now + 5_100, Event::PollClient(at));
            }
        }
    }

    fn poll_job(&mut self, at: usize) {
        self.at(self.now + 100, Event::PollJob(at));
        let job = &mut self.jobs[at];
        if !job.is_up {
            return;
        }
        let local = job.clock.local(self.now);
        let action = job.server.poll(local);
        self.write_down(at);
        if let (Action::Ask(request), Some(parent)) = (action, self.jobs[at].parent) {
            self.send(Party::Job(at), parent, request);
        }
    }

    /// Keeps the list of clients that outlives the master.
    fn write_down(&mut self, at: usize) {
        let job = &mut self.jobs[at];
        for change in job.server.pool().take_changes() {
            match change {
                Change::Joined { client, .. } => job.known.insert(client),
                Change::Left { client, .. } => job.known.remove(&client),
            };
        }
    }

    fn send(&mut self, from: Party, job: usize, request: Request) {
        for _ in 0..self.copies() {
            let time = self.arrival();
            self.at(time, Event::Asked { from, job, request: request.clone() });
        }
    }

    fn copies(&mut self) -> u64 {
        match self.random.below(1_000) {
            chance if chance < self.setting.lost => 0,
            chance if chance < self.setting.lost + self.setting.twice => 2,
            _ => 1,
        }
    }

    fn arrival(&mut self) -> u64 {
        // One message in a hundred is very late.
        let slow = if self.setting.lost > 0 && self.random.happens(0.01) { 20 } else { 1 };
        self.now + 1 + self.random.below(self.setting.latency * slow)
    }

    fn asked(&mut self, from: Party, at: usize, request: &Request) {
        self.seen.requests += 1;
        let job = &mut self.jobs[at];
        let local = job.clock.local(self.now);
        let response = if job.is_up { job.server.answer(local, request).ok() } else { None };
        self.write_down(at);
        for _ in 0..self.copies() {
            let time = self.arrival();
            self.at(time, Event::Answered { to: from, response: response.clone() });
        }
    }

    fn answered(&mut self, to: Party, response: Option<Response>) {
        match (to, response) {
            (Party::Client(at), Some(response)) => {
                let client = &mut self.clients[at];
                client.session.answered(client.clock.local(self.now), &response);
                let leased = self.leases().iter().sum();
                self.check(leased);
                self.poll_client(at);
            }
            (Party::Client(at), None) => {
                let client = &mut self.clients[at];
                client.session.failed(client.clock.local(self.now));
                self.poll_client(at);
            }
            (Party::Job(at), response) => {
                let job = &mut self.jobs[at];
                let local = job.clock.local(self.now);
                match response {
                    Some(response) => job.server.answered(local, &response),
                    None => job.server.failed(local),
                }
            }
        }
    }
}
