//! What an operator or the system asks of the process.

use std::io;

/// Ready when the process is asked to stop. Calls `reload` when it is asked to read its files again.
#[cfg(unix)]
pub(super) fn until_stopped(
    reload: impl Fn() + Send + Sync + 'static,
) -> io::Result<impl Future<Output = ()>> {
    use std::sync::Arc;

    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let reload = Arc::new(reload);
    Ok(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => return,
                _ = interrupt.recv() => return,
                _ = hang_up.recv() => {
                    let reload = Arc::clone(&reload);
                    // Files take a while to read, and calls go on meanwhile.
                    let _ = tokio::task::spawn_blocking(move || reload()).await;
                }
            }
        }
    })
}

/// Ready when the process is asked to stop.
#[cfg(not(unix))]
pub(super) fn until_stopped(
    reload: impl Fn() + Send + Sync + 'static,
) -> io::Result<impl Future<Output = ()>> {
    drop(reload);
    Ok(async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}
