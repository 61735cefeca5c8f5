use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

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
#[derive(Default, Clone)]
pub(super) struct Sources(Arc<RwLock<Vec<Source>>>);

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
