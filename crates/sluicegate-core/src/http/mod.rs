//! HTTP: the names and values of header fields, and problem documents, without the types of a framework.

pub(crate) mod dialect;
pub mod fields;
pub mod grpc;
pub(crate) mod headers;
pub(crate) mod lasting;
pub(crate) mod line;
