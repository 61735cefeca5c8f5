//! Ports for servers of another kind, such as `sluicegate-proxy`: a bounded number of connections, TLS, times
//! for slow and idle clients, and a shutdown that waits for answers.

pub use tokio_rustls::TlsAcceptor;

pub use crate::run::{
    Activity, Certificate, InFlight, Listener, ServeConnection, Timed, Tracked, check_admin,
    read_authorities, read_identity,
};
