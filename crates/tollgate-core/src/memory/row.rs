use std::sync::{Mutex, PoisonError};

use super::sync::{AtomicU64, Ordering};
use crate::limit::{Cell, State};

/// What stands in a row of a table; read and written under the lock of its bucket.
pub(super) trait Row: Default {
    type Content: Default;

    /// Takes out what stands there, and leaves nothing.
    fn take(&self) -> Self::Content;

    fn put(&self, content: Self::Content);

    /// Reads something of it that never says no, however little the compiler knows of that.
    fn is_readable(&self) -> bool;
}

/// The two words of a bucket or a window.
#[derive(Debug, Default)]
pub(super) struct Narrow([AtomicU64; 2]);

/// What a limit keeps that remembers more. Nobody ever waits for this lock, or finds it poisoned.
#[derive(Debug, Default)]
pub(super) struct Wide(Mutex<Option<Box<State>>>);

impl Narrow {
    #[inline]
    pub(super) fn cell(&self) -> Cell {
        [self.0[0].load(Ordering::Relaxed), self.0[1].load(Ordering::Relaxed)]
    }
}

impl Row for Narrow {
    type Content = Cell;

    #[inline]
    fn take(&self) -> Cell {
        let cell = self.cell();
        self.put(Cell::default());
        cell
    }

    #[inline]
    fn is_readable(&self) -> bool {
        // Every word is exact in a double.
        self.0[0].load(Ordering::Relaxed) != u64::MAX
    }

    #[inline]
    fn put(&self, cell: Cell) {
        self.0[0].store(cell[0], Ordering::Relaxed);
        self.0[1].store(cell[1], Ordering::Relaxed);
    }
}

impl Row for Wide {
    type Content = Option<Box<State>>;

    fn is_readable(&self) -> bool {
        true
    }

    fn take(&self) -> Self::Content {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, state: Self::Content) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}
