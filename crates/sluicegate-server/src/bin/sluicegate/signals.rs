//! What an operator or the system asks of the process.

use std::io;

/// Ready when the process is asked to stop. Calls `reload` when it is asked to read its files again: once at a time, and
/// once more if it was asked meanwhile, however often. When it is asked to stop again, the process ends at once.
#[cfg(unix)]
pub(crate) fn until_stopped(
    reload: impl Fn() + Send + Sync + 'static,
) -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut stop = Stop {
        terminate: signal(SignalKind::terminate())?,
        interrupt: signal(SignalKind::interrupt())?,
    };
    let mut hang_up = signal(SignalKind::hangup())?;
    let reload = std::sync::Arc::new(reload);
    let reloads = async move {
        while hang_up.recv().await.is_some() {
            let reload = std::sync::Arc::clone(&reload);
            // Files take a while to read, and calls go on meanwhile.
            let _ = tokio::task::spawn_blocking(move || reload()).await;
        }
    };
    Ok(async move {
        tokio::spawn(reloads);
        stop.asked().await;
        tokio::spawn(async move {
            stop.asked().await;
            tracing::warn!("asked to stop again: ended before every request was answered");
            std::process::exit(AT_ONCE);
        });
    })
}

/// The exit status of a process that did not wait for its requests.
#[cfg(unix)]
const AT_ONCE: i32 = 1;

/// The signals by which a process is asked to stop.
#[cfg(unix)]
struct Stop {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Stop {
    async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Ready when the process is asked to stop.
#[cfg(not(unix))]
pub(crate) fn until_stopped(
    reload: impl Fn() + Send + Sync + 'static,
) -> io::Result<impl Future<Output = ()>> {
    drop(reload);
    Ok(async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::Command;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use super::*;

    fn hang_up() {
        let id = std::process::id().to_string();
        let sent = Command::new("kill").args(["-s", "HUP", &id]).status().expect("kill");
        assert!(sent.success());
    }

    #[tokio::test]
    async fn files_are_read_once_at_a_time_and_again_if_it_was_asked_meanwhile() {
        let (begun, ended) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let (one, go_on) = std::sync::mpsc::channel::<()>();
        let go_on = std::sync::Mutex::new(go_on);
        let stop = {
            let (begun, ended) = (Arc::clone(&begun), Arc::clone(&ended));
            until_stopped(move || {
                let before = begun.fetch_add(1, Ordering::SeqCst);
                assert_eq!(before, ended.load(Ordering::SeqCst), "two at a time");
                let _ = go_on.lock().expect("one at a time").recv();
                ended.fetch_add(1, Ordering::SeqCst);
            })
        };
        let stopped = tokio::spawn(stop.expect("signals"));
        let until = async |counter: &AtomicU32, count| {
            while counter.load(Ordering::SeqCst) < count {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        hang_up();
        until(&begun, 1).await;
        (0..100).for_each(|_| hang_up());
        assert_eq!(begun.load(Ordering::SeqCst), 1);
        one.send(()).expect("a reader");
        until(&begun, 2).await;
        // However often it was asked.
        one.send(()).expect("a reader");
        until(&ended, 2).await;
        drop(one);
        assert!(!stopped.is_finished());
        stopped.abort();
    }
}
