//! A cluster: its nodes, and which of them serves which slot.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use redis::{ConnectionAddr, ConnectionInfo, Value, cmd};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::failure::{Failure, FailureKind};
use crate::runtime::before;
use crate::wire::node::{Node, NodeContext, Target, at_address};

/// A cluster: its nodes, and which of them serves which slot.
///
/// Each node has a connection and a breaker of its own, so that a node that is down does not delay calls to others.
pub(crate) struct Cluster {
    context: NodeContext,
    seeds: Vec<ConnectionInfo>,
    nodes: Mutex<HashMap<Address, Arc<Node>>>,
    view: watch::Sender<View>,
    looking: AtomicBool,
    /// When the nodes were last asked, in microseconds.
    looked: AtomicU64,
}

type Address = (String, u16);

enum View {
    Unknown { failed: Option<Failure> },
    Known(Arc<Map>),
}

/// Microseconds between two updates of the map of slots.
const PAUSE: u64 = 100_000;

/// How many nodes are asked for the map at a time.
const ASKED: usize = 3;

impl Cluster {
    pub(crate) fn new(seeds: Vec<ConnectionInfo>, context: NodeContext) -> Arc<Self> {
        Arc::new(Self {
            context,
            seeds,
            nodes: Mutex::default(),
            view: watch::Sender::new(View::Unknown { failed: None }),
            looking: AtomicBool::new(false),
            looked: AtomicU64::new(0),
        })
    }

    /// The node that serves `slot`, if it is known.
    pub(crate) fn known(self: &Arc<Self>, slot: u16) -> Option<Arc<Node>> {
        match &*self.view.borrow() {
            View::Known(map) => map.node(slot).cloned(),
            View::Unknown { .. } => None,
        }
    }

    /// The node that serves `slot`. Fails at once while the cluster cannot be reached.
    pub(crate) async fn node(self: Arc<Self>, slot: u16) -> Result<Arc<Node>, Failure> {
        // Subscribed before the look begins, so that no change between the two is missed.
        let mut view = self.view.subscribe();
        self.look();
        loop {
            match &*view.borrow_and_update() {
                View::Known(map) => {
                    return map.node(slot).cloned().ok_or_else(|| unserved(slot));
                }
                // A caller does not wait for the next attempt: while the cluster is away, each decision would otherwise
                // take the whole deadline.
                View::Unknown { failed: Some(failure) } => return Err(failure.clone()),
                View::Unknown { failed: None } => {}
            }
            if view.changed().await.is_err() {
                return Err(Failure::new(FailureKind::Unreachable));
            }
        }
    }

    /// The node at an address that node `by` has named. Without a host, it is on the host of `by`.
    pub(crate) fn node_at(&self, host: &str, port: u16, by: &Node) -> Arc<Node> {
        if host.is_empty() {
            return self.node_of((by.host().to_owned(), port));
        }
        self.node_of((host.to_owned(), port))
    }

    /// Records that `slot` is served by `node` now, and asks for other changes.
    pub(crate) fn moved(self: &Arc<Self>, slot: u16, node: &Arc<Node>) {
        self.view.send_if_modified(|view| match view {
            View::Known(map) if !map.node(slot).is_some_and(|known| Arc::ptr_eq(known, node)) => {
                // The old node may have refused by rows that the new one has changed since. Remembered refusals end
                // here.
                if let Some(before) = map.node(slot) {
                    before.forget();
                }
                // A new map for one slot: readers keep the old one without a lock, and slots move rarely.
                *map = Arc::new(map.with(slot, node));
                true
            }
            _ => false,
        });
        self.look();
    }

    /// Updates the map in the background, unless that was just done.
    pub(crate) fn look(self: &Arc<Self>) {
        let now = self.context.runtime.clock.now();
        // While there is a map, a storm of redirections must not become a storm of questions. Without one, nothing can be
        // decided, and the task that looks has pauses of its own.
        let known = matches!(&*self.view.borrow(), View::Known(_));
        if known && now.abs_diff(self.looked.load(Ordering::Relaxed)) < PAUSE {
            return;
        }
        // One task looks at a time, for all callers. It ends with a map, or with the store.
        if !self.looking.swap(true, Ordering::AcqRel) {
            self.looked.store(now, Ordering::Relaxed);
            self.context.runtime.spawn(look_until_known(Arc::downgrade(self)));
        }
    }

    /// All known nodes.
    pub(crate) fn nodes(&self) -> Vec<Arc<Node>> {
        self.locked().values().cloned().collect()
    }

    fn node_of(&self, address: Address) -> Arc<Node> {
        let mut nodes = self.locked();
        let node = nodes.entry(address).or_insert_with_key(|(host, port)| {
            let info = at_address(&self.seeds[0], host, *port);
            Node::new(Target::Server(info), self.context.clone())
        });
        Arc::clone(node)
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, HashMap<Address, Arc<Node>>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks a few nodes at a time for the map, healthy and connected ones first.
    async fn ask_around(&self) -> Result<(), Failure> {
        // A map that was learned may have left the seeds out. They are the only nodes that are known to be the operator's.
        for seed in self.seeds.iter().filter_map(address) {
            self.node_of(seed);
        }
        let mut nodes = self.nodes();
        fastrand::shuffle(&mut nodes);
        // A stable sort keeps the random order among equals, so that no node is asked first by all processes.
        nodes.sort_by_key(|node| (node.is_shut(), node.current().is_none()));
        let mut why = Failure::new(FailureKind::Unreachable);
        // A few at a time: a node that does not answer must not keep the others from being asked, and a large cluster
        // must not be asked by every process at all of its nodes.
        for some in nodes.chunks(ASKED) {
            let mut asked = JoinSet::new();
            for node in some {
                asked.spawn(ask(self.context.clone(), Arc::clone(node)));
            }
            while let Some(answer) = asked.join_next().await {
                match answer {
                    Ok(Ok((node, ranges))) => {
                        self.learn(&node, &ranges);
                        // The first answer counts. The other questions are dropped with the set. A map that is a little
                        // out of date corrects itself: the next command that goes wrong is answered with `MOVED`.
                        return Ok(());
                    }
                    Ok(Err(failure)) => why = failure,
                    Err(_) => {}
                }
            }
        }
        Err(why)
    }

    fn learn(&self, told_by: &Node, ranges: &[Range]) {
        let map = Map::new(ranges, |range| {
            self.node_at(range.host.as_deref().unwrap_or_default(), range.port, told_by)
        });
        let seeds: Vec<_> = self.seeds.iter().filter_map(address).collect();
        // A node that serves nothing any more loses its connection here, unless a call still holds it.
        self.locked().retain(|address, node| {
            seeds.contains(address) || map.nodes().iter().any(|known| Arc::ptr_eq(known, node))
        });
        // What a node has answered about slots that it lost proves nothing: its successor may know more.
        if let View::Known(before) = &*self.view.borrow() {
            map.replaced(before).for_each(|node| node.forget());
        }
        // Last, when every node of the map exists and nothing is remembered of those that lost slots.
        self.view.send_replace(View::Known(Arc::new(map)));
    }

    fn failed(&self, failure: Failure) {
        self.view.send_if_modified(|view| {
            // A map that is known stays: most of its slots still work, and those that do not are redirected.
            let unknown = matches!(view, View::Unknown { .. });
            if unknown {
                *view = View::Unknown { failed: Some(failure) };
            }
            unknown
        });
    }
}

async fn look_until_known(cluster: Weak<Cluster>) {
    let mut attempts = 0;
    loop {
        // The cluster is held while it is asked, and not during the pause. So a store that is dropped ends this task.
        let pause = {
            let Some(cluster) = cluster.upgrade() else { return };
            match cluster.ask_around().await {
                Ok(()) => return cluster.looking.store(false, Ordering::Release),
                Err(failure) => cluster.failed(failure),
            }
            attempts += 1;
            cluster.context.runtime.timer(cluster.context.connect.backoff.after(attempts))
        };
        pause.await;
    }
}

async fn ask(context: NodeContext, node: Arc<Node>) -> Result<(Arc<Node>, Vec<Range>), Failure> {
    // Kept outside of the question: if it is not answered in time, the connection that it went to is replaced.
    let mut on = None;
    let asked = async {
        let connection = Arc::clone(&node).connection().await?;
        on = Some(connection.generation);
        let mut command = cmd("CLUSTER");
        command.arg("SLOTS");
        let answer = connection.send(&command).await.and_then(Value::extract_error);
        answer.map_err(|error| Failure::from(&error))
    };
    let answer = before(context.runtime.timer(context.connect.timeout), asked).await;
    let answer = answer.unwrap_or_else(|| {
        let slow = Failure::new(FailureKind::TooSlow);
        if let Some(generation) = on {
            node.lose(generation, &slow);
        }
        Err(slow)
    })?;
    match parse(&answer) {
        Some(ranges) if !ranges.is_empty() => Ok((node, ranges)),
        Some(_) => Err(Failure::because(FailureKind::Cluster, "no node serves any slot")),
        None => Err(Failure::because(FailureKind::Protocol, "no answer to CLUSTER SLOTS")),
    }
}

pub(crate) fn unserved(slot: u16) -> Failure {
    Failure::because(FailureKind::Cluster, format!("no node serves slot {slot}"))
}

fn address(info: &ConnectionInfo) -> Option<Address> {
    match info.addr() {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
            Some((host.clone(), *port))
        }
        _ => None,
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").finish_non_exhaustive()
    }
}

/// How many slots a cluster has.
const SLOTS: usize = 16_384;

/// Which node serves which slot.
#[derive(Debug, Clone)]
pub(crate) struct Map {
    /// For each slot, the index in `nodes` plus one; zero if no node serves it.
    slots: Box<[u16]>,
    nodes: Vec<Arc<Node>>,
}

/// The slots from `first` to `last`, and the node that serves them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) first: u16,
    pub(super) last: u16,
    /// `None` if the server means the host under which it was asked.
    pub(super) host: Option<String>,
    pub(super) port: u16,
}

impl Map {
    pub(super) fn new(ranges: &[Range], mut node_at: impl FnMut(&Range) -> Arc<Node>) -> Self {
        let mut map = Self { slots: vec![0; SLOTS].into(), nodes: Vec::new() };
        for range in ranges {
            // Slots that no range names stay at zero. A request for one fails, and no other node is guessed.
            let index = map.index_of(&node_at(range));
            let (first, last) = (usize::from(range.first), usize::from(range.last));
            map.slots[first..=last].fill(index);
        }
        map
    }

    pub(super) fn node(&self, slot: u16) -> Option<&Arc<Node>> {
        let index = self.slots[usize::from(slot)].checked_sub(1)?;
        self.nodes.get(usize::from(index))
    }

    pub(super) fn nodes(&self) -> &[Arc<Node>] {
        &self.nodes
    }

    /// Nodes that served a slot in the map `before` that another node serves now.
    pub(super) fn replaced<'m>(&'m self, before: &'m Self) -> impl Iterator<Item = &'m Arc<Node>> {
        before.nodes.iter().filter(|node| {
            let index = before.nodes.iter().position(|known| Arc::ptr_eq(known, node));
            let index = index.map_or(0, |index| index + 1);
            let mut slots = (0..SLOTS as u16)
                .filter(|slot| usize::from(before.slots[usize::from(*slot)]) == index);
            slots.any(|slot| !self.node(slot).is_some_and(|now| Arc::ptr_eq(now, node)))
        })
    }

    /// The map with one slot moved to `node`.
    pub(super) fn with(&self, slot: u16, node: &Arc<Node>) -> Self {
        let mut map = self.clone();
        map.slots[usize::from(slot)] = map.index_of(node);
        map
    }

    fn index_of(&mut self, node: &Arc<Node>) -> u16 {
        let known = self.nodes.iter().position(|known| Arc::ptr_eq(known, node));
        let index = known.unwrap_or_else(|| {
            self.nodes.push(Arc::clone(node));
            self.nodes.len() - 1
        });
        // A cluster has no more masters than slots.
        u16::try_from(index + 1).unwrap_or(0)
    }
}

/// Reads the answer to `CLUSTER SLOTS`; `None` if it is not valid.
pub(super) fn parse(answer: &Value) -> Option<Vec<Range>> {
    let Value::Array(ranges) = answer else { return None };
    ranges.iter().map(range).collect()
}

fn range(value: &Value) -> Option<Range> {
    let Value::Array(parts) = value else { return None };
    let [Value::Int(first), Value::Int(last), Value::Array(master), ..] = &parts[..] else {
        return None;
    };
    let [host, Value::Int(port), ..] = &master[..] else { return None };
    let slot = |slot: &i64| u16::try_from(*slot).ok().filter(|slot| usize::from(*slot) < SLOTS);
    let (first, last) = (slot(first)?, slot(last)?);
    let host = match host {
        Value::BulkString(host) if !host.is_empty() && host != b"?" => {
            Some(String::from_utf8(host.clone()).ok()?)
        }
        Value::SimpleString(host) => Some(host.clone()),
        _ => None,
    };
    (first <= last).then_some(Range { first, last, host, port: u16::try_from(*port).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    fn slots(first: i64, last: i64, host: Value, port: i64) -> Value {
        let master = Value::Array(vec![host, Value::Int(port), text("id"), Value::Array(vec![])]);
        let replica = Value::Array(vec![text("10.0.0.9"), Value::Int(1), text("other")]);
        Value::Array(vec![Value::Int(first), Value::Int(last), master, replica])
    }

    #[test]
    fn the_master_of_each_range_serves_it() {
        let answer = Value::Array(vec![
            slots(0, 5_460, text("10.0.0.1"), 7_000),
            slots(5_461, 16_383, text("10.0.0.2"), 7_001),
        ]);
        let ranges = parse(&answer).expect("an answer");
        assert_eq!(ranges.len(), 2);
        let host = Some("10.0.0.2".to_owned());
        assert_eq!(ranges[1], Range { first: 5_461, last: 16_383, host, port: 7_001 });
    }

    #[test]
    fn a_server_without_a_host_is_the_one_that_was_asked() {
        for host in [Value::Nil, text(""), text("?")] {
            let answer = Value::Array(vec![slots(0, 16_383, host, 7_000)]);
            assert_eq!(parse(&answer).expect("an answer")[0].host, None);
        }
    }

    #[test]
    fn an_invalid_answer_is_rejected() {
        let beyond = slots(0, 16_384, text("10.0.0.1"), 7_000);
        let backwards = slots(9, 8, text("10.0.0.1"), 7_000);
        let port = slots(0, 9, text("10.0.0.1"), 70_000);
        for wrong in [beyond, backwards, port, Value::Int(1), Value::Array(vec![])] {
            assert_eq!(parse(&Value::Array(vec![wrong])), None);
        }
        assert_eq!(parse(&Value::Okay), None);
    }
}
