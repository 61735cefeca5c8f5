//! The network of the simulation: messages that are lost, come twice, late or in another order, and links that break.

use sluicegate_lease::message::{Request, Response};

use super::{Event, World};

/// The way to a server.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Link {
    to: usize,
    /// Until when requests, and answers, do not get through.
    cut: [u64; 2],
    /// When the last request, and the last answer, arrives.
    last: [u64; 2],
    /// The number of the newest request.
    newest: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Party {
    Client(usize),
    Job(usize),
}

impl Link {
    pub(super) fn to(to: usize) -> Self {
        Self { to, ..Self::default() }
    }
}

const REQUESTS: usize = 0;
const ANSWERS: usize = 1;

impl World {
    /// Breaks the way of somebody to its server for up to a lease and a half, in both directions or in one.
    pub(super) fn cut(&mut self) {
        let every = self.setting.network.cut_every.unwrap_or(u64::MAX / 2_000);
        let next = self.random.below(every * 2_000);
        self.in_(next, Event::Cut);
        let parties = self.clients.len() + self.jobs.len() - 1;
        let at = self.random.below(parties as u64) as usize;
        let until = self.now() + self.random.below(90_000);
        let ways = self.random.below(3);
        let party = match at.checked_sub(self.clients.len()) {
            None => Party::Client(at),
            // The first one is the root.
            Some(job) => Party::Job(job + 1),
        };
        let link = self.link(party);
        for way in [REQUESTS, ANSWERS] {
            if ways != way as u64 {
                link.cut[way] = until;
            }
        }
    }

    fn link(&mut self, party: Party) -> &mut Link {
        match party {
            Party::Client(at) => &mut self.clients[at].link,
            Party::Job(at) => &mut self.jobs[at].link,
        }
    }

    pub(super) fn send(&mut self, from: Party, mut request: Request) {
        let link = self.link(from);
        link.newest = request.sequence;
        let to = link.to;
        if let Some(rule) = self.setting.without {
            let number = request.sequence;
            rule.bend_request(&mut request, self.jobs[to].fence, number);
        }
        let [first, second] = self.arrivals(from, REQUESTS);
        if let Some(time) = second {
            self.events.at(time, Event::Asked { from, request: request.clone() });
        }
        if let Some(time) = first {
            self.events.at(time, Event::Asked { from, request });
        }
    }

    /// When a message arrives, if it does, and when it arrives a second time.
    fn arrivals(&mut self, party: Party, way: usize) -> [Option<u64>; 2] {
        let now = self.now();
        if self.link(party).cut[way] > now {
            self.seen.happened.cut += 1;
            return [None; 2];
        }
        let network = &self.setting.network;
        let chance = self.random.below(1_000);
        if chance < network.lost {
            self.seen.happened.lost += 1;
            return [None; 2];
        }
        let comes_twice = chance < network.lost + network.twice;
        self.seen.happened.twice += u64::from(comes_twice);
        let first = self.arrival(party, way);
        [Some(first), comes_twice.then(|| self.arrival(party, way))]
    }

    fn arrival(&mut self, party: Party, way: usize) -> u64 {
        let network = &self.setting.network;
        let is_late = network.late > 0 && self.random.below(1_000) < network.late;
        let longest = network.latency * if is_late { 20 } else { 1 };
        let time = self.now() + 1 + self.random.below(longest);
        self.seen.happened.late += u64::from(is_late);
        let link = self.link(party);
        let overtakes = time < link.last[way];
        link.last[way] = link.last[way].max(time);
        self.seen.happened.overtaken += u64::from(overtakes);
        time
    }

    pub(super) fn asked(&mut self, from: Party, request: &Request) {
        self.seen.happened.requests += 1;
        let now = self.now();
        let at = self.link(from).to;
        let job = &mut self.jobs[at];
        let local = job.clock.local(now);
        let response = if job.is_up { job.server.answer(local, request).ok() } else { None };
        self.write_down(at);
        let [first, second] = self.arrivals(from, ANSWERS);
        if let Some(time) = second {
            self.events.at(time, Event::Answered { to: from, response: response.clone() });
        }
        if let Some(time) = first {
            self.events.at(time, Event::Answered { to: from, response });
        }
    }

    pub(super) fn answered(&mut self, to: Party, mut response: Option<Response>) {
        let now = self.now();
        if let (Some(rule), Some(response)) = (self.setting.without, &mut response) {
            let newest = self.link(to).newest;
            rule.bend_response(response, newest, matches!(to, Party::Job(_)));
        }
        match to {
            Party::Client(at) => {
                let client = &mut self.clients[at];
                client.run_bucket(now);
                let local = client.clock.local(now);
                match response {
                    Some(response) => client.session.answered(local, &response),
                    None => client.session.failed(local),
                }
                client.wake = now;
                self.count_client(at);
                self.poll_client(at);
            }
            Party::Job(at) => {
                let job = &mut self.jobs[at];
                let local = job.clock.local(now);
                match response {
                    Some(response) => job.server.answered(local, &response),
                    None => job.server.failed(local),
                }
            }
        }
    }
}
