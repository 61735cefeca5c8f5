//! What systemd is told about a service of `Type=notify`. Elsewhere, nobody is told.

/// What a server does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum State {
    /// It serves.
    Ready,
    /// It reads its files again. `Ready` follows.
    Reloading,
    /// It answers its last requests.
    Stopping,
}

/// A service manager that cannot be told is no reason to stop serving.
#[cfg(unix)]
pub(crate) fn tell(state: State) {
    use sd_notify::{NotifyState, notify};

    let told = match state {
        State::Ready => notify(&[NotifyState::Ready]),
        State::Reloading => {
            NotifyState::monotonic_usec_now().and_then(|now| notify(&[NotifyState::Reloading, now]))
        }
        State::Stopping => notify(&[NotifyState::Stopping]),
    };
    if let Err(error) = told {
        tracing::warn!(%error, ?state, "systemd was not told");
    }
}

#[cfg(not(unix))]
pub(crate) fn tell(state: State) {
    tracing::trace!(?state, "there is no systemd");
}
