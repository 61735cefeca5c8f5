//! Counts in PostgreSQL behind a real PgBouncer in transaction mode.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use deadpool_postgres::{Manager, Pool};
use sluicegate_core::Limit;
use sluicegate_core::adapter::{Answer, Charge};
use sluicegate_core::store::Store as _;
use sluicegate_counterparts::find;
use sluicegate_swap::Swap;
use sluicegate_swap::postgres::Postgres;
use sluicegate_tests::key;
use sluicegate_tests::servers::{self, is_root, until};
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

/// Connections of PgBouncer to the server: fewer than those of its clients.
const SERVER_CONNECTIONS: usize = 2;

/// Connections of the clients.
const CONNECTIONS: usize = 16;

/// A PgBouncer in front of a server. It ends with this.
struct Bouncer {
    process: Child,
    port: u16,
    _directory: TempDir,
}

impl Bouncer {
    fn start(server: &servers::Postgres) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("pgbouncer.ini");
        // Another program may take the port before it listens.
        for _ in 0..20 {
            let any = TcpListener::bind("127.0.0.1:0").expect("a free port");
            let port = any.local_addr().expect("an address").port();
            drop(any);
            let text = format!(
                "[databases]\npostgres = {}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
                 unix_socket_dir =\nauth_type = any\npool_mode = transaction\n\
                 default_pool_size = {SERVER_CONNECTIONS}\n",
                server.config()
            );
            std::fs::write(&file, text).expect("a file");
            let mut command = Command::new(find("pgbouncer"));
            // It refuses to be root, and reads its file before it becomes another user.
            if is_root() {
                command.args(["--user", "nobody"]);
            }
            command.arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut process = command.spawn().expect("pgbouncer");
            let listens = until("PgBouncer to listen or to end", || {
                let has_ended = process.try_wait().expect("a process").is_some();
                let listens = TcpStream::connect(("127.0.0.1", port)).is_ok();
                (has_ended || listens).then_some(!has_ended)
            });
            if listens {
                return Self { process, port, _directory: directory };
            }
        }
        panic!("PgBouncer does not start");
    }

    fn pool(&self) -> Pool {
        let config = format!("host=127.0.0.1 port={} user=postgres dbname=postgres", self.port);
        let manager = Manager::new(config.parse().expect("a configuration"), NoTls);
        Pool::builder(manager).max_size(CONNECTIONS).build().expect("a runtime is not needed")
    }
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Two stores, as two processes have them, whose statements go now on one connection to the server and now on the other.
#[tokio::test(flavor = "multi_thread")]
async fn decisions_behind_pgbouncer_in_transaction_mode_are_exact() {
    let server = servers::Postgres::start();
    let bouncer = Bouncer::start(&server);
    let engine = Postgres::new(bouncer.pool());
    engine.migrate().await.expect("a table");
    let deadline = Duration::from_secs(60);
    let stores = [engine, Postgres::new(bouncer.pool())]
        .map(|engine| Swap::builder(engine).deadline(deadline).build());
    let limit = Limit::fixed_window(100, Duration::from_secs(86_400)).from_first();
    let mut tasks = JoinSet::new();
    for number in 0..600 {
        let store = stores[number % 2].clone();
        let charge = Charge::of(limit, key(&format!("user {}", number % 4)), 1);
        tasks.spawn(async move {
            let outcome = match store.take(&charge) {
                Answer::Now(outcome) => outcome,
                Answer::Later(answer) => answer.await,
            };
            outcome.expect("PgBouncer passes it on").is_admitted()
        });
    }
    let admitted = tasks.join_all().await.into_iter().filter(|admitted| *admitted).count();
    assert_eq!(admitted, 400, "100 for each of four users");
}
