//! If a client leaves while its request waits in an inner layer, the request was never served, and outer layers give
//! their charges back.
//!
//! Futures are dropped synchronously, and the inner future is dropped as a part of the outer one. So the outer layer
//! listens while it drops its inner future, and a layer that drops a waiting request reports that. Requests that are
//! answered are not affected.
//!
//! Only a request that has passed the outer layer counts; the outer decision in its extensions shows that. A handler
//! that waits as a client of another service was being served.

use std::cell::Cell;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heard {
    /// No layer listens.
    Closed,
    Nothing,
    Unserved,
    /// A handler was running, whatever else was waiting.
    Served,
}

thread_local! {
    static HEARD: Cell<Heard> = const { Cell::new(Heard::Closed) };
}

/// Drops a request that a layer has forwarded and that was not answered. `drop` drops the inner future and then the
/// charge, which is given back if the request was [never served](note_unserved).
pub fn listen_unserved(drop: impl FnOnce()) {
    struct Listening {
        outer: Heard,
    }

    // Also where something panics as it is dropped.
    impl Drop for Listening {
        fn drop(&mut self) {
            let inner = HEARD.get();
            HEARD.set(match self.outer {
                Heard::Closed => Heard::Closed,
                Heard::Served => Heard::Served,
                _ if inner == Heard::Unserved => Heard::Unserved,
                _ => Heard::Served,
            });
        }
    }

    let _listening = Listening { outer: HEARD.replace(Heard::Nothing) };
    drop();
}

/// A request is dropped while it waits: no handler has seen it.
pub fn note_unserved() {
    if HEARD.get() == Heard::Nothing {
        HEARD.set(Heard::Unserved);
    }
}

/// Whether what is being dropped was never served.
pub(crate) fn is_unserved() -> bool {
    HEARD.get() == Heard::Unserved
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
