use std::time::Duration;

use super::{Connection, Program, Replica, Reply, Server, until};

/// The number of slots.
const SLOTS: usize = 16_384;

/// After this time a silent node counts as failed. It is longer than any test waits, so that nodes that have to wait for
/// the processor do not count as failed.
const NEVER: Duration = Duration::from_secs(60);

/// How many keys are moved at once. Meanwhile some rows are on one node and some on the other.
const BATCH: &str = "1";

/// Masters that share the slots.
#[derive(Debug)]
pub struct Cluster(Vec<Server>);

impl Cluster {
    /// Starts this many masters, and waits until they agree.
    ///
    /// # Panics
    ///
    /// As [`Server::start`] does.
    pub fn start(masters: usize) -> Self {
        let cluster = Self((0..masters).map(|_| node()).collect());
        cluster.share_slots();
        cluster.meet();
        let agree = || cluster.0.iter().all(|node| agrees(node, masters)).then_some(());
        until("the cluster to be complete", agree);
        cluster
    }

    /// Starts a replica of a master, and waits until it has the data and every node knows it.
    ///
    /// # Panics
    ///
    /// As [`Server::start`] does.
    pub fn replicate(&self, master: &Server) -> Replica {
        let replica = node();
        let (own, of) = (id(&replica), id(master));
        let port = replica.address().port().to_string();
        self.0[0].cli(["CLUSTER", "MEET", "127.0.0.1", &port]).expect("they meet");
        until("the replica to know its master", || {
            let told = replica.cli(["CLUSTER", "NODES"]).text();
            told.contains(&of).then_some(())?;
            matches!(replica.cli(["CLUSTER", "REPLICATE", &of]), Reply::Line(_)).then_some(())
        });
        let line = |told: &str| told.lines().any(|line| line.contains(&own) && line.contains(&of));
        until("all to know the replica", || {
            let mut told = self.0.iter().map(|server| server.cli(["CLUSTER", "NODES"]).text());
            told.all(|told| line(&told)).then_some(())
        });
        Replica::ready(replica)
    }

    /// Lets the nodes that run replace the first master, which does not: they count it as failed after half a second
    /// until its `replica` has taken its place and they agree.
    ///
    /// # Panics
    ///
    /// If the replica does not take its place.
    pub fn replace_first(&self, replica: &Replica) {
        let nodes = || self.0[1..].iter().chain([replica.server()]);
        let fail_after = |timeout: Duration| {
            let timeout = timeout.as_millis().to_string();
            let words = ["CONFIG", "SET", "cluster-node-timeout", &timeout];
            for node in nodes() {
                node.cli(words).expect("it is set");
            }
        };
        fail_after(Duration::from_millis(500));
        until("the replica to take its master's place", || {
            replica.server().info("replication").ok()?.contains("role:master").then_some(())
        });
        // They would count each other as failed, too, if they had to wait for the processor.
        fail_after(NEVER);
        let parts = self.0.len();
        until("the others to agree", || nodes().all(|node| agrees(node, parts)).then_some(()));
    }

    /// The masters.
    pub fn masters(&self) -> &[Server] {
        &self.0
    }

    /// The masters as URLs.
    pub fn urls(&self) -> Vec<String> {
        self.0.iter().map(Server::url).collect()
    }

    /// The master that serves a slot.
    ///
    /// # Panics
    ///
    /// If no node knows it.
    pub fn owner(&self, slot: u16) -> &Server {
        let ranges = self.0[0].cli(["CLUSTER", "SLOTS"]).list();
        let port = ranges.into_iter().find_map(|range| {
            let range = range.list();
            let number = |at: usize| range[at].clone().number();
            let owner = range[2].clone().list();
            let within = (number(0)..=number(1)).contains(&i64::from(slot));
            within.then(|| owner[1].clone().number())
        });
        let port = port.expect("every slot has an owner");
        self.0
            .iter()
            .find(|server| i64::from(server.address().port()) == port)
            .expect("one of ours")
    }

    /// The slot of a key.
    ///
    /// # Panics
    ///
    /// If the server does not answer.
    pub fn slot(&self, key: impl AsRef<[u8]>) -> u16 {
        let words = [b"CLUSTER".as_slice(), b"KEYSLOT", key.as_ref()];
        self.0[0].cli(words).number().try_into().expect("below 16,384")
    }

    /// Moves a slot with all of its keys, as operators do while clients are at work.
    ///
    /// # Panics
    ///
    /// If a server refuses.
    pub fn move_slot(&self, slot: u16, to: &Server) {
        let from = self.owner(slot);
        let (number, source, target) = (slot.to_string(), id(from), id(to));
        let set = |server: &Server, what: &[&str]| {
            let words = ["CLUSTER", "SETSLOT", &number];
            server.cli(words.iter().chain(what)).expect("it agrees");
        };
        set(to, &["IMPORTING", &source]);
        set(from, &["MIGRATING", &target]);
        let mut connection = Connection::open(from.address()).expect("the server listens");
        while move_some(&mut connection, &number, to) {}
        // The new owner is told first, because the old one sends clients there.
        for server in [to, from].into_iter().chain(&self.0) {
            set(server, &["NODE", &target]);
        }
        // If the next move overtook the news of this one, the keys would be lost.
        until("the news to spread", || {
            let mut views = self.0.iter().map(view);
            let first = views.next();
            views.all(|view| Some(view) == first).then_some(())
        });
    }

    fn share_slots(&self) {
        let masters = self.0.len();
        let border = |number: usize| SLOTS * number / masters;
        for (server, number) in self.0.iter().zip(0..) {
            let slots = (border(number)..border(number + 1)).map(|slot| slot.to_string());
            let words = ["CLUSTER", "ADDSLOTS"].map(str::to_owned).into_iter().chain(slots);
            server.cli(words).expect("its slots");
            // Otherwise all nodes begin with the same epoch, and have to settle that first.
            let epoch = (number + 1).to_string();
            server.cli(["CLUSTER", "SET-CONFIG-EPOCH", &epoch]).expect("its epoch");
        }
    }

    fn meet(&self) {
        for server in &self.0[1..] {
            let port = server.address().port().to_string();
            self.0[0].cli(["CLUSTER", "MEET", "127.0.0.1", &port]).expect("they meet");
        }
    }
}

/// Whether a node says that the cluster works, and knows the owner of every slot.
fn agrees(node: &Server, parts: usize) -> bool {
    let told = node.cli(["CLUSTER", "INFO"]).text();
    told.contains("cluster_state:ok")
        && told.contains("cluster_slots_ok:16384")
        && node.cli(["CLUSTER", "SLOTS"]).list().len() == parts
}

fn node() -> Server {
    let timeout = NEVER.as_millis().to_string();
    let options = [
        "--cluster-enabled",
        "yes",
        "--cluster-node-timeout",
        &timeout,
        // A replica may take its master's place however long it has not heard of it.
        "--cluster-replica-validity-factor",
        "0",
    ];
    Server::of(Program::Redis, options)
}

fn id(server: &Server) -> String {
    server.cli(["CLUSTER", "MYID"]).text()
}

/// The owner of each slot and the epoch since when, as a server knows it.
fn view(server: &Server) -> Vec<(String, String, Vec<String>)> {
    let told = server.cli(["CLUSTER", "NODES"]).text();
    let node = |line: &str| {
        let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        (words[0].clone(), words[6].clone(), words[8..].to_vec())
    };
    let mut nodes: Vec<_> = told.lines().map(node).collect();
    nodes.sort_unstable();
    nodes
}

/// Moves some keys of a slot. Returns `false` if none are left.
fn move_some(from: &mut Connection, slot: &str, to: &Server) -> bool {
    let keys = from.call(["CLUSTER", "GETKEYSINSLOT", slot, BATCH]);
    let keys = keys.expect("the server answers").list();
    if keys.is_empty() {
        return false;
    }
    let port = to.address().port().to_string();
    let words = ["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
    let mut words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
    words.extend(keys.into_iter().filter_map(|key| match key {
        Reply::Bytes(key) => Some(key),
        _ => None,
    }));
    // "NOKEY" is fine too: all of the keys have expired meanwhile.
    match from.call(words).expect("the server answers") {
        Reply::Line(_) => true,
        other => panic!("the keys do not move: {other:?}"),
    }
}
