//! What a server process does.

use std::env;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process;
use std::thread;
use std::time::{Duration, Instant};

use actix_governor::Governor;
use actix_web::body::MessageBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::{App, Error, HttpServer};
use axum::Router;
use axum::routing::get;
use sluicegate_actix::{Fields, Memory};
use sluicegate_throttle::layer::ClassHeader;
use sluicegate_throttle::{Class, Throttle};
use tokio::net::TcpListener;

use crate::services::{self, Budget, actix, axum as axums};

/// A server that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// axum, nothing else.
    Axum,
    /// Behind sluicegate without fields and extensions.
    AxumSluicegateBare,
    /// Behind sluicegate with its defaults.
    AxumSluicegate,
    /// Behind tower_governor with its defaults.
    AxumTowerGovernor,
    /// Behind sluicegate, which refuses with the shortest answer.
    AxumSluicegateRefusesBare,
    /// Behind sluicegate, which refuses.
    AxumSluicegateRefuses,
    /// Behind tower_governor, which refuses.
    AxumTowerGovernorRefuses,
    /// actix-web, nothing else.
    Actix,
    /// Behind sluicegate without fields and extensions.
    ActixSluicegateBare,
    /// Behind sluicegate with its defaults.
    ActixSluicegate,
    /// Behind actix-governor with its defaults.
    ActixGovernor,
    /// Behind sluicegate, which refuses.
    ActixSluicegateRefuses,
    /// Behind actix-governor, which refuses.
    ActixGovernorRefuses,
    /// axum, whose handlers keep the processor busy.
    AxumBusy,
    /// The same behind a throttle.
    AxumBusyThrottle,
}

const ALL: [Kind; 15] = [
    Kind::Axum,
    Kind::AxumSluicegateBare,
    Kind::AxumSluicegate,
    Kind::AxumTowerGovernor,
    Kind::AxumSluicegateRefusesBare,
    Kind::AxumSluicegateRefuses,
    Kind::AxumTowerGovernorRefuses,
    Kind::Actix,
    Kind::ActixSluicegateBare,
    Kind::ActixSluicegate,
    Kind::ActixGovernor,
    Kind::ActixSluicegateRefuses,
    Kind::ActixGovernorRefuses,
    Kind::AxumBusy,
    Kind::AxumBusyThrottle,
];

/// What a cheap request needs of a busy processor, and a dear one.
pub(super) const CHEAP: Duration = Duration::from_millis(1);
pub(super) const DEAR: Duration = Duration::from_millis(20);

/// How long the clients of a busy server wait. Then they close the connection.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

const ASK: &str = "--serve=";

impl Kind {
    pub(super) fn argument(self) -> String {
        format!("{ASK}{self:?}")
    }

    /// Its answer, after the first request.
    pub(super) fn status(self) -> u16 {
        match self {
            Self::AxumSluicegateRefusesBare
            | Self::AxumSluicegateRefuses
            | Self::AxumTowerGovernorRefuses
            | Self::ActixSluicegateRefuses
            | Self::ActixGovernorRefuses => 429,
            _ => 200,
        }
    }
}

/// The server that the command line asks this process to be, if it does.
pub fn asked_for() -> Option<Kind> {
    let asked = env::args().nth(1)?;
    ALL.into_iter().find(|kind| kind.argument() == asked)
}

/// Writes its address to the standard output, and serves until the standard input ends. So it ends when its parent
/// does.
///
/// # Errors
///
/// When it cannot listen on an address of this machine.
pub fn serve(kind: Kind) -> io::Result<()> {
    end_with_parent();
    let (plenty, spent) = (Budget::Plenty, Budget::Spent);
    match kind {
        Kind::Axum => serve_axum(axums::hello()),
        Kind::AxumSluicegateBare => serve_axum(axums::sluicegate_without_fields(plenty)),
        Kind::AxumSluicegate => serve_axum(axums::sluicegate_as_it_comes(plenty)),
        Kind::AxumTowerGovernor => serve_axum(axums::tower_governor(plenty)),
        Kind::AxumSluicegateRefusesBare => serve_axum(axums::sluicegate_without_body(spent)),
        Kind::AxumSluicegateRefuses => serve_axum(axums::sluicegate_as_it_comes(spent)),
        Kind::AxumTowerGovernorRefuses => serve_axum(axums::tower_governor(spent)),
        Kind::Actix => serve_actix(actix::hello),
        Kind::ActixSluicegateBare => {
            let limit = actix::sluicegate(plenty, Memory::default());
            let limit = limit.fields(Fields::NONE).extensions(false);
            serve_actix(move || actix::hello().wrap(limit.clone()))
        }
        Kind::ActixSluicegate => serve_actix_behind_sluicegate(plenty),
        Kind::ActixSluicegateRefuses => serve_actix_behind_sluicegate(spent),
        Kind::ActixGovernor => serve_actix_behind_governor(plenty),
        Kind::AxumBusy => serve_axum(busy()),
        Kind::AxumBusyThrottle => serve_axum(busy_behind_throttle()),
        Kind::ActixGovernorRefuses => serve_actix_behind_governor(spent),
    }
}

/// One thread, which also accepts connections.
fn serve_axum(router: Router) -> io::Result<()> {
    services::runtime().block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        announce(listener.local_addr()?)?;
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        axum::serve(listener, service).await
    })
}

/// Keeps the processor busy for each request.
fn busy() -> Router {
    Router::new().route("/cheap", get(|| work(CHEAP))).route("/dear", get(|| work(DEAR)))
}

/// The same behind the throttle that the documentation shows.
fn busy_behind_throttle() -> Router {
    let throttle = Throttle::builder().cpu(1.0).queue(Duration::from_millis(200)).build();
    let throttle = throttle.expect("a capacity and a queue");
    let class = ClassHeader::new("x-class", Class::SHEDDABLE).from_peers(["127.0.0.0/8"]);
    let class = class.expect("a network");
    busy().layer(throttle.layer().criticality(class).deadline(PATIENCE))
}

async fn work(time: Duration) -> &'static str {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
    "done"
}

fn serve_actix_behind_sluicegate(budget: Budget) -> io::Result<()> {
    let limit = actix::sluicegate(budget, Memory::default());
    serve_actix(move || actix::hello().wrap(limit.clone()))
}

fn serve_actix_behind_governor(budget: Budget) -> io::Result<()> {
    let limit = actix::actix_governor(budget);
    serve_actix(move || actix::hello().wrap(Governor::new(&limit)))
}

/// One worker. The thread that accepts connections has nothing to do after the start.
fn serve_actix<T, B>(app: impl Fn() -> App<T> + Send + Clone + 'static) -> io::Result<()>
where
    T: ServiceFactory<
            ServiceRequest,
            Config = (),
            Response = ServiceResponse<B>,
            Error = Error,
            InitError = (),
        > + 'static,
    B: MessageBody + 'static,
{
    actix_web::rt::System::new().block_on(async {
        let server = HttpServer::new(app)
            .workers(1)
            // Connections rest while others have their turns.
            .keep_alive(Duration::from_secs(75))
            .disable_signals()
            .bind((Ipv4Addr::LOCALHOST, 0))?;
        for address in server.addrs() {
            announce(address)?;
        }
        server.run().await
    })
}

/// Ends this process when the standard input ends.
pub(crate) fn end_with_parent() {
    thread::spawn(|| {
        let _ = io::stdin().read(&mut [0]);
        process::exit(0);
    });
}

/// Tells the parent the address of the server.
pub(crate) fn announce(address: SocketAddr) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{address}")?;
    out.flush()
}
