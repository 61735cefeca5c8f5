use std::fmt;

use super::{ChosenBy, Condition};
use crate::key::{Extension, Missing, View};

impl<T> Extension<T> {
    /// Holds if an earlier layer left a value that passes the test. Does not hold if there is none.
    ///
    /// ```
    /// use sluicegate::{Ip, Limit};
    /// use sluicegate::condition::Not;
    /// use sluicegate::key::Extension;
    ///
    /// #[derive(Clone)]
    /// struct User { staff: bool }
    ///
    /// let staff = Extension::<User>::new().is(|user| user.staff);
    /// let rule = Limit::per_minute(10).by(Ip::peer()).when(Not(staff));
    /// ```
    pub fn is<F: Fn(&T) -> bool>(self, test: F) -> ExtensionIs<T, F> {
        ExtensionIs { extension: self, test }
    }
}

/// Holds if an extension passes a test; see [`Extension::is`].
pub struct ExtensionIs<T, F> {
    extension: Extension<T>,
    test: F,
}

impl<V, T, F> Condition<V> for ExtensionIs<T, F>
where
    V: View,
    T: Send + Sync + 'static,
    F: Fn(&T) -> bool,
{
    fn holds(&self, view: &V) -> Result<bool, Missing> {
        Ok(view.extension(&self.test).unwrap_or(false))
    }

    fn chosen_by(&self) -> ChosenBy {
        ChosenBy::Server
    }
}

// A derived implementation would require the trait of `T`.

impl<T, F: Clone> Clone for ExtensionIs<T, F> {
    fn clone(&self) -> Self {
        Self { extension: self.extension, test: self.test.clone() }
    }
}

impl<T, F: Copy> Copy for ExtensionIs<T, F> {}

impl<T, F> fmt::Debug for ExtensionIs<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExtensionIs({:?})", self.extension)
    }
}
