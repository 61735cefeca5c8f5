//! Encrypted connections to PostgreSQL.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Manager, Pool};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use sluicegate_core::Limit;
use sluicegate_core::adapter::Charge;
use sluicegate_core::store::Store as _;
use sluicegate_swap::Swap;
use sluicegate_swap::postgres::{Connections as _, Postgres};
use sluicegate_tests::certificates::Authority;
use sluicegate_tests::{answer, key, servers};
use tokio_postgres::NoTls;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::store::{open, runtime};

/// A connector that believes this authority.
fn connector(authority: &Authority) -> MakeRustlsConnect {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_slice(authority.pem().as_bytes());
    roots.add(certificate.expect("PEM")).expect("an authority");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.expect("versions of TLS").with_root_certificates(roots);
    MakeRustlsConnect::new(config.with_no_client_auth())
}

/// Connects to `host`, which has to be encrypted.
fn pool(server: &servers::Postgres, host: &str, authority: &Authority) -> Pool {
    let config =
        server.config().replace("host=127.0.0.1", &format!("host={host} hostaddr=127.0.0.1"));
    let config = format!("{config} sslmode=require").parse().expect("a configuration");
    let manager = Manager::new(config, connector(authority));
    Pool::builder(manager).build().expect("a runtime is not needed")
}

fn store(pool: Pool) -> Swap<Postgres<Pool>> {
    open(Swap::builder(Postgres::new(pool)).deadline(Duration::from_secs(60)))
}

fn charge() -> Charge {
    Charge::of(Limit::per_hour(1), key("alice"), 1)
}

/// The error and its sources.
fn in_full(error: &dyn Error) -> String {
    let sources = std::iter::successors(Some(error), |error| (*error).source());
    sources.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[test]
fn an_encrypted_connection_decides() {
    let (server, authority) = (servers::Postgres::start(), Authority::new("ours"));
    let (certificate, private) = authority.sign("db.example");
    server.encrypt(&certificate, &private);
    let pool = pool(&server, "db.example", &authority);
    let encrypted = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let rows = runtime().block_on(pool.query(encrypted, &[])).expect("an answer");
    assert!(rows[0].get::<_, bool>(0));
    runtime().block_on(Postgres::new(pool.clone()).migrate()).expect("a table");
    let store = store(pool);
    assert!(answer(store.take(&charge())).expect("a decision").is_admitted());
    assert!(!answer(store.take(&charge())).expect("a decision").is_admitted());
}

/// Another server must not decide. The request gets an error of the store, and is not refused.
#[test]
fn a_server_with_another_certificate_is_an_error_and_no_refusal() {
    let (server, authority) = (servers::Postgres::start(), Authority::new("ours"));
    let (certificate, private) = authority.sign("db.example");
    server.encrypt(&certificate, &private);
    for (host, believed, said) in [
        ("db.example", &Authority::new("ours"), "invalid peer certificate"),
        ("other.example", &authority, "certificate not valid for name"),
    ] {
        let failed = answer(store(pool(&server, host, believed)).take(&charge()));
        let all = in_full(&failed.expect_err("no decision"));
        assert!(all.contains(said), "{all}");
    }
}

#[test]
fn a_connection_that_has_to_be_encrypted_is_never_in_plain_text() {
    let (server, authority) = (servers::Postgres::start(), Authority::new("ours"));
    // The server knows no TLS, and then the client does not.
    let first = answer(store(pool(&server, "db.example", &authority)).take(&charge()));
    let config = format!("{} sslmode=require", server.config()).parse().expect("a configuration");
    let plain = Pool::builder(Manager::new(config, NoTls)).build().expect("a pool");
    let second = answer(store(plain).take(&charge()));
    for failed in [first, second] {
        let all = in_full(&failed.expect_err("no decision"));
        assert!(all.contains("TLS"), "{all}");
    }
}
