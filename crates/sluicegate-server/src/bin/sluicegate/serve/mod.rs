//! `sluicegate serve`

mod options;

use std::error::Error;
use std::time::Duration;

use sluicegate_core::observe::Watch;
use sluicegate_server::admin::metrics::Metrics;
use sluicegate_server::{Server, Service, Tls};

use self::options::Ports;
pub(crate) use self::options::Serve;
use crate::store::Counting;
use crate::{running, shared};

/// How many refused keys of each policy are noted.
const REFUSED: usize = 20;

/// Serves until the process is asked to stop.
pub(crate) fn run(options: Serve) -> Result<(), Box<dyn Error>> {
    let running = options.running.clone();
    running::block_on(&running, serve(options))
}

async fn serve(options: Serve) -> Result<(), Box<dyn Error>> {
    let Serve { files, ports, store, deciding, running } = options;
    let metrics = Metrics::install()?;
    let policies = files.read()?;
    let is_watched = !running.no_watch;
    let _policies = is_watched.then(|| policies.watch()).transpose()?;

    let deadline = Duration::from_millis(deciding.deadline_ms);
    let service = Service::builder(policies)
        .deadline(deadline)
        .on_store_error(deciding.on_store_error.into())
        .fields(deciding.fields.into())
        .proxies(deciding.proxies)
        .shadow(deciding.shadow)
        .watch(&refused(deciding.show_keys)?)
        .allow_resets(deciding.allow_resets)
        .nothing_leased(deciding.nothing_leased)
        .overrides(!deciding.no_overrides);
    let store = Counting::new(&store, deadline)?;
    let service = store.under(service).build()?;

    let server = Server::new(service)
        .metrics(&metrics)
        .connections(ports.connections)
        .idle_timeout(Duration::from_secs(ports.idle_timeout))
        .drain_delay(Duration::from_secs(running.drain_delay))
        .drain(Duration::from_secs(running.drain));
    let bound = with_ports(server, ports)?.bind().await?;
    let reload = bound.reload();
    let _certificate = is_watched.then(|| reload.watch()).transpose()?;
    let addresses = bound.addresses();
    let ports = [("gRPC", addresses.grpc), ("HTTP", addresses.http), ("admin", addresses.admin)];
    running::serve(&ports, move || reload.now(), async |stop| bound.run(stop).await, store).await
}

/// Notes the keys that are refused most. Digests are made with a secret of this process, so that nobody can find a key
/// by trying, not even an address.
fn refused(show_keys: bool) -> Result<Watch, Box<dyn Error>> {
    let watch = Watch::new(REFUSED);
    if show_keys {
        return Ok(watch);
    }
    let mut secret = [0; 32];
    getrandom::fill(&mut secret)?;
    Ok(watch.redacted(&secret))
}

fn with_ports(mut server: Server, ports: Ports) -> Result<Server, Box<dyn Error>> {
    for (port, open) in [
        (ports.grpc, Server::grpc as fn(Server, _) -> Server),
        (ports.http, Server::http),
        (ports.admin, Server::admin),
    ] {
        server = match port.0 {
            Some(address) => open(server, address),
            None => server,
        };
    }
    if let Some(token) = shared::token(ports.admin_token.as_deref())? {
        server = server.token(token);
    }
    if let (Some(certificate), Some(key)) = (ports.tls_certificate, ports.tls_key) {
        let tls = Tls::new(certificate, key);
        server = server.tls(match ports.tls_clients {
            Some(authorities) => tls.clients(authorities),
            None => tls,
        });
    }
    Ok(server)
}
