//! Whether this server reaches the one that divides the capacity. Otherwise its clients get nothing from it, and only their
//! operators would see that.

use std::fmt::Display;
use std::sync::{Mutex, PoisonError};

use metrics::{describe_gauge, gauge};
use sluicegate_lease::Role;

const AWAY: &str = "sluicegate_master_away";

/// The master that could not be reached by the last call, if there is one. The log is told once when that begins, and once
/// when it ends.
#[derive(Debug)]
pub(super) struct Contact(Mutex<State>);

#[derive(Debug)]
struct State {
    role: Role,
    away: Option<Box<str>>,
}

impl Contact {
    pub(super) fn new() -> Self {
        describe_gauge!(
            AWAY,
            "1 while this server knows no server that divides the capacity, or its last call could not reach it."
        );
        Self(Mutex::new(State { role: Role::Other { master: None }, away: None }))
    }

    /// A call could not be passed on to this master.
    pub(super) fn failed(&self, master: &str, why: &dyn Display) {
        self.change(|state| {
            // A call that began before another server became the master says nothing about that.
            if is_master(&state.role, master) && state.away.is_none() {
                tracing::warn!(master, "calls are not passed on: {why}");
                state.away = Some(master.into());
            }
        });
    }

    /// A call was passed on to this master.
    pub(super) fn reached(&self, master: &str) {
        self.change(|state| {
            if let Some(master) = state.away.take_if(|away| **away == *master) {
                tracing::info!(%master, "the master can be reached again");
            }
        });
    }

    pub(super) fn set_role(&self, role: &Role) {
        self.change(|state| {
            state.role.clone_from(role);
            if let Some(master) = state.away.take_if(|away| !is_master(role, away)) {
                tracing::info!(%master, "the server that could not be reached is not the master any more");
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        let nobody = state.role == Role::Other { master: None };
        gauge!(AWAY).set(f64::from(u8::from(nobody || state.away.is_some())));
    }
}

fn is_master(role: &Role, address: &str) -> bool {
    matches!(role, Role::Other { master: Some(master) } if **master == *address)
}

#[cfg(test)]
mod tests {
    use metrics_exporter_prometheus::PrometheusBuilder;
    use sluicegate_tests::log::Log;

    use super::*;

    fn other(address: &str) -> Role {
        Role::Other { master: Some(address.into()) }
    }

    /// What the log says about this, and the value of the gauge afterwards.
    fn told(about: impl Fn(&Contact)) -> (Vec<String>, String) {
        let recorder = PrometheusBuilder::new().build_recorder();
        let (shown, log) = (recorder.handle(), Log::of(module_path!().trim_end_matches("::tests")));
        let _attached = log.attach();
        metrics::with_local_recorder(&recorder, || about(&Contact::new()));
        let shown = shown.render();
        let value = shown.lines().find_map(|line| line.strip_prefix("sluicegate_master_away "));
        (log.taken(), value.expect("a gauge").to_owned())
    }

    #[test]
    fn a_master_that_cannot_be_reached_is_told_once_and_once_when_that_ends() {
        let (lines, gauge) = told(|contact| {
            contact.set_role(&other("http://a"));
            for _ in 0..3 {
                contact.failed("http://a", &"nobody listens");
            }
        });
        let warned = "WARN calls are not passed on: nobody listens master=\"http://a\"";
        assert_eq!((lines, &*gauge), (vec![warned.to_owned()], "1"));
        let (lines, gauge) = told(|contact| {
            contact.set_role(&other("http://a"));
            for _ in 0..2 {
                contact.failed("http://a", &"nobody listens");
                contact.reached("http://a");
                contact.reached("http://a");
            }
        });
        let again = "INFO the master can be reached again master=http://a";
        assert_eq!(lines, [warned, again, warned, again]);
        assert_eq!(gauge, "0");
    }

    #[test]
    fn another_master_ends_it_and_calls_to_the_last_one_say_nothing() {
        let master = Role::Master { fence: 2, until: None, known: None };
        for (next, expected) in
            [(other("http://b"), "0"), (master, "0"), (Role::Other { master: None }, "1")]
        {
            let (lines, gauge) = told(|contact| {
                contact.set_role(&other("http://a"));
                contact.failed("http://a", &"it does not answer");
                contact.set_role(&other("http://a"));
                contact.set_role(&next);
                contact.failed("http://a", &"it does not answer");
                contact.reached("http://a");
            });
            assert_eq!((lines.len(), &*gauge), (2, expected), "{next:?}: {lines:?}");
            assert!(lines[1].starts_with("INFO "), "{lines:?}");
        }
    }
}
