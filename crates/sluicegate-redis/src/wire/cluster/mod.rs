//! A cluster: its nodes, and which of them serves which slot.

mod map;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use redis::{ConnectionAddr, ConnectionInfo, Value, cmd};
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::map::{Map, Range};
use crate::failure::{Failure, FailureKind};
use crate::runtime::before;
use crate::wire::node::{Node, NodeContext, Target};
use crate::wire::relocate::at_address;

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
        let mut view = self.view.subscribe();
        self.look();
        loop {
            match &*view.borrow_and_update() {
                View::Known(map) => {
                    return map.node(slot).cloned().ok_or_else(|| unserved(slot));
                }
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
                if let Some(before) = map.node(slot) {
                    before.forget();
                }
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
        let known = matches!(&*self.view.borrow(), View::Known(_));
        if known && now.abs_diff(self.looked.load(Ordering::Relaxed)) < PAUSE {
            return;
        }
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
        for seed in self.seeds.iter().filter_map(address) {
            self.node_of(seed);
        }
        let mut nodes = self.nodes();
        fastrand::shuffle(&mut nodes);
        nodes.sort_by_key(|node| (node.is_shut(), node.current().is_none()));
        let mut why = Failure::new(FailureKind::Unreachable);
        for some in nodes.chunks(ASKED) {
            let mut asked = JoinSet::new();
            for node in some {
                asked.spawn(ask(self.context.clone(), Arc::clone(node)));
            }
            while let Some(answer) = asked.join_next().await {
                match answer {
                    Ok(Ok((node, ranges))) => {
                        self.learn(&node, &ranges);
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
        self.locked().retain(|address, node| {
            seeds.contains(address) || map.nodes().iter().any(|known| Arc::ptr_eq(known, node))
        });
        if let View::Known(before) = &*self.view.borrow() {
            map.replaced(before).for_each(|node| node.forget());
        }
        self.view.send_replace(View::Known(Arc::new(map)));
    }

    fn failed(&self, failure: Failure) {
        self.view.send_if_modified(|view| {
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
    let mut on = None;
    let asked = async {
        let connection = Arc::clone(&node).connection().await?;
        on = Some(connection.generation);
        let mut command = cmd("CLUSTER");
        command.arg("SLOTS");
        let mut wire = connection.wire();
        let answer = wire.send_packed_command(&command).await.and_then(Value::extract_error);
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
    match map::parse(&answer) {
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
