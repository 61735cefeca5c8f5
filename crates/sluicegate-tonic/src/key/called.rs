//! The service and the method that a path calls.

use super::Missing;

/// The service and the method of a path. What follows another slash belongs to the method: tonic's router hands all of it
/// to the service.
pub(super) fn split(path: &str) -> Option<(&str, &str)> {
    let (service, method) = path.strip_prefix('/')?.split_once('/')?;
    (!service.is_empty() && !method.is_empty()).then_some((service, method))
}

pub(super) fn no_method() -> Missing {
    Missing::client("a path of gRPC, such as `/helloworld.Greeter/SayHello`")
}
