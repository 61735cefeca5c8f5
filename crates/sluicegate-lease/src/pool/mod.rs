//! The part that decides what each client may use.
//!
//! A [`Pool`] knows no clock and no network. Time is passed in, as milliseconds since any moment.
//!
//! # Why the sum is never more than the capacity
//! - **What a client may be using counts.** A client counts with the largest grant that has not ended, until it has
//!   reported that it uses less. An answer can be lost, so a client that was told to use less may not know it. One that
//!   claims more than it was granted is [not believed](Pool::false_claims), so it takes nothing from others.
//! - **A process is a client.** A name alone is not: two processes that were given one name by mistake hold a lease each,
//!   and one that starts anew shares with what its predecessor may still use.
//! - **Requests are numbered.** One that comes late or twice changes nothing. A client obeys the answer to its newest
//!   request only. The number is forgotten with the client: a request that its release has overtaken is one of a new
//!   client, which nobody is behind, and what it is granted is not used by anybody until that lease has ended.
//! - **Leases are durations.** A client counts from before it asked and the server from when it answered, so latency
//!   shortens a lease. The server adds one part in 64, for clocks that run at different speeds.
//! - **Masters are numbered.** A client obeys no older master than the newest that it has met. A new master first
//!   [learns](Pool::lead) what clients hold, and believes only requests that were sent after they met it.
//!
//! A server may lease its capacity from a parent. Three more rules make this safe, and each has a test that fails
//! without it: a parent counts the larger of what it granted and what the server's own clients may still use; no lease
//! outlives the lease that it is cut from; a server that is learning keeps what it had at its parent.
//!
//! ```
//! use sluicegate_lease::pool::{Answer, Ask};
//! use sluicegate_lease::{Amount, Demand, Pool, Template, Templates};
//!
//! let templates = Templates::new([Template::new("*", Amount::units(120))])?;
//! let mut pool = Pool::new(templates);
//! pool.lead(0, 1, Some(Vec::new()));
//!
//! let mut ask = |client, sequence, has| {
//!     let wants = [Demand::of(Amount::units(100))];
//!     let ask = Ask { has: Amount::units(has), ..Ask::new(client, "db", sequence, 1, &wants) };
//!     match pool.ask(0, &ask) {
//!         Ok(Answer::Grant(grant)) => grant.capacity.as_f64(),
//!         other => panic!("{other:?}"),
//!     }
//! };
//! // The first client gets all that it wants, and the second what is left.
//! assert_eq!(ask("one", 1, 0), 100.0);
//! assert_eq!(ask("two", 1, 0), 20.0);
//! // Its fair share is 60. Until the first client has said that it uses no more, nobody else gets the rest.
//! assert_eq!(ask("one", 2, 100), 60.0);
//! assert_eq!(ask("two", 2, 20), 20.0);
//! assert_eq!(ask("one", 3, 60), 60.0);
//! assert_eq!(ask("two", 3, 20), 60.0);
//! # Ok::<(), sluicegate_lease::ConfigError>(())
//! ```

mod bands;
mod holders;
mod resource;
#[cfg(test)]
mod tests;
mod turns;

use std::collections::{BTreeMap, BTreeSet};

use self::resource::{Learning, Resource, with_drift};
use crate::amount::Amount;
use crate::fair::Demand;
use crate::message::{Release, Request, Response, bare, millis};
use crate::template::{Source, Template, Templates};

pub use crate::message::{Answer, Ask, AskError, Grant, MAX_DEMANDS, MAX_NAME};

/// Divides resources among clients that ask for them.
#[derive(Debug, Clone)]
pub struct Pool {
    templates: Templates,
    resources: BTreeMap<Box<str>, Resource>,
    max_resources: usize,
    max_clients: usize,
    /// Of all resources.
    clients: usize,
    lead: Option<Lead>,
    /// How the names of clients begin that have another name at each master.
    renamed: Option<Box<str>>,
    changes: Vec<Change>,
    /// Clients of earlier masters that hold nothing any more, and are still in the list.
    forgotten: Vec<LeaseHolder>,
    false_claims: u64,
    false_claim: Option<FalseClaim>,
    now: u64,
}

/// Since when this server is the master.
#[derive(Debug, Clone, Copy)]
struct Lead {
    fence: u64,
    since: u64,
    /// Whether it was known who holds leases.
    knew_clients: bool,
}

/// A client that has come or gone. Whoever elects masters keeps the list of those that are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A client may hold a lease from now on. Write it down before it is answered.
    Add {
        /// What it has asked for.
        resource: Box<str>,
        /// Who it is.
        client: Box<str>,
    },
    /// A client holds nothing any more.
    Remove {
        /// What it had asked for.
        resource: Box<str>,
        /// Who it was.
        client: Box<str>,
    },
}

/// A client that may hold a lease, as [`Change::Add`] named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseHolder {
    /// What it has asked for.
    pub resource: Box<str>,
    /// Who it is.
    pub client: Box<str>,
}

/// A client has said that it uses more than it was granted. It goes on without a lease, as
/// [`OnLoss`](crate::client::OnLoss) allows, or it lies.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FalseClaim {
    /// Of what.
    pub resource: Box<str>,
    /// Who it is.
    pub client: Box<str>,
    /// What it says that it uses.
    pub claimed: Amount,
    /// What it was granted, and counts as used.
    pub granted: Amount,
}

/// What a resource looks like from outside.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceSnapshot {
    /// Its name.
    pub name: Box<str>,
    /// Its template.
    pub template: Template,
    /// What there is to hand out.
    pub capacity: Amount,
    /// The sum of what clients may be using.
    pub held: Amount,
    /// The sum of what clients want.
    pub wanted: Amount,
    /// How many clients there are.
    pub clients: usize,
    /// What all of them may use together if none can reach this server and each uses its safe capacity. That can be
    /// more than the capacity, if the template names a safe capacity.
    pub safe: Amount,
    /// Whether the server is still learning what clients hold.
    pub is_learning: bool,
}

impl Pool {
    /// Makes a pool that is not the master: it answers nobody until it [leads](Self::lead).
    pub fn new(templates: Templates) -> Self {
        Self {
            templates,
            resources: BTreeMap::new(),
            max_resources: 10_000,
            max_clients: 1_000_000,
            clients: 0,
            lead: None,
            renamed: None,
            changes: Vec::new(),
            forgotten: Vec::new(),
            false_claims: 0,
            false_claim: None,
            now: 0,
        }
    }

    /// Bounds how many resources there are, and how many clients they may have together. A client of two resources
    /// counts twice. The defaults are 10,000 and a million.
    #[must_use]
    pub fn bounded(mut self, resources: usize, clients: usize) -> Self {
        (self.max_resources, self.max_clients) = (resources, clients);
        self
    }

    /// Says how the names of clients begin that have another name at each master.
    ///
    /// Where a new master knows of such clients, it does not wait for their names, which never come. It learns from everybody
    /// who asks for the same resource, for the length of a lease, as if it knew of nobody.
    pub fn set_renamed(&mut self, beginning: impl Into<Box<str>>) {
        self.renamed = Some(beginning.into());
    }

    /// This server has become the master, with a fence that is higher than any before.
    ///
    /// `known` are the clients that may hold leases of earlier masters. Until each of them has reported, at the latest
    /// after a lease, clients keep what they have and newcomers get nothing. If nobody knows who they are (`None`),
    /// this takes a whole lease.
    pub fn lead(&mut self, now: u64, fence: u64, known: Option<Vec<LeaseHolder>>) {
        // What this server knew from an earlier time as the master may have been granted anew by others since.
        self.forget();
        let knew_clients = known.is_some();
        let now = self.advance(now);
        self.lead = Some(Lead { fence, since: now, knew_clients });
        let mut clients: BTreeMap<Box<str>, BTreeSet<Box<str>>> = BTreeMap::new();
        for LeaseHolder { resource, client } in known.into_iter().flatten() {
            clients.entry(resource).or_default().insert(client);
        }
        for (name, clients) in clients {
            let template = self.templates.of(&name).clone();
            // The clock starts now, at the election: every grant of the last master began before it.
            let is_renamed = |client: &str| {
                self.renamed.as_deref().is_some_and(|beginning| client.starts_with(beginning))
            };
            let are_known = !clients.iter().any(|client| is_renamed(client));
            let learning = Learning::new(learns_until(now, &template), clients, are_known);
            self.resources.insert(name, Resource::new(template, Some(learning)));
        }
    }

    /// This server is not the master any more. It forgets everything.
    pub fn step_down(&mut self) {
        self.forget();
        self.lead = None;
    }

    fn forget(&mut self) {
        self.resources.clear();
        self.changes.clear();
        self.forgotten.clear();
        self.clients = 0;
    }

    /// The fence of this master, if it is one.
    pub fn fence(&self) -> Option<u64> {
        self.lead.map(|lead| lead.fence)
    }

    /// Puts other templates in force. What clients hold, they keep until they ask again.
    pub fn set_templates(&mut self, templates: Templates) {
        for (name, resource) in &mut self.resources {
            resource.set_template(templates.of(name));
        }
        self.templates = templates;
    }

    /// Answers a request. See [`take_changes`](Self::take_changes) for what to write down before the client hears of it.
    ///
    /// # Errors
    /// The request cannot be right, comes too late, or this server is not the master. Nothing has changed.
    pub fn ask(&mut self, now: u64, ask: &Ask<'_>) -> Result<Answer, AskError> {
        ask.check()?;
        self.decide(now, ask)
    }

    fn decide(&mut self, now: u64, ask: &Ask<'_>) -> Result<Answer, AskError> {
        let now = self.advance(now);
        let Some(lead) = self.lead else { return Err(AskError::NotMaster) };
        if ask.fence > lead.fence {
            // Perhaps there is a newer master, or the client lies: this is for the mastership to find out.
            return Err(AskError::NotMaster);
        }
        let resource = match self.resources.get_mut(ask.resource) {
            Some(resource) => resource,
            None => {
                let template = self.templates.of(ask.resource).clone();
                // From the election on, and not from the first request: leases of earlier masters end whether anybody
                // asks or not.
                let until = learns_until(lead.since, &template);
                // A resource that no known client has is new: nobody can hold anything of it.
                let learns = !lead.knew_clients && now < until;
                if template.is_nothing() && !learns {
                    // Nobody gets anything of it, so there is nothing to remember. Otherwise requests for names that no
                    // template has would take the room of those that have one.
                    return Resource::new(template, None).ask(now, ask, lead.fence);
                }
                if self.resources.len() >= self.max_resources {
                    return Err(AskError::ManyResources);
                }
                let learning = learns.then(|| Learning::new(until, BTreeSet::new(), false));
                self.resources
                    .entry(ask.resource.into())
                    .or_insert(Resource::new(template, learning))
            }
        };
        // Before the bound on clients is looked at: leases that have ended make room.
        resource.tick(now, &mut |client| {
            self.clients -= 1;
            self.changes.push(Change::remove(ask.resource, client));
        });
        // Compared below, to find out whether the request has made a client known. `tick` has run already, so the
        // number can only grow in between.
        let clients = resource.holders().len();
        // A client that is here already may always ask: refused, it could not give anything back.
        if self.clients >= self.max_clients && !resource.holders().has(ask.client) {
            return Err(AskError::ManyClients);
        }
        let answer = resource.ask(now, ask, lead.fence);
        if let Some(granted) = resource.take_not_believed() {
            self.false_claims += 1;
            let (resource, client) = (ask.resource.into(), bare(ask.client).into());
            self.false_claim = Some(FalseClaim { resource, client, claimed: ask.uses(), granted });
        }
        if resource.holders().len() > clients {
            self.clients += 1;
            self.changes.push(Change::add(ask.resource, ask.client));
        }
        answer
    }

    /// Answers a request for several resources.
    ///
    /// # Errors
    /// This server is not the master.
    pub fn answer(&mut self, now: u64, request: &Request) -> Result<Response, AskError> {
        let holder = request.holder();
        let asks = request.resources.iter().map(|resource| request.ask(resource));
        let answer = |ask: Ask<'_>| {
            ask.check()?;
            self.decide(now, &Ask { client: &holder, ..ask })
        };
        // Each by itself: one resource that cannot be granted must not cost a client its other leases.
        let answers: Vec<_> = asks.map(answer).collect();
        match self.lead {
            Some(lead) => Ok(Response { sequence: request.sequence, fence: lead.fence, answers }),
            None => Err(AskError::NotMaster),
        }
    }

    /// A client gives back what it has; it has stopped to use it. A late or second release changes nothing.
    pub fn release(&mut self, now: u64, release: &Release) {
        let now = self.advance(now);
        let Some(lead) = self.lead else { return };
        let holder = release.holder();
        for name in &release.resources {
            let Some(resource) = self.resources.get_mut(name) else { continue };
            let before = resource.holders().len();
            // What a client gives back before it has met this master says nothing about what the last one granted it.
            if resource.release(&holder, release.sequence, release.fence == lead.fence) {
                self.changes.push(Change::remove(name, &holder));
            }
            self.clients -= before - resource.holders().len();
            resource.tick(now, &mut |client| {
                self.clients -= 1;
                self.changes.push(Change::remove(name, client));
            });
        }
    }

    /// Forgets leases that have ended and divides capacities anew. Call it each 100 ms or so.
    pub fn tick(&mut self, now: u64) {
        let now = self.advance(now);
        let Self { resources, changes, clients, forgotten, .. } = self;
        resources.retain(|name, resource| {
            resource.tick(now, &mut |client| {
                *clients -= 1;
                changes.push(Change::remove(name, client));
            });
            let holder = |client| LeaseHolder { resource: name.clone(), client };
            forgotten.extend(resource.take_forgotten().into_iter().map(holder));
            // One that still learns is kept, even without clients. Its known clients may yet report.
            !resource.is_empty()
        });
        let first = forgotten.len().saturating_sub(FORGOTTEN_AT_ONCE);
        for LeaseHolder { resource, client } in forgotten.drain(first..).rev() {
            // It may have come since.
            let holds = resources.get(&resource).is_some_and(|it| it.holders().has(&client));
            if !holds {
                changes.push(Change::Remove { resource, client });
            }
        }
    }

    /// A parent has granted `capacity` of a resource until `until`, by this server's own clock.
    pub fn supply(&mut self, resource: &str, capacity: Amount, until: u64) {
        if let Some(resource) = self.resources.get_mut(resource) {
            resource.supply(capacity, until);
        }
    }

    /// Clients that have come and gone since the last call.
    pub fn take_changes(&mut self) -> impl Iterator<Item = Change> {
        self.changes.drain(..)
    }

    /// What this server's clients want of a resource, to ask a parent for it: at most [`MAX_DEMANDS`].
    pub fn demands(&self, resource: &str) -> Vec<Demand> {
        let resource = self.resources.get(resource).into_iter();
        bands::aggregate(resource.flat_map(|resource| resource.holders().demands()).flatten())
    }

    /// What this server's clients may be using of a resource.
    pub fn outstanding(&self, resource: &str) -> Amount {
        self.resources.get(resource).map_or(Amount::ZERO, |resource| resource.holders().held())
    }

    /// The resources whose capacity comes from a parent.
    pub fn leased(&self) -> impl Iterator<Item = &str> {
        let resources = self.resources.iter();
        resources
            .filter(|(_, resource)| resource.template().source == Source::Parent)
            .map(|(name, _)| &**name)
    }

    /// Whether the capacity of a resource that clients ask for comes from a parent.
    pub(crate) fn is_leased(&self, resource: &str) -> bool {
        let resource = self.resources.get(resource);
        resource.is_some_and(|resource| resource.template().source == Source::Parent)
    }

    /// Whether clients want much more of something than the parent was told.
    pub(crate) fn wants_much_more(&self) -> bool {
        self.resources.values().any(|resource| resource.wants_much_more(self.now))
    }

    /// The parent was told what clients want.
    pub(crate) fn told_parent(&mut self, resource: &str) {
        if let Some(resource) = self.resources.get_mut(resource) {
            resource.told_parent();
        }
    }

    /// Whether this server still learns what clients hold of a resource.
    pub fn is_learning(&self, resource: &str) -> bool {
        self.resources.get(resource).is_some_and(Resource::is_learning)
    }

    /// How often a client has said that it uses more than it was granted, and was not believed.
    pub fn false_claims(&self) -> u64 {
        self.false_claims
    }

    /// The last one since the last call, for logs.
    pub fn take_false_claim(&mut self) -> Option<FalseClaim> {
        self.false_claim.take()
    }

    /// All resources that clients have asked for.
    pub fn snapshot(&self) -> Vec<ResourceSnapshot> {
        let resources = self.resources.iter().map(|(name, resource)| {
            let holders = resource.holders();
            ResourceSnapshot {
                name: name.clone(),
                template: resource.template().clone(),
                capacity: resource.capacity(self.now),
                held: holders.held(),
                wanted: holders.demands().flatten().map(|demand| demand.want.wants).sum(),
                clients: holders.len(),
                safe: resource.safe_of_all(self.now),
                is_learning: resource.is_learning(),
            }
        });
        resources.collect()
    }

    /// The clients of a resource: the name of each, what it wants and what it may be using.
    pub fn clients(&self, resource: &str) -> impl Iterator<Item = (&str, Amount, Amount)> {
        self.resources.get(resource).into_iter().flat_map(|resource| resource.holders().each())
    }

    /// A clock that steps back stands still.
    fn advance(&mut self, now: u64) -> u64 {
        self.now = self.now.max(now);
        self.now
    }
}

/// Clients of earlier masters that are taken out of the list with one [tick](Pool::tick). After a failover there may be a
/// hundred thousand, and those that come meanwhile have to be written down first.
const FORGOTTEN_AT_ONCE: usize = 500;

fn learns_until(since: u64, template: &Template) -> u64 {
    since.saturating_add(with_drift(millis(template.learning.unwrap_or(template.lease))))
}

impl Change {
    fn add(resource: &str, client: &str) -> Self {
        Self::Add { resource: resource.into(), client: client.into() }
    }

    fn remove(resource: &str, client: &str) -> Self {
        Self::Remove { resource: resource.into(), client: client.into() }
    }
}
