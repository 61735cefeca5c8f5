use crate::amount::Amount;
use crate::client::{Action, Session};
use crate::message::{Request, Response};
use crate::pool::{AskError, LeaseHolder, Pool};
use crate::template::Templates;

/// A server: a [`Pool`], and the [`Session`] with a parent if it leases its capacity.
///
/// Like its parts, it has no clock and no network.
#[derive(Debug, Clone)]
pub struct Server {
    name: Box<str>,
    pool: Pool,
    parent: Option<Session>,
    /// The number of the last request to the parent.
    last: u64,
    has_parent: bool,
    /// When it may ask its parent early again.
    hurries: u64,
}

/// The instance of all servers of which one is the master: each takes over what the last one had.
const MASTERS: u64 = 1;
/// A server asks its parent early if its clients want much more, but not more often than this, in milliseconds.
const HURRY_EVERY: u64 = 500;

impl Server {
    /// Makes the root of a tree of servers, or the only one.
    pub fn root(name: impl Into<Box<str>>, templates: Templates) -> Self {
        let pool = Pool::new(templates);
        Self { name: name.into(), pool, parent: None, last: 0, has_parent: false, hurries: 0 }
    }

    /// Makes a server that leases its capacity from a parent. All servers of which one is the master share a name.
    pub fn child(name: impl Into<Box<str>>, templates: Templates) -> Self {
        Self { has_parent: true, ..Self::root(name, templates) }
    }

    /// This server has become the master: see [`Pool::lead`]. `seed` is for jitter.
    ///
    /// A server with a parent numbers its requests from the fence, so that has at most 32 bits.
    pub fn lead(&mut self, now: u64, fence: u64, known: Option<Vec<LeaseHolder>>, seed: u64) {
        self.pool.lead(now, fence, known);
        self.close_parent();
        // Its numbers are above those of all earlier masters. A master that goes on with its fence begins above its own.
        let first = (fence << 32).max(self.last);
        // The parent knows all masters by one name and one instance, so each takes over what the last one held.
        let session = || Session::new(self.name.clone(), first, seed).instance(MASTERS);
        self.parent = self.has_parent.then(session);
    }

    /// This server is not the master any more.
    pub fn step_down(&mut self) {
        self.pool.step_down();
        self.close_parent();
    }

    fn close_parent(&mut self) {
        if let Some(session) = self.parent.take() {
            self.last = session.sequence();
        }
    }

    /// Whether it leases its capacity from a parent.
    pub fn has_parent(&self) -> bool {
        self.has_parent
    }

    /// The pool.
    pub fn pool(&mut self) -> &mut Pool {
        &mut self.pool
    }

    /// Answers a request. See [`Pool::take_changes`] for what to write down before the answer is sent.
    ///
    /// # Errors
    /// This server is not the master.
    pub fn answer(&mut self, now: u64, request: &Request) -> Result<Response, AskError> {
        self.pool.answer(now, request)
    }

    /// What to send to the parent, and when to call this again.
    pub fn poll(&mut self, now: u64) -> Action {
        self.pool.tick(now);
        let Some(session) = &mut self.parent else { return Action::Wait(u64::MAX) };
        if now >= self.hurries && self.pool.wants_much_more() && session.hurry(now) {
            self.hurries = now.saturating_add(HURRY_EVERY);
        }
        // Nothing new is wanted and nothing is due, so the lists below need not be written.
        if self.pool.leased().all(|leased| session.asks_for(leased)) && !session.is_due(now) {
            return session.poll(now);
        }
        let is_gone = |resource: &&str| !self.pool.is_leased(resource);
        let gone: Vec<Box<str>> = session.resources().filter(is_gone).map(Into::into).collect();
        for resource in gone {
            // Nobody asks for it any more: it goes back to the parent.
            if session.has_returned(now, &resource) {
                session.remove(&resource);
            } else {
                // Not dropped at once: without a last report, the parent would count it until its lease ends.
                session.set_demands(&resource, Vec::new());
                session.set_outstanding(&resource, Amount::ZERO, false);
            }
        }
        for resource in self.pool.leased() {
            let outstanding = self.pool.outstanding(resource);
            session.set_demands(resource, self.pool.demands(resource));
            session.set_outstanding(resource, outstanding, self.pool.is_learning(resource));
        }
        let action = session.poll(now);
        if let Action::Ask(request) = &action {
            request.resources.iter().for_each(|asked| self.pool.told_parent(&asked.resource));
        }
        action
    }

    /// The parent has answered.
    pub fn answered(&mut self, now: u64, response: &Response) {
        let Some(session) = &mut self.parent else { return };
        let asked: Vec<Box<str>> = session.asked().map(Into::into).collect();
        session.answered(now, response);
        for resource in asked {
            if self.pool.is_leased(&resource) {
                let (capacity, until) = session.lease(&resource);
                self.pool.supply(&resource, capacity, until);
            }
        }
    }

    /// What decides how it goes on: see [`Session::key`].
    #[cfg(test)]
    pub(crate) fn key(&self, now: u64) -> impl std::fmt::Debug + '_ {
        (&self.pool, self.parent.as_ref().map(|session| session.key(now)))
    }

    /// Another server is the master among the parents.
    pub fn redirected(&mut self, now: u64) {
        if let Some(session) = &mut self.parent {
            session.redirected(now);
        }
    }

    /// The request to the parent has failed.
    pub fn failed(&mut self, now: u64) {
        if let Some(session) = &mut self.parent {
            session.failed(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Server;
    use crate::amount::Amount;
    use crate::client::{Action, OnLoss, Session};
    use crate::fair::Demand;
    use crate::pool::{Answer, Ask};
    use crate::template::{Template, Templates};

    const SECOND: u64 = 1_000;

    fn ask(session: &mut Session, server: &mut Server, now: u64) {
        if let Action::Ask(request) = session.poll(now) {
            session.answered(now, &server.answer(now, &request).unwrap());
        }
    }

    /// Runs a tree of two servers and a client until `end`.
    fn run(root: &mut Server, child: &mut Server, client: &mut Session, from: u64, end: u64) {
        for now in (from..end).step_by(100) {
            ask(client, child, now);
            if let Action::Ask(request) = child.poll(now) {
                child.answered(now, &root.answer(now, &request).unwrap());
            }
            root.poll(now);
        }
    }

    /// A tree of two servers.
    fn tree(capacity: u64, refresh: Duration) -> (Server, Server) {
        let templates = |template: Template| {
            Templates::new([template.lease(Duration::from_secs(10)).refresh(refresh)]).unwrap()
        };
        let mut root = Server::root("root", templates(Template::new("*", Amount::units(capacity))));
        let mut child = Server::child("child", templates(Template::from_parent("*")));
        root.lead(0, 1, Some(Vec::new()), 0);
        child.lead(0, 1, Some(Vec::new()), 0);
        (root, child)
    }

    #[test]
    fn a_server_whose_clients_want_much_more_asks_its_parent_at_once() {
        let (mut root, mut child) = tree(100, Duration::from_secs(5));
        let mut client = Session::new("client", 0, 0);
        client.add("db", Amount::units(10), OnLoss::Stop);
        run(&mut root, &mut child, &mut client, 0, 8 * SECOND);
        client.set_demands("db", vec![Demand::of(Amount::units(80))]);
        assert!(client.hurry(8 * SECOND));
        run(&mut root, &mut child, &mut client, 8 * SECOND, 10 * SECOND);
        assert_eq!(client.capacity(10 * SECOND, "db"), Amount::units(80));

        // A client that changes its mind all the time does not make its server ask all the time.
        let mut asked = 0;
        for now in (10 * SECOND..15 * SECOND).step_by(100) {
            let wants = if now % 200 == 0 { 1 } else { 90 };
            client.set_demands("db", vec![Demand::of(Amount::units(wants))]);
            client.hurry(now);
            ask(&mut client, &mut child, now);
            if let Action::Ask(request) = child.poll(now) {
                asked += 1;
                child.answered(now, &root.answer(now, &request).unwrap());
            }
        }
        assert!(asked <= 12, "{asked} times in five seconds");
    }

    #[test]
    fn a_master_that_goes_on_after_a_pause_asks_its_parent_with_larger_numbers() {
        let (mut root, mut child) = tree(100, Duration::from_secs(1));
        let mut client = Session::new("client", 0, 0);
        client.add("db", Amount::units(30), OnLoss::Stop);
        run(&mut root, &mut child, &mut client, 0, 5 * SECOND);
        child.step_down();
        child.lead(5 * SECOND, 1, None, 1);
        child
            .pool()
            .ask(5 * SECOND, &Ask::new("other", "db", 1, 1, &[Demand::of(Amount::ZERO)]))
            .unwrap();
        let Action::Ask(request) = child.poll(5 * SECOND) else { panic!("it asks at once") };
        let response = root.answer(5 * SECOND, &request).unwrap();
        assert!(matches!(response.answers[..], [Ok(Answer::Grant(_))]), "{response:?}");
    }

    #[test]
    fn whole_units_stay_whole_on_their_way_through_a_tree() {
        let (mut root, _) = tree(31, Duration::from_secs(1));
        let child = |name: &str| {
            let template = Template::from_parent("*").lease(Duration::from_secs(10));
            let templates = Templates::new([template.refresh(Duration::from_secs(1))]).unwrap();
            let mut child = Server::child(name, templates);
            child.lead(0, 1, Some(Vec::new()), 0);
            child
        };
        let mut children = ["one", "two"].map(child);
        let mut clients: Vec<_> = (0..40)
            .map(|number| {
                let mut client = Session::new(format!("client-{number}"), 0, number);
                client.set_demands("db", vec![Demand::of(Amount::units(1)).whole()]);
                client
            })
            .collect();
        let mut used = 0;
        for now in (0..60 * SECOND).step_by(10) {
            for (number, client) in clients.iter_mut().enumerate() {
                ask(client, &mut children[number % 2], now);
            }
            for child in &mut children {
                if let Action::Ask(request) = child.poll(now) {
                    child.answered(now, &root.answer(now, &request).unwrap());
                }
            }
            let all: Amount = clients.iter().map(|client| client.capacity(now, "db")).sum();
            assert!(all <= Amount::units(31), "{all}");
            assert_eq!(all, Amount::units(all.as_units()));
            used += if now >= 20 * SECOND { all.as_units() } else { 0 };
        }
        let used = used as f64 / 4_000.0;
        assert!(used >= 29.0, "{used} of 31 are used");
    }

    /// What a client may use after a minute without the root, and how often it asks in this minute and the next.
    fn without_root(on_loss: OnLoss, safe: Option<Amount>) -> (f64, u64) {
        let (mut root, _) = tree(100, Duration::from_secs(1));
        let template = Template::from_parent("*")
            .lease(Duration::from_secs(10))
            .refresh(Duration::from_secs(1));
        let template = safe.map_or(template.clone(), |safe| template.safe(safe));
        let mut child = Server::child("child", Templates::new([template]).unwrap());
        child.lead(0, 1, Some(Vec::new()), 0);
        let mut client = Session::new("client", 0, 0);
        client.add("db", Amount::units(30), on_loss);
        run(&mut root, &mut child, &mut client, 0, 5 * SECOND);
        assert_eq!(client.capacity(5 * SECOND, "db"), Amount::units(30));
        let before = client.sequence();
        for now in (5 * SECOND..65 * SECOND).step_by(10) {
            ask(&mut client, &mut child, now);
            if let Action::Ask(_) = child.poll(now) {
                child.failed(now);
            }
        }
        let used = client.capacity(65 * SECOND, "db");
        // The root is back.
        run(&mut root, &mut child, &mut client, 65 * SECOND, 130 * SECOND);
        assert_eq!(client.lease("db").0, Amount::units(30));
        (used.as_f64(), client.sequence() - before)
    }

    #[test]
    fn a_client_of_a_server_without_a_lease_does_what_it_was_told() {
        let five = Some(Amount::units(5));
        // Where the template names no safe capacity, it is the one client's share of all that the server had.
        for (on_loss, safe, expected) in [
            (OnLoss::Stop, None, 0.0),
            (OnLoss::Keep, None, 30.0),
            (OnLoss::Safe, None, 30.0),
            (OnLoss::Safe, five, 5.0),
        ] {
            let (used, asked) = without_root(on_loss, safe);
            assert_eq!(used, expected, "{on_loss:?} {safe:?}");
            assert!(asked < 400, "{on_loss:?} {safe:?}: {asked} times in two minutes");
        }
    }

    #[test]
    fn a_server_of_ten_thousand_resources_leases_them_all() {
        let (mut root, mut child) = tree(100, Duration::from_secs(1));
        let mut client = Session::new("client", 0, 0);
        for number in 0..10_000 {
            client.add(&format!("resource-{number}"), Amount::units(number % 100), OnLoss::Stop);
        }
        run(&mut root, &mut child, &mut client, 0, 4 * SECOND);
        for number in 0..10_000 {
            let capacity = client.capacity(4 * SECOND, &format!("resource-{number}"));
            assert_eq!(capacity, Amount::units(number % 100));
        }
    }

    #[test]
    fn a_server_leases_what_its_clients_want_and_gives_it_back() {
        let (mut root, mut child) = tree(100, Duration::from_secs(1));
        let mut client = Session::new("client", 0, 0);
        client.add("db", Amount::units(30), OnLoss::Stop);

        run(&mut root, &mut child, &mut client, 0, 10 * SECOND);
        assert_eq!(client.capacity(10 * SECOND, "db"), Amount::units(30));
        assert_eq!(root.pool().outstanding("db"), Amount::units(30));

        let release = client.close().unwrap();
        child.pool().release(10 * SECOND, &release);
        run(&mut root, &mut child, &mut client, 10 * SECOND, 14 * SECOND);
        assert_eq!(root.pool().outstanding("db"), Amount::ZERO);
        let session = child.parent.as_ref().unwrap();
        assert_eq!(session.resources().count(), 0, "it asks for nothing any more");
    }
}
