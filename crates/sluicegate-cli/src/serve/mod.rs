//! `sluicegate serve`

mod options;
mod signals;

use std::error::Error;
use std::time::Duration;

use sluicegate_core::Memory;
use sluicegate_redis::Redis;
use sluicegate_server::admin::{Token, metrics::Metrics};
use sluicegate_server::{Server, Service, ServiceBuilder, Tls};
use tracing::{error, info};

pub(crate) use self::options::Serve;
use self::options::{Ports, StoreOptions};
use crate::log;

/// Serves until the process is asked to stop.
pub(crate) fn run(options: Serve) -> Result<(), Box<dyn Error>> {
    log::begin(options.running.log, &options.running.log_level)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(options))
}

async fn serve(options: Serve) -> Result<(), Box<dyn Error>> {
    let Serve { files, ports, store, deciding, running } = options;
    let metrics = Metrics::install()?;
    let policies = files.read()?;
    let _watching = if running.no_watch { None } else { Some(policies.watch()?) };

    let deadline = Duration::from_millis(deciding.deadline_ms);
    let service = Service::builder(policies)
        .deadline(deadline)
        .on_store_error(deciding.on_store_error.into())
        .fields(deciding.fields.into())
        .proxies(deciding.proxies)
        .shadow(deciding.shadow)
        .allow_resets(deciding.allow_resets)
        .overrides(!deciding.no_overrides);
    let service = with_store(service, &store, deadline)?.build()?;

    let server = Server::new(service)
        .metrics(&metrics)
        .connections(ports.connections)
        .drain_delay(Duration::from_secs(running.drain_delay))
        .drain(Duration::from_secs(running.drain));
    let bound = with_ports(server, ports)?.bind().await?;

    let addresses = bound.addresses();
    for (port, address) in
        [("gRPC", addresses.grpc), ("HTTP", addresses.http), ("admin", addresses.admin)]
    {
        if let Some(address) = address {
            info!(port, %address, "serving");
        }
    }
    let reload = bound.reload();
    let stop = signals::until_stopped(move || match reload.now() {
        Ok(()) => info!("files read again"),
        Err(problems) => error!("files not read again: {problems}"),
    })?;
    bound.run(stop).await;
    Ok(())
}

fn with_store(
    service: ServiceBuilder,
    options: &StoreOptions,
    deadline: Duration,
) -> Result<ServiceBuilder, Box<dyn Error>> {
    let Some(url) = &options.redis else {
        if options.keys == 0 {
            return Err("--keys: 0 keys count nothing, expected at least 1".into());
        }
        return Ok(service.store(Memory::with_capacity(options.keys)));
    };
    // The server need not be there yet.
    let redis = Redis::builder().url(url).deadline(deadline).client_name("sluicegate").build();
    Ok(service.store(redis.map_err(|error| format!("--redis: {error}"))?))
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
    if let Some(token) = &ports.admin_token {
        let token = Token::new(token);
        server = server.token(token.ok_or("--admin-token: expected at least 16 bytes")?);
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
