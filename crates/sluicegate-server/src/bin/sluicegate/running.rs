//! How `serve` and `proxy` run, from their first log line to their end.

use std::error::Error;
use std::net::SocketAddr;
use std::pin::Pin;

use sluicegate_server::ServerError;
use tracing::{error, info};

use crate::notify::{State, tell};
use crate::shared::Running;
use crate::store::Counting;
use crate::{log, signals};

/// Ready when the process is asked to stop.
pub(crate) type Stop = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Starts the log, and runs `served` on a runtime with a thread for each processor.
pub(crate) fn block_on(
    running: &Running,
    served: impl Future<Output = Result<(), Box<dyn Error>>>,
) -> Result<(), Box<dyn Error>> {
    log::begin(running.log, &running.log_level)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(served);
    // A file system that does not answer must not keep the process from ending.
    runtime.shutdown_background();
    served
}

/// Serves on ports that are open until the process is asked to stop, and tells the system what it does meanwhile.
pub(crate) async fn serve(
    ports: &[(&str, Option<SocketAddr>)],
    reload: impl Fn() -> Result<(), ServerError> + Send + Sync + 'static,
    run: impl AsyncFnOnce(Stop),
    store: Counting,
) -> Result<(), Box<dyn Error>> {
    let stop = signals::until_stopped(move || {
        tell(State::Reloading);
        match reload() {
            Ok(()) => info!("files read again"),
            Err(problems) => error!("files not read again: {problems}"),
        }
        tell(State::Ready);
    })?;
    // Signals are awaited from here on.
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
