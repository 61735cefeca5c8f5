use std::error::Error;
use std::fmt;

use sluicegate_core::store::StoreError;

/// The store could not decide. It is never an answer about the client.
#[derive(Debug, Clone)]
pub struct Undecided(pub(crate) StoreError);

impl Undecided {
    /// The store's error.
    pub fn store_error(&self) -> &StoreError {
        &self.0
    }
}

impl fmt::Display for Undecided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Undecided {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}
