//! The task that renews the places of this process, for as long as it holds any.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use tokio::task::JoinHandle;

use crate::exchange::request::Request;
use crate::exchange::settle::deliver_once;
use crate::exchange::shared::Shared;
use crate::failure::{Failure, FailureKind};
use crate::places::DueRows;
use crate::runtime::{Runtime, before};
use crate::script::{Call, Caller, missing};

/// Rows that one script renews. A server, which runs one script at a time, needs less than half a millisecond for it.
const ROWS_PER_SCRIPT: usize = 64;

/// Scripts on their way to one server at a time.
const CONCURRENT_SCRIPTS: usize = 8;

type Rows = Vec<(Vec<u8>, u64)>;

/// The renewals under way, by the address of their node in memory. A node may get the address of one that has gone. Its rows
/// then wait until the renewal of that one ends. Slots without a known node form a group of their own.
type Renewals = BTreeMap<Option<usize>, JoinHandle<()>>;

/// Starts the task, unless it runs already.
pub(crate) fn keep(shared: &Arc<Shared>) {
    if !shared.places.start_renewing() {
        return;
    }
    // The task does not keep the store alive: without a store nothing can be given back.
    let (store, runtime) = (Arc::downgrade(shared), Arc::clone(&shared.runtime));
    shared.runtime.spawn(until_nothing_is_held(store, runtime, shared.places.pause()));
}

async fn until_nothing_is_held(
    store: Weak<Shared>,
    runtime: Arc<Runtime>,
    pause: std::time::Duration,
) {
    let mut renewals = Renewals::new();
    loop {
        runtime.sleep(pause).await;
        let Some(shared) = store.upgrade() else { return };
        let now = runtime.clock.now();
        // `due` looks and ends the renewing under one lock. A place that is taken in between starts the next task.
        let Some(due) = shared.places.due(now) else { return };
        renew_all(&shared, due, now, &mut renewals);
    }
}

/// Renews the rows of each server by itself, and waits for none: one that does not answer does not delay the others.
fn renew_all(
    shared: &Arc<Shared>,
    DueRows { turn, rows }: DueRows,
    now: u64,
    renewals: &mut Renewals,
) {
    let mut slots = BTreeMap::<u16, Rows>::new();
    for row in rows {
        slots.entry(shared.route.slot(&row.0)).or_default().push(row);
    }
    let mut servers = BTreeMap::<_, Vec<Rows>>::new();
    for (slot, rows) in slots {
        let server = shared.route.known(slot).map(|node| Arc::as_ptr(&node).addr());
        let scripts = servers.entry(server).or_default();
        scripts.extend(rows.chunks(ROWS_PER_SCRIPT).map(<[_]>::to_vec));
    }
    renewals.retain(|_, renewal| !renewal.is_finished());
    for (server, scripts) in servers {
        if renewals.contains_key(&server) {
            // It has not answered since the last heartbeat, and gets no second renewal before that ends.
            scripts.iter().for_each(|rows| shared.places.not_renewed(rows));
            continue;
        }
        let renewal = renew_on_one(Arc::clone(shared), (turn, now), scripts);
        renewals.insert(server, shared.runtime.spawn(renewal));
    }
}

/// If the server fails, the rest is renewed at the next heartbeat.
async fn renew_on_one(shared: Arc<Shared>, (turn, now): (u64, u64), mut scripts: Vec<Rows>) {
    let mut is_well = true;
    while !scripts.is_empty() {
        let these: Vec<_> = scripts.drain(..CONCURRENT_SCRIPTS.min(scripts.len())).collect();
        if !is_well {
            // After the first script that fails, the rest is not tried: each would wait for its own deadline, and the
            // next heartbeat would come late for all.
            these.iter().for_each(|rows| shared.places.not_renewed(rows));
            continue;
        }
        let renew = |rows| shared.runtime.spawn(renew_some(Arc::clone(&shared), (turn, now), rows));
        let running: Vec<_> = these.into_iter().map(renew).collect();
        for script in running {
            is_well &= script.await.unwrap_or_default();
        }
    }
}

/// Returns whether the server has renewed the rows.
///
/// They are dated by the heartbeat, at `asked`, from before the call: the lease of a row is at least as long as from then.
/// A renewal that is dated too early only comes sooner the next time. One that is dated later than its heartbeat would not
/// be due at the next one, and one that is dated later than the call may lose places.
async fn renew_some(shared: Arc<Shared>, (turn, asked): (u64, u64), rows: Rows) -> bool {
    let request = request(&shared, turn, &rows);
    let in_time = shared.runtime.sleep(shared.places.pause());
    let answer = before(in_time, deliver_once(&shared, &request)).await;
    let answer = answer.unwrap_or_else(|| Err(Failure::new(FailureKind::TooSlow)));
    match answer.map(|answer| missing(&answer, rows.len())) {
        Ok(Ok(missing)) => {
            shared.places.renewed(&rows, asked);
            let missing = rows.iter().zip(missing).filter(|(_, is_missing)| *is_missing);
            let lost = shared.places.lose(missing.map(|((key, _), _)| key));
            shared.counters.places_lost(lost);
            true
        }
        _ => {
            shared.places.not_renewed(&rows);
            false
        }
    }
}

fn request(shared: &Arc<Shared>, turn: u64, rows: &Rows) -> Request {
    let keys: Vec<_> = rows.iter().map(|(key, _)| key.clone()).collect();
    let slot = shared.route.slot(&keys[0]);
    let known = rows.iter().map(|(_, count)| *count);
    let by = Caller { turn, ..shared.caller(None) };
    let call = Call::renew(keys, known, by);
    Request::new(shared, slot, call)
}
