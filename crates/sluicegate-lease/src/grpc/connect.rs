use super::address::AddressError;
use super::channel::GrpcTransport;
use crate::lease::{LeaseClient, LeaseClientBuilder};

impl LeaseClient {
    /// Makes a client with a random name that asks the server at `address`, such as `http://10.0.0.7:5555`.
    ///
    /// It connects in the background, also to a server that is started later.
    ///
    /// # Errors
    /// The address cannot be right.
    ///
    /// # Panics
    /// It is called outside of a Tokio runtime.
    #[cfg_attr(docsrs, doc(cfg(feature = "grpc")))]
    pub fn connect(address: &str) -> Result<Self, AddressError> {
        Self::builder().connect([address])
    }
}

impl LeaseClientBuilder {
    /// Makes a client that asks the master among the servers at these addresses. Not all of them have to be listed: a
    /// server that is not the master names the master.
    ///
    /// # Errors
    /// There is no address, or one that cannot be right.
    ///
    /// # Panics
    /// It is called outside of a Tokio runtime.
    #[cfg_attr(docsrs, doc(cfg(feature = "grpc")))]
    pub fn connect<S: AsRef<str>>(
        self,
        addresses: impl IntoIterator<Item = S>,
    ) -> Result<LeaseClient, AddressError> {
        Ok(self.over(GrpcTransport::new(addresses)?))
    }
}
