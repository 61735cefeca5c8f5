//! Ports for servers of another kind, such as `sluicegate-proxy`: a bounded number of connections, TLS, times
//! for slow and idle clients, and a shutdown that waits for answers.

pub use tokio_rustls::TlsAcceptor;

pub use crate::run::{
    Activity, Certificate, InFlight, Listener, Rest, ServeConnection, Timed, Tracked, Upload,
    check_admin, close, read_authorities, read_identity,
};
