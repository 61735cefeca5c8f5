use std::fmt;

/// Certificates given by the operator, instead of those of the system.
#[derive(Clone, Default)]
pub(crate) struct Certificates {
    #[cfg(feature = "tls")]
    pub(crate) authorities: Option<Vec<u8>>,
    /// The client's own certificate and its key.
    #[cfg(feature = "tls")]
    pub(crate) own: Option<(Vec<u8>, Vec<u8>)>,
    /// Whether the server's certificate may be for another host.
    #[cfg(feature = "tls")]
    pub(crate) any_host: bool,
}

/// Hides the key.
impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certificates")
    }
}
