//! `sluicegate proxy`

use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use sluicegate_config::{Environment, Live};
use sluicegate_server::admin::metrics::Metrics;

use crate::running::{Running, Signals};
use crate::shared::{Port, StoreOptions};
use crate::store::Counting;
use crate::{running, shared};

/// How long a decision of Redis may take.
const DEADLINE: Duration = Duration::from_millis(50);

/// Passes requests on to one application, behind the limits and the throttle of a file.
///
/// The file says where to listen, `[listen]`, and which application is behind it, `[upstream]`. The dashboard, health and
/// metrics are on the admin port: every path of the proxied port is the application's.
#[derive(Debug, Args)]
#[command(after_long_help = SIGNALS)]
pub(crate) struct Proxy {
    /// A file of policies in TOML or JSON, with `[listen]` and `[upstream]`.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Listens here, and not where the file says.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Where to serve the dashboard, health and metrics, or `off`. Other addresses than those of this host need a token.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6070")]
    admin: Port,
    /// The token of the admin port, at least 16 bytes. Clients send it as `Authorization: Bearer ..`, and the dashboard asks
    /// for it.
    #[arg(long, value_name = "TOKEN", env = "SLUICEGATE_ADMIN_TOKEN", hide_env_values = true)]
    admin_token: Option<String>,
    /// Shows the most refused keys on the admin port as they are, instead of digests of them. Keys that are too long to be
    /// kept are still shown as digests.
    #[arg(long)]
    show_keys: bool,
    #[command(flatten)]
    store: StoreOptions,
    #[command(flatten)]
    running: Running,
}

const SIGNALS: &str = "\
SIGTERM and SIGINT stop the proxy once every request that has come is answered. SIGHUP makes it read its policies and \
certificates again. A file that is not valid changes nothing, and the log says why. A line is logged for each request; \
`--log-level info,sluicegate_proxy::access=off` turns that off.";

/// Passes requests on until the process is asked to stop.
pub(crate) fn run(options: Proxy) -> Result<(), Box<dyn Error>> {
    let running = options.running.clone();
    running::block_on(&running, pass(options))
}

async fn pass(options: Proxy) -> Result<(), Box<dyn Error>> {
    let Proxy { config, listen, admin, admin_token, show_keys, store, running } = options;
    let metrics = Metrics::install()?;
    let live = Live::open(config, Environment::new())?;
    let _watching = if running.no_watch { None } else { Some(live.watch()?) };
    let store = Counting::new(&store, DEADLINE)?;
    let mut proxy = store
        .under(sluicegate_server::proxy::Proxy::new(live))
        .metrics(&metrics)
        .drain_delay(Duration::from_secs(running.drain_delay))
        .drain(Duration::from_secs(running.drain));
    if let Some(address) = listen {
        proxy = proxy.address(address);
    }
    if let Some(address) = admin.0 {
        // Keys are noted for the dashboard alone.
        proxy = proxy.admin(address).watch(&shared::watch(show_keys)?);
    }
    if let Some(token) = shared::token(admin_token.as_deref())? {
        proxy = proxy.token(token);
    }
    let signals = Signals::new()?;
    let bound = proxy.bind().await?;
    let reload = bound.reload();
    let _certificates = if running.no_watch { None } else { reload.watch()? };
    let ports = [("proxied", Some(bound.address())), ("admin", bound.admin())];
    let run = async |stop| bound.run(stop).await;
    running::serve(signals, &ports, move || reload.now(), run, store).await
}
