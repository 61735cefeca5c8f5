//! Keys of gRPC calls, beside those of [`sluicegate::key`].

#[cfg(feature = "tls")]
mod certificate;
mod metadata;
mod method;
mod service;
#[cfg(test)]
mod testing;

#[doc(inline)]
pub use sluicegate::key::*;

#[cfg(feature = "tls")]
pub use self::certificate::PeerCertificate;
pub use self::metadata::Metadata;
pub use self::method::{GrpcMethod, MethodMatches};
pub use self::service::{GrpcService, ServiceIs};
