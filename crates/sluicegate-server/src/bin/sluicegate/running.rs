//! How `serve` and `proxy` run, from their first log line to their end.

use std::error::Error;
use std::io::{self, IsTerminal, stderr};
use std::net::SocketAddr;
use std::pin::Pin;

use clap::{Args, ValueEnum};
use sluicegate_server::ServerError;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{error, info};
use tracing_subscriber::EnvFilter;

use crate::store::Counting;

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Running")]
pub(crate) struct Running {
    /// Reads files again only on SIGHUP, and not when they change.
    #[arg(long)]
    pub(crate) no_watch: bool,
    /// How long to keep serving after SIGTERM, in seconds. Meanwhile the health check fails, so that load balancers send no
    /// further requests.
    #[arg(long, value_name = "SECONDS", default_value = "0")]
    pub(crate) drain_delay: u64,
    /// How long the last requests may take after that, in seconds, before they are cut off.
    #[arg(long, value_name = "SECONDS", default_value = "30")]
    pub(crate) drain: u64,
    /// How log lines are written.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) log: Format,
    /// Which log lines are written: a level, or levels of modules, such as `info,sluicegate_redis=debug`.
    #[arg(long, value_name = "FILTER", env = "SLUICEGATE_LOG", default_value = "info")]
    pub(crate) log_level: String,
}

/// Ready when the process is asked to stop.
pub(crate) type Stop = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Starts the log, and runs `served` on a runtime with a thread for each processor.
pub(crate) fn block_on(
    running: &Running,
    served: impl Future<Output = Result<(), Box<dyn Error>>>,
) -> Result<(), Box<dyn Error>> {
    begin_log(running.log, &running.log_level)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(served);
    // A file system that does not answer must not keep the process from ending.
    runtime.shutdown_background();
    served
}

/// Serves on ports that are open until the process is asked to stop, and tells the system what it does meanwhile.
pub(crate) async fn serve(
    signals: Signals,
    ports: &[(&str, Option<SocketAddr>)],
    reload: impl Fn() -> Result<(), ServerError> + Send + Sync + 'static,
    run: impl AsyncFnOnce(Stop),
    store: Counting,
) -> Result<(), Box<dyn Error>> {
    let stop = until_stopped(signals, move || {
        tell(State::Reloading);
        match reload() {
            Ok(()) => info!("files read again"),
            Err(problems) => error!("files not read again: {problems}"),
        }
        tell(State::Ready);
    });
    for (port, address) in ports {
        if let Some(address) = *address {
            info!(port, %address, "serving");
        }
    }
    tell(State::Ready);
    run(Box::pin(async {
        stop.await;
        tell(State::Stopping);
    }))
    .await;
    store.flush().await;
    Ok(())
}

// Log lines on the standard error output.

/// How log lines are written.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Writes log lines from now on. `filter` is a level, or levels of modules, such as `info,sluicegate_redis=debug`.
fn begin_log(format: Format, filter: &str) -> Result<(), String> {
    understood(filter)?;
    let filter = EnvFilter::try_new(filter).map_err(|error| format!("--log-level: {error}"))?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(stderr)
        .with_ansi(stderr().is_terminal());
    match format {
        Format::Text => lines.try_init(),
        Format::Json => lines.json().flatten_event(true).try_init(),
    }
    .map_err(|error| error.to_string())
}

/// A word that is no level would be taken for a module, and every other line would be left out without a word.
fn understood(filter: &str) -> Result<(), String> {
    let levels = ["off", "error", "warn", "info", "debug", "trace"];
    let is_understood = |word: &str| {
        let is_level = levels.iter().any(|level| word.eq_ignore_ascii_case(level));
        let is_number = matches!(word.as_bytes(), [b'0'..=b'5']);
        word.is_empty() || is_level || is_number || word.contains(['=', ':', '[', '_'])
    };
    match filter.split(',').map(str::trim).find(|word| !is_understood(word)) {
        None => Ok(()),
        Some(word) => Err(format!(
            "--log-level: `{word}` is not a level: expected off, error, warn, info, debug or trace, or levels of modules \
             such as `info,sluicegate_redis=debug`"
        )),
    }
}

// What systemd is told about a service of `Type=notify`. Elsewhere, nobody is told.

/// What a server does.
#[derive(Debug, Clone, Copy)]
enum State {
    /// It serves.
    Ready,
    /// It reads its files again. `Ready` follows.
    Reloading,
    /// It answers its last requests.
    Stopping,
}

/// A service manager that cannot be told is no reason to stop serving.
#[cfg(unix)]
fn tell(state: State) {
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
fn tell(state: State) {
    tracing::trace!(?state, "there is no systemd");
}

// What an operator or the system asks of the process.

/// Signals of the system. They are recorded from the time that this is made, so none is lost before somebody waits for it.
#[cfg(unix)]
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

#[cfg(unix)]
impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Ready when the process is asked to stop.
    pub(crate) async fn stopped(&mut self) {
        either(&mut self.terminate, &mut self.interrupt).await;
    }
}

#[cfg(unix)]
async fn either(one: &mut Signal, other: &mut Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}

/// Ready when the process is asked to stop. Calls `reload` when it is asked to read its files again: once at a time, and
/// once more if it was asked meanwhile, however often. When it is asked to stop again, the process ends at once.
#[cfg(unix)]
pub(crate) fn until_stopped(
    signals: Signals,
    reload: impl Fn() + Send + Sync + 'static,
) -> impl Future<Output = ()> {
    let Signals { mut terminate, mut interrupt, mut hang_up } = signals;
    let reload = std::sync::Arc::new(reload);
    async move {
        tokio::spawn(async move {
            while hang_up.recv().await.is_some() {
                let reload = std::sync::Arc::clone(&reload);
                // Files take a while to read, and calls go on meanwhile.
                let _ = tokio::task::spawn_blocking(move || reload()).await;
            }
        });
        either(&mut terminate, &mut interrupt).await;
        tokio::spawn(async move {
            either(&mut terminate, &mut interrupt).await;
            tracing::warn!("asked to stop again: ended before every request was answered");
            std::process::exit(AT_ONCE);
        });
    }
}

/// The exit status of a process that did not wait for its requests.
#[cfg(unix)]
const AT_ONCE: i32 = 1;

/// Signals of the system.
#[cfg(not(unix))]
pub(crate) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    /// Ready when the process is asked to stop.
    pub(crate) async fn stopped(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Ready when the process is asked to stop.
#[cfg(not(unix))]
pub(crate) fn until_stopped(
    mut signals: Signals,
    reload: impl Fn() + Send + Sync + 'static,
) -> impl Future<Output = ()> {
    drop(reload);
    async move { signals.stopped().await }
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
            until_stopped(Signals::new().expect("signals"), move || {
                let before = begun.fetch_add(1, Ordering::SeqCst);
                assert_eq!(before, ended.load(Ordering::SeqCst), "two at a time");
                let _ = go_on.lock().expect("one at a time").recv();
                ended.fetch_add(1, Ordering::SeqCst);
            })
        };
        let stopped = tokio::spawn(stop);
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
