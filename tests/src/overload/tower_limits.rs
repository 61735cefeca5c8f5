//! tower's own layers, driven by hand: nothing in them reads a clock.

use std::collections::HashMap;
use std::future::{Pending, pending};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use tower::limit::concurrency::future::ResponseFuture;
use tower::{BoxError, Service, limit, load_shed};

use super::IN_FLIGHT;
use super::server::{Act, Contender, End, Job, Request};

/// The service inside: the simulated core says when it ends.
#[derive(Debug, Clone)]
struct Core;

type Running = Pending<Result<(), BoxError>>;

impl Service<()> for Core {
    type Response = ();
    type Error = BoxError;
    type Future = Running;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, (): ()) -> Running {
        pending()
    }
}

/// `tower::limit::ConcurrencyLimit` of [`IN_FLIGHT`]. The others wait in the order of their arrival. Clients that leave
/// are noticed.
#[derive(Debug)]
pub struct ConcurrencyLimit {
    service: limit::ConcurrencyLimit<Core>,
    waiting: HashMap<Job, limit::ConcurrencyLimit<Core>>,
    inside: HashMap<Job, ResponseFuture<Running>>,
    woken: Arc<Mutex<Vec<Job>>>,
}

struct Wakes(Job, Arc<Mutex<Vec<Job>>>);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.1.lock().unwrap_or_else(PoisonError::into_inner).push(self.0);
    }
}

impl Default for ConcurrencyLimit {
    fn default() -> Self {
        Self {
            service: limit::ConcurrencyLimit::new(Core, IN_FLIGHT),
            waiting: HashMap::new(),
            inside: HashMap::new(),
            woken: Arc::default(),
        }
    }
}

impl ConcurrencyLimit {
    fn poll(&mut self, job: Job, acts: &mut Vec<Act>) {
        let waker = Waker::from(Arc::new(Wakes(job, Arc::clone(&self.woken))));
        let Some(service) = self.waiting.get_mut(&job) else { return };
        if service.poll_ready(&mut Context::from_waker(&waker)).is_ready() {
            self.inside.insert(job, service.call(()));
            self.waiting.remove(&job);
            acts.push(Act::Start(job));
        }
    }

    fn poll_woken(&mut self, acts: &mut Vec<Act>) {
        let woken = std::mem::take(&mut *self.woken.lock().unwrap_or_else(PoisonError::into_inner));
        woken.into_iter().for_each(|job| self.poll(job, acts));
    }
}

impl Contender for ConcurrencyLimit {
    fn arrive(&mut self, _: u64, job: Job, _: &Request, acts: &mut Vec<Act>) {
        self.waiting.insert(job, self.service.clone());
        self.poll(job, acts);
    }

    fn done(&mut self, _: u64, job: Job, _: &Request, _: End, acts: &mut Vec<Act>) {
        self.inside.remove(&job);
        self.poll_woken(acts);
    }

    fn leave(&mut self, _: u64, job: Job, acts: &mut Vec<Act>) -> bool {
        self.waiting.remove(&job);
        self.inside.remove(&job);
        self.poll_woken(acts);
        true
    }
}

type Inside = Pin<Box<load_shed::future::ResponseFuture<ResponseFuture<Running>>>>;

/// `tower::load_shed` around a `tower::limit::ConcurrencyLimit` of [`IN_FLIGHT`].
#[derive(Debug)]
pub struct LoadShed {
    service: load_shed::LoadShed<limit::ConcurrencyLimit<Core>>,
    inside: HashMap<Job, Inside>,
}

impl Default for LoadShed {
    fn default() -> Self {
        let limit = limit::ConcurrencyLimit::new(Core, IN_FLIGHT);
        Self { service: load_shed::LoadShed::new(limit), inside: HashMap::new() }
    }
}

impl Contender for LoadShed {
    fn arrive(&mut self, _: u64, job: Job, _: &Request, acts: &mut Vec<Act>) {
        let (mut service, mut cx) = (self.service.clone(), Context::from_waker(Waker::noop()));
        assert!(service.poll_ready(&mut cx).is_ready(), "it is always ready");
        let mut response = Box::pin(service.call(()));
        match response.as_mut().poll(&mut cx) {
            Poll::Pending => {}
            Poll::Ready(_) => return acts.push(Act::Refuse),
        }
        self.inside.insert(job, response);
        acts.push(Act::Start(job));
    }

    fn done(&mut self, _: u64, job: Job, _: &Request, _: End, _: &mut Vec<Act>) {
        self.inside.remove(&job);
    }

    fn leave(&mut self, _: u64, job: Job, _: &mut Vec<Act>) -> bool {
        self.inside.remove(&job);
        true
    }
}
