//! Two servers, of which one is the master.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sluicegate_lease::client::OnLoss;
use sluicegate_lease::pool::{Change, LeaseHolder};
use sluicegate_lease::{Amount, Mastership, Role};
use tokio::sync::watch;

use super::world::{World, root};

const CLIENTS: [&str; 4] = ["client-1", "client-2", "client-3", "client-4"];
const SECOND: Duration = Duration::from_secs(1);

/// What a store of the elected would hold.
#[derive(Clone, Default)]
struct Store(Arc<Mutex<Contents>>);

#[derive(Default)]
struct Contents {
    roles: BTreeMap<&'static str, watch::Sender<Role>>,
    clients: BTreeSet<(Box<str>, Box<str>)>,
}

/// The store, as one server sees it.
struct Seat(Store, &'static str);

impl Store {
    /// Makes a server the master.
    fn elect(&self, host: &'static str, fence: u32) {
        let contents = self.0.lock().unwrap();
        let known = contents.clients.iter().map(|(resource, client)| LeaseHolder {
            resource: resource.clone(),
            client: client.clone(),
        });
        let known: Option<Arc<[LeaseHolder]>> = Some(known.collect());
        for (other, role) in &contents.roles {
            role.send_replace(match *other == host {
                true => Role::Master { fence, until: None, known: known.clone() },
                false => Role::Other { master: Some(format!("http://{host}:5555").into()) },
            });
        }
    }
}

impl Mastership for Seat {
    fn roles(&self) -> watch::Receiver<Role> {
        let mut contents = self.0.0.lock().unwrap();
        let role = contents.roles.entry(self.1);
        role.or_insert_with(|| watch::Sender::new(Role::Other { master: None })).subscribe()
    }

    async fn record(&self, changes: Vec<Change>) -> Result<(), Box<dyn Error + Send + Sync>> {
        let mut contents = self.0.0.lock().unwrap();
        for change in changes {
            match change {
                Change::Add { resource, client } => contents.clients.insert((resource, client)),
                Change::Remove { resource, client } => contents.clients.remove(&(resource, client)),
            };
        }
        Ok(())
    }
}

#[test]
fn a_master_that_is_killed_is_followed_within_seconds_and_nobody_falls_below_what_is_safe() {
    let mut world = World::new(11);
    let store = Store::default();
    for host in ["one", "two"] {
        let store = store.clone();
        world.server(host, move || root(Seat(store.clone(), host)));
    }
    for client in CLIENTS {
        world.client(client, &["http://two:5555", "http://one:5555"], OnLoss::Safe);
    }
    world.run(SECOND);
    store.elect("one", 1);
    world.run_until_used(30 * SECOND);
    world.run(5 * SECOND);

    let safe = Amount::units(25);
    for (dead, next, fence) in [("one", "two", 2), ("two", "one", 3), ("one", "two", 4)] {
        world.sim.crash(dead);
        let look = |world: &World| {
            for client in CLIENTS {
                assert!(world.used_by(client) >= safe, "{client} at {:?}", world.sim.elapsed());
            }
        };
        world.run_and(2 * SECOND, look);
        store.elect(next, fence);
        world.run_and(20 * SECOND, look);
        world.sim.bounce(dead);
        world.run_and(5 * SECOND, look);
    }
}

#[test]
fn a_new_master_serves_new_clients_as_soon_as_the_old_ones_have_reported() {
    let mut world = World::new(12);
    let store = Store::default();
    for host in ["one", "two"] {
        let store = store.clone();
        world.server(host, move || root(Seat(store.clone(), host)));
    }
    for client in CLIENTS {
        world.client(client, &["http://one:5555"], OnLoss::Stop);
    }
    world.run(SECOND);
    store.elect("one", 1);
    world.run_until_used(30 * SECOND);
    // A newcomer waits for the new master.
    world.sim.crash("one");
    world.client("client-5", &["http://two:5555"], OnLoss::Stop);
    store.elect("two", 2);
    // The others only know the old one, which is there again and names the new one.
    world.sim.bounce("one");
    store.elect("two", 2);
    world.run(9 * SECOND);
    assert!(world.used_by("client-5") >= Amount::units(19), "{}", world.used_by("client-5"));
    world.run_until_used(10 * SECOND);
}
