//! If a client leaves while its request waits in an inner layer, the request was never served, and outer layers give
//! their charges back.
//!
//! Futures are dropped synchronously, and the inner future is dropped as a part of the outer one. So the outer layer
//! listens while it drops its inner future, and a layer that drops a waiting request reports that. Requests that are
//! answered are not affected.
//!
//! Only a request that has passed the outer layer counts; what that leaves in its extensions shows it: the decision, or
//! a mark. A handler that waits as a client of another service was being served.
//!
//! In the same way, a layer that counts what a request uses says how much that was: there is no response to leave it in.

use std::cell::Cell;

use crate::admission::lazy_decision::{Extensions, LazyDecision};

/// Left in the extensions of a request that a layer has charged and leaves no decision in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Charged;

/// Whether a layer that the request has passed has charged it.
pub fn is_charged(request: &impl Extensions) -> bool {
    let is_decided = || request.find().as_ref().is_some_and(LazyDecision::is_decided);
    request.has::<Charged>() || is_decided()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DropReport {
    /// No layer listens.
    Closed,
    Nothing,
    Unserved,
    /// A handler was running, whatever else was waiting.
    Served,
}

thread_local! {
    static REPORT: Cell<DropReport> = const { Cell::new(DropReport::Closed) };
    static SPENT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Drops a request that a layer has forwarded and that was not answered. `drop` drops the inner future and then the
/// charge, which is given back if the request was [never served](note_unserved), and raised to what it has
/// [spent](note_spent).
pub fn listen_unserved(drop: impl FnOnce()) {
    struct Listener {
        outer: DropReport,
        spent: Option<u64>,
    }

    // Also where something panics as it is dropped.
    impl Drop for Listener {
        fn drop(&mut self) {
            // Served outweighs unserved, in every layer further out: a handler that has run is not undone because
            // something was waiting beside it. A listener that heard nothing has dropped the handler itself, so the
            // request was served.
            let inner = REPORT.get();
            REPORT.set(match self.outer {
                DropReport::Closed => DropReport::Closed,
                DropReport::Served => DropReport::Served,
                _ if inner == DropReport::Unserved => DropReport::Unserved,
                _ => DropReport::Served,
            });
            SPENT.set(match self.outer {
                DropReport::Closed => None,
                _ => self.spent.or(SPENT.get()),
            });
        }
    }

    let outer = REPORT.replace(DropReport::Nothing);
    let _listener = Listener { outer, spent: SPENT.take() };
    drop();
}

/// A request is dropped while it waits: no handler has seen it.
pub fn note_unserved() {
    // Not where a handler was heard before: what it waits for, as a client of another service, is its own business.
    if REPORT.get() == DropReport::Nothing {
        REPORT.set(DropReport::Unserved);
    }
}

/// A request is dropped that has cost this much until now, as a layer has counted that would have left it in the response.
/// A rule that asks for more of the response sees one with status 200.
pub fn note_spent(cost: u64) {
    // The first one is the outermost: what a handler counts as a client of another service is its own business.
    if cost > 0 && REPORT.get() != DropReport::Closed && SPENT.get().is_none() {
        SPENT.set(Some(cost));
    }
}

/// What the request that is being dropped has cost, if a layer has counted that.
pub(crate) fn spent() -> Option<u64> {
    SPENT.get()
}

/// Whether what is being dropped was never served.
pub(crate) fn is_unserved() -> bool {
    REPORT.get() == DropReport::Unserved
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(drop: impl FnOnce()) -> bool {
        let mut heard = false;
        listen_unserved(|| {
            drop();
            heard = is_unserved();
        });
        heard
    }

    #[test]
    fn what_waited_is_heard_by_all_layers_further_out() {
        assert!(heard(note_unserved));
        assert!(heard(|| assert!(heard(note_unserved))));
        assert!(!heard(|| {}));
    }

    #[test]
    fn a_handler_that_was_running_outweighs_what_waits_within_or_beside_it() {
        assert!(!heard(|| assert!(!heard(|| {}))));
        assert!(!heard(|| {
            listen_unserved(|| {});
            note_unserved();
        }));
        assert!(!heard(|| {
            note_unserved();
            listen_unserved(|| {});
        }));
    }

    #[test]
    fn what_was_spent_is_heard_by_all_layers_further_out() {
        let mut heard = Vec::new();
        listen_unserved(|| {
            listen_unserved(|| {
                note_spent(7);
                note_spent(3);
                heard.push(spent());
            });
            heard.push(spent());
        });
        note_spent(9);
        heard.push(spent());
        assert_eq!(heard, [Some(7), Some(7), None]);
    }

    #[test]
    fn nothing_is_left_behind() {
        note_unserved();
        assert!(!is_unserved());
        listen_unserved(note_unserved);
        assert!(!is_unserved());
        let unwound =
            std::panic::catch_unwind(|| listen_unserved(|| panic!("while it is dropped")));
        assert!(unwound.is_err());
        note_unserved();
        assert!(!is_unserved());
    }
}
