//! One task that renews what is held, as long as anything is.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use super::Due;
use crate::ask::Question;
use crate::failure::{Failure, FailureKind};
use crate::runtime::{Runtime, before};
use crate::script::{Asker, Call, renew};
use crate::settle;
use crate::shared::Shared;

/// Rows that are renewed by one script: the server, which does one thing at a time, is through with them in
/// less than half a millisecond.
const TOGETHER: usize = 64;

/// Scripts that are under way to one server at a time.
const AT_ONCE: usize = 8;

type Rows = Vec<(Vec<u8>, u64)>;

/// Has what is held renewed, if that is not done yet.
pub(crate) fn keep(shared: &Arc<Shared>) {
    let mut held = shared.places.lock();
    if std::mem::replace(&mut held.is_renewed, true) {
        return;
    }
    drop(held);
    // It keeps nobody alive: where there is no store any more, nobody could give anything back.
    let (store, runtime) = (Arc::downgrade(shared), Arc::clone(&shared.runtime));
    shared.runtime.spawn(until_nothing_is_held(store, runtime, shared.places.pause()));
}

async fn until_nothing_is_held(
    store: Weak<Shared>,
    runtime: Arc<Runtime>,
    pause: std::time::Duration,
) {
    loop {
        runtime.sleep(pause).await;
        let Some(shared) = store.upgrade() else { return };
        let Some(due) = shared.places.due(runtime.clock.now()) else { return };
        renew_all(&shared, due).await;
    }
}

/// Server by server: one that does not answer keeps none of the others from it.
async fn renew_all(shared: &Arc<Shared>, Due { turn, rows }: Due) {
    let mut slots = BTreeMap::<u16, Rows>::new();
    for row in rows {
        slots.entry(shared.route.slot(&row.0)).or_default().push(row);
    }
    let mut servers = BTreeMap::<_, Vec<Rows>>::new();
    for (slot, rows) in slots {
        let server = shared.route.known(slot).map(|node| Arc::as_ptr(&node).addr());
        let scripts = servers.entry(server).or_default();
        scripts.extend(rows.chunks(TOGETHER).map(<[_]>::to_vec));
    }
    let ask = |scripts| shared.runtime.spawn(renew_on_one(Arc::clone(shared), turn, scripts));
    let asked: Vec<_> = servers.into_values().map(ask).collect();
    for server in asked {
        // A task ends early with its runtime, and then this one does too.
        let _ = server.await;
    }
}

/// What is left when the server fails is tried again the next time.
async fn renew_on_one(shared: Arc<Shared>, turn: u64, mut scripts: Vec<Rows>) {
    let mut is_well = true;
    while !scripts.is_empty() {
        let these: Vec<_> = scripts.drain(..AT_ONCE.min(scripts.len())).collect();
        if !is_well {
            these.iter().for_each(|rows| shared.places.not_renewed(rows));
            continue;
        }
        let ask = |rows| shared.runtime.spawn(renew_some(Arc::clone(&shared), turn, rows));
        let asked: Vec<_> = these.into_iter().map(ask).collect();
        for script in asked {
            is_well &= script.await.unwrap_or_default();
        }
    }
}

/// Whether the server has renewed them.
async fn renew_some(shared: Arc<Shared>, turn: u64, rows: Rows) -> bool {
    let asked = shared.runtime.clock.now();
    let question = question(&shared, turn, &rows);
    let in_time = shared.runtime.sleep(shared.places.pause());
    let answer = before(in_time, settle::send(&shared, &question)).await;
    let answer = answer.unwrap_or_else(|| Err(Failure::new(FailureKind::TooSlow)));
    match answer.map(|answer| renew::lost(&answer)) {
        Ok(Ok(lost)) => {
            shared.places.renewed(&rows, asked);
            shared.counters.places_lost(lost);
            true
        }
        _ => {
            shared.places.not_renewed(&rows);
            false
        }
    }
}

fn question(shared: &Arc<Shared>, turn: u64, rows: &Rows) -> Question {
    let keys: Vec<_> = rows.iter().map(|(key, _)| key.clone()).collect();
    let slot = shared.route.slot(&keys[0]);
    let known = rows.iter().map(|(_, count)| *count);
    let by = Asker { turn, ..shared.asker(None) };
    let call = Call::renew(keys, known, by);
    Question::new(shared, slot, &call)
}
