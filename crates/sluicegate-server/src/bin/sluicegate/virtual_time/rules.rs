use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sluicegate::adapter::{
    Admission, Charge, Enforcer, Gate, HttpLimit, Observer, Refusal, TokioTimer,
};
use sluicegate_config::{Environment, Live, Policies};
use sluicegate_core::adapter;
use sluicegate_core::key::View;
use sluicegate_core::rule::KnownLimits;
use sluicegate_core::{ManualClock, Memory};
use sluicegate_llm::Dialect;

/// What a request has paid.
pub(crate) type Paid = adapter::Paid<Arc<Limit>>;

/// The limits of a file with a store of their own, which makes the same responses as live.
pub(crate) type Limit = HttpLimit<Memory, Option<Dialect>>;

/// The rules of a file, whose clock is moved by hand.
pub(crate) struct Rules {
    live: Live,
    clock: ManualClock,
    /// How often a case asked for the load of the processors.
    loads: Arc<AtomicU64>,
}

impl Rules {
    /// Reads the rules in a file.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the file, as text.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let clock = ManualClock::new();
        let loads = Arc::new(AtomicU64::new(0));
        let asked = Arc::clone(&loads);
        let idle = move || {
            asked.fetch_add(1, Ordering::Relaxed);
            0.0
        };
        let live = Live::open(path, Environment::new().clock(&clock).cpu(idle).never_reloaded());
        let live = live.map_err(|error| error.to_string())?;
        live.kept_by(Memory::builder().clock(&clock).build())
            .map_err(|error| error.in_file(path.display().to_string()).to_string())?;
        Ok(Self { live, clock, loads })
    }

    /// The clock of the rules and of every store.
    pub(crate) fn clock(&self) -> &ManualClock {
        &self.clock
    }

    /// Whether the file has a `[throttle]`, which is not asked.
    pub(crate) fn has_throttle(&self) -> bool {
        self.live.throttle().is_some()
    }

    /// How often a case asked for the load of the processors. They count as idle.
    pub(crate) fn loads(&self) -> u64 {
        self.loads.load(Ordering::Relaxed)
    }

    /// The names of all limits.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.live.each_limit(&mut |limit| names.push(limit.name().to_string()));
        names.sort();
        names.dedup();
        names
    }

    /// The limits, with nothing spent yet and room for this many keys.
    pub(crate) fn limit(&self, keys: usize) -> Arc<Limit> {
        let store = Memory::builder().clock(&self.clock).capacity(keys).build();
        let mut enforcer = Enforcer::new(store, &self.live);
        // A request that may go ahead later is admitted now, and its decision says how long it waits.
        enforcer.gate = Gate::new(self.live.rejection()).without_waiting();
        enforcer.hold = self.live.hold_until();
        enforcer.observer = Observer::without_events();
        enforcer.speak(self.live.dialect());
        Arc::new(HttpLimit::new(enforcer, self.live.dialect()))
    }

    /// What is in force.
    pub(crate) fn policies(&self) -> Arc<Policies> {
        self.live.policies()
    }

    /// Decides about a request that comes now. What has to wait has its wait in the decision.
    #[expect(clippy::result_large_err, reason = "core hands refusals on as they are")]
    pub(crate) fn admit<V: View>(&self, limit: &Arc<Limit>, view: &V) -> Result<Paid, Refusal> {
        let enforcer = limit.enforcer();
        decided(enforcer.admit(&self.live, view, || Arc::clone(limit)))
    }
}

/// Decides about a request that comes now and is charged this.
#[expect(clippy::result_large_err, reason = "core hands refusals on as they are")]
pub(crate) fn admit_charge(limit: &Arc<Limit>, charge: Charge) -> Result<Paid, Refusal> {
    decided(limit.enforcer().admit_charge(charge, || Arc::clone(limit)))
}

#[expect(clippy::result_large_err, reason = "core hands refusals on as they are")]
fn decided(admission: Admission<Arc<Limit>, TokioTimer>) -> Result<Paid, Refusal> {
    match admission {
        Admission::Proceed(paid) => Ok(paid),
        Admission::Refuse(refusal) => Err(refusal),
        Admission::Pending(pending) => {
            pending.now().expect("the store is in this process, and nobody waits at this gate")
        }
    }
}

/// The time that passes between two instants in microseconds.
pub(crate) const fn micros(time: Duration) -> u64 {
    let micros = time.as_micros();
    if micros > u64::MAX as u128 { u64::MAX } else { micros as u64 }
}
