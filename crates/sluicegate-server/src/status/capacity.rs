use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{PoisonError, RwLock};

use serde::{Deserialize, Serialize};
use sluicegate_lease::Pool;
use utoipa::ToSchema;

use crate::capacity::{Masters, Shared};

/// The most resources, clients of a resource and members that are shown.
pub(super) const MOST: usize = 100;

/// Capacity that is leased to clients, and the servers that share it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Capacity {
    /// What is divided. 100 are shown.
    pub resources: Vec<Resource>,
    /// The servers that share the work. 100 are shown.
    pub members: Vec<Member>,
}

/// Capacity that is divided among clients. Amounts are units a second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Resource {
    /// Its name.
    pub resource: String,
    /// The capacity.
    pub capacity: f64,
    /// The sum of what clients want.
    pub wants: f64,
    /// The sum of what clients have.
    pub granted: f64,
    /// The clients that have most, first. 100 are shown.
    pub clients: Vec<Client>,
    /// How many clients are left out.
    pub more: u64,
}

/// A client of leased capacity.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Client {
    /// Its name.
    pub client: String,
    /// What it wants.
    pub wants: f64,
    /// What it has.
    pub granted: f64,
}

/// A server that shares the work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Member {
    /// Its name or address.
    pub member: String,
    /// What it does, such as `master`.
    pub role: String,
}

type Source = Box<dyn Fn() -> Capacity + Send + Sync>;

/// Who knows about leased capacity.
#[derive(Default)]
pub(super) struct Sources(RwLock<Vec<Source>>);

impl Sources {
    pub(super) fn add(&self, source: impl Fn() -> Capacity + Send + Sync + 'static) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).push(Box::new(source));
    }

    pub(super) fn read(&self) -> Capacity {
        let mut all = Capacity::default();
        for source in self.0.read().unwrap_or_else(PoisonError::into_inner).iter() {
            let Capacity { resources, members } = source();
            all.resources.extend(resources);
            all.members.extend(members);
        }
        all.resources.truncate(MOST);
        all.members.truncate(MOST);
        all.resources.iter_mut().for_each(Resource::bound);
        all
    }
}

impl Resource {
    fn bound(&mut self) {
        self.clients.sort_by(|one, other| other.granted.total_cmp(&one.granted));
        self.more += self.clients.len().saturating_sub(MOST) as u64;
        self.clients.truncate(MOST);
    }
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sources")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clients_with_most_are_shown_and_the_others_counted() {
        let sources = Sources::default();
        sources.add(|| {
            let clients = (0..150).map(|at| Client {
                client: at.to_string(),
                granted: f64::from(at),
                ..Client::default()
            });
            let resource = Resource { clients: clients.collect(), ..Resource::default() };
            Capacity { resources: vec![resource], members: vec![Member::default(); 150] }
        });
        let read = sources.read();
        assert_eq!((read.resources[0].clients.len(), read.resources[0].more), (100, 50));
        assert_eq!(read.resources[0].clients[0].client, "149");
        assert_eq!(read.members.len(), 100);
    }
}

/// What the pool has leased, and the capacities of the file that nobody has asked for, by name.
pub(crate) fn leased(shared: &Shared) -> Capacity {
    let mut resources = BTreeMap::new();
    for capacity in shared.capacities().iter() {
        let (name, capacity) = (capacity.name.to_string(), capacity.per_second.as_f64());
        resources
            .insert(name.clone(), Resource { resource: name, capacity, ..Resource::default() });
    }
    for resource in asked(shared) {
        resources.insert(resource.resource.clone(), resource);
    }
    let members = shared.masters().and_then(master).into_iter().collect();
    Capacity { resources: resources.into_values().collect(), members }
}

/// The server that divides the capacity, which has the leases, too.
fn master(masters: &Masters) -> Option<Member> {
    let this = || masters.is_master().then(|| "this server".into());
    let member = masters.other().or_else(this)?;
    Some(Member { member: member.into(), role: "master".to_owned() })
}

/// The resources that clients have asked for. A look starts nothing, and leases wait for it, so it is divided into short
/// ones: one at all resources, which are sorted afterwards, and one at the clients of each resource that is shown.
fn asked(shared: &Shared) -> Vec<Resource> {
    let mut all = shared.if_started(Pool::snapshot).unwrap_or_default();
    all.retain(|resource| resource.clients > 0);
    keep_first(&mut all, MOST, |one, other| one.name.cmp(&other.name));
    let shown = all.into_iter().map(|resource| {
        let look = |pool: &Pool| clients(pool, &resource.name);
        // The last client may have gone since.
        let (clients, more) = shared.if_started(look).unwrap_or_default();
        Resource {
            clients,
            more,
            capacity: resource.capacity.as_f64(),
            wants: resource.wanted.as_f64(),
            granted: resource.held.as_f64(),
            resource: resource.name.into(),
        }
    });
    shown.collect()
}

/// The clients of a resource that have most, and how many others there are.
fn clients(pool: &Pool, resource: &str) -> (Vec<Client>, u64) {
    let mut clients: Vec<_> = pool.clients(resource).collect();
    let more = clients.len().saturating_sub(MOST) as u64;
    keep_first(&mut clients, MOST, |one, other| (other.2, one.0).cmp(&(one.2, other.0)));
    let clients = clients.into_iter().map(|(name, wants, held)| Client {
        client: name.to_owned(),
        wants: wants.as_f64(),
        granted: held.as_f64(),
    });
    (clients.collect(), more)
}

/// Keeps what comes first, in order, and at most `most` of it. Only what is kept is sorted.
fn keep_first<T>(all: &mut Vec<T>, most: usize, order: impl Fn(&T, &T) -> Ordering) {
    if all.len() > most {
        all.select_nth_unstable_by(most, &order);
        all.truncate(most);
    }
    all.sort_unstable_by(order);
}

#[cfg(test)]
mod leased_tests {
    use super::*;

    #[test]
    fn what_comes_first_is_kept_in_order() {
        // 7 and 1,000 have no common divisor, so each number comes once.
        let mixed: Vec<u32> = (0..1_000).map(|at| at * 7 % 1_000).collect();
        for most in [0, 1, 100, 1_000, 2_000] {
            let mut kept = mixed.clone();
            keep_first(&mut kept, most, |one, other| other.cmp(one));
            let expected: Vec<u32> = (0..1_000).rev().take(most).collect();
            assert_eq!(kept, expected);
        }
    }
}
