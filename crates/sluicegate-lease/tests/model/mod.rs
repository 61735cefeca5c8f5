//! Every order in which messages can come, be lost and come twice, and servers can crash, within small bounds. The
//! state is the real [`Server`] and [`Session`]; `stateright` walks through it.

mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::time::Duration;

use sluicegate_lease::client::{Action as Next, OnLoss, Session};
use sluicegate_lease::message::{Request, Response};
use sluicegate_lease::pool::{Change, LeaseHolder};
use sluicegate_lease::{Amount, Demand, Server, Template, Templates};
use stateright::{Model, Property};

use crate::simulation::Rule;

const RESOURCE: &str = "db";
const CAPACITY: u64 = 2;
/// Time goes in steps of one refresh interval; a lease is three of them.
const STEP: u64 = 5_000;
const STEPS_IN_LEASE: u64 = 3;

/// The bounds of a model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Each server is on the list with the number of its parent.
    pub(crate) parents: &'static [Option<usize>],
    /// The server of each client.
    pub(crate) clients: &'static [usize],
    /// How long it goes.
    pub(crate) steps: u64,
    /// How many answers are lost.
    pub(crate) losses: u8,
    /// How many requests come twice.
    pub(crate) repeats: u8,
    /// How many messages are late: the others come in the step in which they were sent.
    pub(crate) late: u8,
    pub(crate) crashes: u8,
    /// How often a client may change its mind between wanting everything and nothing.
    pub(crate) changes: u8,
    /// The clients are processes of one name.
    pub(crate) one_name: bool,
    /// How many clients and servers never reach their server again.
    pub(crate) cuts: u8,
    /// A rule that is not in force.
    pub(crate) without: Option<Rule>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Party {
    Client(usize),
    Job(usize),
}

#[derive(Debug, Clone, PartialEq)]
enum Message {
    Request { from: Party, to: usize, body: Request },
    Response { to: Party, body: Option<Response> },
}

#[derive(Debug, Clone)]
pub(crate) struct State {
    now: u64,
    jobs: Vec<Job>,
    clients: Vec<(usize, Session)>,
    /// Those that are late already come last.
    messages: Vec<Message>,
    late: usize,
    cut: BTreeSet<Party>,
    left: Bounds,
    /// The numbers of the newest requests, and of requests without the rule about stale ones.
    newest: BTreeMap<Party, u64>,
    renumbered: u64,
}

#[derive(Debug, Clone)]
struct Job {
    server: Server,
    fence: u64,
    known: BTreeSet<Box<str>>,
}

/// What can happen next.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// A step of time passes. Messages that have not come are late.
    Time,
    /// A message comes, and the answer to a request at once.
    Deliver(usize),
    /// A request comes, and its answer is late.
    DelayAnswer(usize),
    /// A request comes, and its answer is lost.
    LoseAnswer(usize),
    /// A request comes and is answered, and will come again.
    Repeat(usize),
    /// A new master takes over, which knows who the clients are.
    Crash(usize),
    /// A client or a server does not reach its server any more.
    Cut(Party),
    /// A client wants something else.
    Change(usize, u64),
}

impl Bounds {
    fn templates(parent: Option<usize>) -> Templates {
        let template = match parent {
            None => Template::new("*", Amount::units(CAPACITY)),
            Some(_) => Template::from_parent("*"),
        };
        let lease = Duration::from_millis(STEP * STEPS_IN_LEASE);
        Templates::new([template.lease(lease).refresh(Duration::from_millis(STEP))]).unwrap()
    }
}

impl State {
    fn new(bounds: Bounds) -> Self {
        let jobs = bounds.parents.iter().enumerate().map(|(at, parent)| {
            let (name, templates) = (format!("job-{at}"), Bounds::templates(*parent));
            let server = match parent {
                None => Server::root(name, templates),
                Some(_) => Server::child(name, templates),
            };
            Job { server, fence: 0, known: BTreeSet::new() }
        });
        let clients = bounds.clients.iter().enumerate().map(|(at, job)| {
            let mut session = match bounds.one_name {
                // Numbers of the second one are larger, as if the first one had crashed before that started.
                true => Session::new("client", at as u64 * 1_000, 0).instance(at as u64 + 2),
                false => Session::new(format!("client-{at}"), 0, 0),
            };
            session = session.timeout(STEP);
            // The first one wants everything from the beginning.
            let wants = if at == 0 { CAPACITY } else { 0 };
            session.add(RESOURCE, Amount::units(wants), OnLoss::Stop);
            (*job, session)
        });
        let (jobs, clients) = (jobs.collect(), clients.collect());
        let messages = Vec::new();
        let mut state = Self {
            now: 0,
            jobs,
            clients,
            messages,
            late: 0,
            cut: BTreeSet::new(),
            left: bounds,
            newest: BTreeMap::new(),
            renumbered: 0,
        };
        (0..state.jobs.len()).for_each(|job| state.elect(job));
        state.poll();
        state
    }

    fn elect(&mut self, at: usize) {
        let job = &mut self.jobs[at];
        job.fence += 1;
        let known = job.known.iter();
        let known =
            known.map(|client| LeaseHolder { resource: RESOURCE.into(), client: client.clone() });
        let known = match self.left.without {
            Some(Rule::Learn) => Vec::new(),
            _ => known.collect(),
        };
        job.server.lead(self.now, job.fence, Some(known), 0);
    }

    /// Everybody sends what is due.
    fn poll(&mut self) {
        for at in 0..self.clients.len() {
            let (job, session) = &mut self.clients[at];
            if let Next::Ask(body) = session.poll(self.now) {
                let to = *job;
                self.send(Party::Client(at), to, body);
            }
        }
        for at in 0..self.jobs.len() {
            let action = self.jobs[at].server.poll(self.now);
            self.write_down(at);
            let parent = self.left.parents[at];
            if let (Next::Ask(body), Some(to)) = (action, parent) {
                self.send(Party::Job(at), to, body);
            }
        }
    }

    fn write_down(&mut self, at: usize) {
        let job = &mut self.jobs[at];
        for change in job.server.pool().take_changes() {
            match change {
                Change::Add { client, .. } => job.known.insert(client),
                Change::Remove { client, .. } => job.known.remove(&client),
            };
        }
    }

    fn send(&mut self, from: Party, to: usize, body: Request) {
        self.newest.insert(from, body.sequence);
        if self.cut.contains(&from) {
            return;
        }
        let at = self.messages.len() - self.late;
        self.messages.insert(at, Message::Request { from, to, body });
    }

    fn remove(&mut self, at: usize) -> Message {
        self.late -= usize::from(at >= self.messages.len() - self.late);
        self.messages.remove(at)
    }

    /// Delivers a message, and returns the answer to a request.
    fn deliver(&mut self, message: Message) -> Option<Message> {
        match message {
            Message::Request { from, to, mut body } => {
                let sequence = body.sequence;
                if let Some(rule) = self.left.without {
                    self.renumbered += u64::from(rule == Rule::IgnoreStaleRequests);
                    rule.bend_request(&mut body, self.jobs[to].fence, self.renumbered);
                }
                let answer = self.jobs[to].server.answer(self.now, &body).ok();
                self.write_down(to);
                let body = answer.map(|answer| Response { sequence, ..answer });
                return Some(Message::Response { to: from, body });
            }
            Message::Response { to, body: Some(mut body) } => {
                if let Some(rule) = self.left.without {
                    let is_server = matches!(to, Party::Job(_));
                    rule.bend_response(&mut body, self.newest[&to], is_server);
                }
                match to {
                    Party::Client(at) => self.clients[at].1.answered(self.now, &body),
                    Party::Job(at) => self.jobs[at].server.answered(self.now, &body),
                }
            }
            Message::Response { body: None, .. } => {}
        }
        None
    }

    fn deliver_all(&mut self, message: Message) {
        if let Some(answer) = self.deliver(message) {
            self.deliver(answer);
        }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Time => {
                self.left.late -= (self.messages.len() - self.late) as u8;
                self.late = self.messages.len();
                self.now += STEP;
            }
            Step::Deliver(at) => {
                let message = self.remove(at);
                self.deliver_all(message);
            }
            Step::DelayAnswer(at) => {
                self.left.late -= 1;
                let message = self.remove(at);
                let answer = self.deliver(message);
                self.messages.extend(answer);
                self.late += 1;
            }
            Step::LoseAnswer(at) => {
                self.left.losses -= 1;
                let message = self.remove(at);
                self.deliver(message);
            }
            Step::Repeat(at) => {
                self.left.repeats -= 1;
                let message = self.remove(at);
                self.messages.push(message.clone());
                self.late += 1;
                self.deliver_all(message);
            }
            Step::Crash(at) => {
                self.left.crashes -= 1;
                self.elect(at);
            }
            Step::Cut(party) => {
                self.left.cuts -= 1;
                self.cut.insert(party);
            }
            Step::Change(at, wants) => {
                self.left.changes -= 1;
                let wants = vec![Demand::of(Amount::units(wants))];
                self.clients[at].1.set_demands(RESOURCE, wants);
            }
        }
        self.poll();
    }

    fn leased(&self) -> Amount {
        self.clients.iter().map(|(_, session)| session.capacity(self.now, RESOURCE)).sum()
    }

    /// All that decides what can happen from here on. Jitter does not: time goes in steps.
    fn key(&self) -> String {
        let clients: Vec<_> =
            self.clients.iter().map(|(_, session)| session.key(self.now)).collect();
        let jobs: Vec<_> =
            self.jobs.iter().map(|job| (job.server.key(self.now), &job.known)).collect();
        let Bounds { losses, repeats, late, crashes, changes, cuts, .. } = self.left;
        let left = (losses, repeats, late, crashes, changes, cuts, self.late);
        format!("{} {left:?} {:?} {clients:?} {jobs:?} {:?}", self.now, self.cut, self.messages)
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Hash for State {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl Model for Bounds {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(*self)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Step>) {
        let in_time = state.messages.len() - state.late;
        if state.now < self.steps * STEP && in_time <= usize::from(state.left.late) {
            actions.push(Step::Time);
        }
        for (at, message) in state.messages.iter().enumerate() {
            actions.push(Step::Deliver(at));
            if matches!(message, Message::Response { .. }) {
                continue;
            }
            let left = state.left;
            actions.extend((left.late > 0).then_some(Step::DelayAnswer(at)));
            actions.extend((left.losses > 0).then_some(Step::LoseAnswer(at)));
            actions.extend((left.repeats > 0).then_some(Step::Repeat(at)));
        }
        if state.left.crashes > 0 {
            actions.extend((0..state.jobs.len()).map(Step::Crash));
        }
        if state.left.cuts > 0 {
            let jobs = (0..state.jobs.len()).filter(|at| self.parents[*at].is_some());
            let parties = jobs.map(Party::Job).chain((0..state.clients.len()).map(Party::Client));
            actions.extend(parties.map(Step::Cut));
        }
        if state.left.changes > 0 {
            for at in 0..state.clients.len() {
                actions.extend([Step::Change(at, 0), Step::Change(at, CAPACITY)]);
            }
        }
    }

    fn next_state(&self, last: &State, action: Step) -> Option<State> {
        let mut state = last.clone();
        state.take(&action);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("never more than there is", |_, state: &State| {
                state.leased() <= Amount::units(CAPACITY)
            }),
            Property::sometimes("the second client gets something", |_, state: &State| {
                state.clients[1].1.capacity(state.now, RESOURCE) > Amount::ZERO
            }),
        ]
    }
}
