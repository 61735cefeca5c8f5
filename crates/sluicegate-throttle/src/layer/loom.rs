//! Every order in which requests that end, wait and leave can meet, tried by loom: a request that is never woken is a
//! deadlock there.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p sluicegate-throttle --lib --release --target-dir target/loom layer::loom`

use std::future::poll_fn;
use std::sync::Arc;

use ::loom::future::block_on;
use ::loom::thread;
use sluicegate_core::ManualClock;

use super::dispatch::{Dispatch, Place};
use super::in_service::InService;
use super::requests::Description;
use super::shared::Shared;
use super::snapshot::UnreadCounts;
use super::throttle::Throttle;
use crate::class::Class;
use crate::scheduler::Shed;

/// The maximum number of preemptions, unless `LOOM_MAX_PREEMPTIONS` sets it.
const INTERRUPTIONS: usize = 2;

fn model(run: impl Fn() + Send + Sync + 'static) {
    let mut builder = ::loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(INTERRUPTIONS);
    builder.check(run);
}

/// One request at a time.
fn one_at_a_time(queue: u64) -> Arc<Shared> {
    let builder = Throttle::builder().in_flight(1).queue_cost(queue).first_cost(1);
    builder.clock(&ManualClock::new()).build().unwrap().shared
}

fn request(class: Class) -> Description {
    Description {
        class,
        flow: 0,
        key: 0,
        timeout: None,
        partition: None,
        unread: UnreadCounts::default(),
        names: None,
    }
}

fn runs(shared: &Arc<Shared>, class: Class) -> InService {
    match shared.admit(&request(class)) {
        Dispatch::Start(running) => running,
        other => panic!("{other:?}"),
    }
}

fn waits(shared: &Arc<Shared>, class: Class) -> Place {
    match shared.admit(&request(class)) {
        Dispatch::Wait(place) => place,
        other => panic!("{other:?}"),
    }
}

fn told(mut place: Place) -> Result<InService, Shed> {
    block_on(poll_fn(move |cx| place.poll(cx)))
}

#[test]
fn a_request_that_waits_is_woken_by_the_end_of_another() {
    model(|| {
        let shared = one_at_a_time(10);
        let first = runs(&shared, Class::CRITICAL);
        let second = waits(&shared, Class::CRITICAL);
        let other = thread::spawn(move || drop(first));
        drop(told(second).unwrap());
        other.join().unwrap();
        assert_eq!(shared.snapshot().running, 0);
    });
}

#[test]
fn one_that_leaves_as_it_is_told_passes_its_place_on() {
    model(|| {
        let shared = one_at_a_time(10);
        let first = runs(&shared, Class::CRITICAL);
        let second = waits(&shared, Class::CRITICAL);
        let third = waits(&shared, Class::CRITICAL);
        let ends = thread::spawn(move || drop(first));
        let leaves = thread::spawn(move || drop(second));
        drop(told(third).unwrap());
        ends.join().unwrap();
        leaves.join().unwrap();
        let snapshot = shared.snapshot();
        assert_eq!((snapshot.queued, snapshot.queued_cost, snapshot.running), (0, 0, 0));
    });
}

#[test]
fn one_that_is_evicted_as_it_could_start_is_told_one_of_both() {
    model(|| {
        let shared = one_at_a_time(1);
        let first = runs(&shared, Class::CRITICAL);
        let second = waits(&shared, Class::SHEDDABLE);
        let ends = thread::spawn(move || drop(first));
        let comes = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || match shared.admit(&request(Class::CRITICAL)) {
                Dispatch::Start(running) => drop(running),
                Dispatch::Wait(place) => drop(told(place)),
                Dispatch::Refuse(shed) => panic!("{shed:?}"),
            })
        };
        drop(told(second));
        ends.join().unwrap();
        comes.join().unwrap();
        let snapshot = shared.snapshot();
        assert_eq!((snapshot.queued, snapshot.queued_cost, snapshot.running), (0, 0, 0));
    });
}

/// Checks the model itself: it must find a request that is told but not woken, and so waits for ever.
#[test]
#[should_panic(expected = "deadlock")]
fn a_lost_wake_up_would_be_found() {
    model(|| {
        let shared = one_at_a_time(10);
        let first = runs(&shared, Class::CRITICAL);
        let second = waits(&shared, Class::CRITICAL);
        let waiter = second.waiter();
        let other = thread::spawn(move || {
            drop(waiter.take_waker());
            drop(first);
        });
        let _ = told(second);
        other.join().unwrap();
    });
}
