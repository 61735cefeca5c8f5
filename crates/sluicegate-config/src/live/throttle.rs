use std::sync::{Mutex, PoisonError};

use crate::compile::Policies;
use crate::compile::throttle::setting_of;
use crate::document::Document;
use crate::source::{Diagnostic, DocumentPath};
use crate::throttle::FileThrottle;

/// The throttle of a file, once it has been made.
#[derive(Debug, Default)]
pub(super) struct Made(Mutex<Option<FileThrottle>>);

impl Made {
    pub(super) fn of(&self, policies: &Policies) -> Option<FileThrottle> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if made.is_none() {
            // The settings were checked when the policies were compiled.
            *made = policies.throttling().and_then(|said| FileThrottle::new(said).ok());
        }
        made.clone()
    }

    /// Applies the settings in `policies` to the throttle, if one has been made. An error is located in `document`.
    pub(super) fn change(
        &self,
        document: Option<&Document>,
        policies: &Policies,
    ) -> Result<(), Diagnostic> {
        let made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(throttle) = &*made else { return Ok(()) };
        let path = DocumentPath::Root.name("throttle");
        let problem = |path: &DocumentPath<'_>, message: String| match document {
            Some(document) => document.source.problem(path, message),
            None => Diagnostic::new(path.to_string(), message),
        };
        let Some(new) = policies.throttling() else {
            let message = "the throttle is in use, and cannot be removed while the service runs";
            return Err(problem(&path, message.to_owned()));
        };
        let changed = throttle.change(new);
        changed.map_err(|error| problem(&path.name(setting_of(&error)), error.to_string()))
    }
}
