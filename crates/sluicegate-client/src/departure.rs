//! Tells a layer whether a request that it has passed on has left the program, or a layer further in holds it back.

use std::cell::Cell;

/// Where a request is, as far as the layers further in say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nobody has said anything: nobody has held it back.
    Silent,
    /// It waits in this program.
    Held,
    /// It leaves, unless a layer further in holds it back next.
    Left,
}

thread_local! {
    static STAGE: Cell<Stage> = const { Cell::new(Stage::Silent) };
}

/// The request that is being worked on waits.
pub(crate) fn hold() {
    STAGE.set(Stage::Held);
}

/// The request that is being worked on leaves the layer.
pub(crate) fn leave() {
    STAGE.set(Stage::Left);
}

/// Runs `inner`, and says what has become of its request meanwhile.
pub(crate) fn watch<T>(inner: impl FnOnce() -> T) -> (T, Stage) {
    struct Restore(Stage);
    impl Drop for Restore {
        fn drop(&mut self) {
            // What was said further in holds for a layer further out, too.
            if STAGE.get() == Stage::Silent {
                STAGE.set(self.0);
            }
        }
    }
    let _restore = Restore(STAGE.replace(Stage::Silent));
    let result = inner();
    (result, STAGE.get())
}
