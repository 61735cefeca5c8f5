//! Clients and servers that talk gRPC.

mod address;
mod channel;
mod check;
mod connect;
#[rustfmt::skip]
#[expect(unreachable_pub, clippy::all, clippy::allow_attributes_without_reason, reason = "generated from proto/capacity.proto")]
mod generated;
mod mastership;
mod service;
#[cfg(test)]
mod tests;
mod wire;

pub use self::address::AddressError;
#[cfg(feature = "etcd")]
pub(crate) use self::address::address as server_address;
pub use self::channel::GrpcTransport;
#[cfg(feature = "etcd")]
pub(crate) use self::channel::with_tls;
pub use self::mastership::{AlwaysMaster, Mastership, Role, candidate_problem};
pub use self::service::{Call, CapacityService, CapacityServiceBuilder, StartError};

/// The messages and the service of leases as an encoded `FileDescriptorSet`, for gRPC reflection.
pub const CAPACITY_DESCRIPTORS: &[u8] = include_bytes!("capacity.bin");
