//! Clients and servers that talk gRPC.

mod channel;
#[rustfmt::skip]
#[expect(unreachable_pub, clippy::all, clippy::allow_attributes_without_reason, reason = "generated from proto/capacity.proto")]
mod generated;
mod mastership;
mod service;
#[cfg(test)]
mod tests;
mod wire;

pub use self::channel::GrpcTransport;
pub use self::mastership::{AlwaysMaster, Mastership, Role, candidate_problem};
pub use self::service::{Call, CapacityService, CapacityServiceBuilder};

#[cfg(feature = "etcd")]
pub(crate) use self::channel::{address as server_address, with_tls};

/// The messages and the service of leases as an encoded `FileDescriptorSet`, for gRPC reflection.
pub const CAPACITY_DESCRIPTORS: &[u8] = include_bytes!("capacity.bin");
