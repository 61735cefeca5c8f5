//! Warnings for the operator about keys by address.

use crate::standard_error::{self, is_recorded};

/// Logged once for each key by a client's address.
pub(crate) fn unforwarded(header: &str, proxy: std::net::IpAddr) {
    #[cfg(feature = "tracing")]
    tracing::warn!(
        header,
        %proxy,
        "a request from a trusted proxy has no such header, so it is charged to the proxy, as all its \
         clients are: name the header that the proxy writes with `Ip::header`. A proxy's own health \
         checks have none either"
    );
    standard_error::write_unless(is_recorded!(WARN), || {
        format!(
            "a request from the trusted proxy {proxy} has no header `{header}`: all its clients share one key"
        )
    });
}
