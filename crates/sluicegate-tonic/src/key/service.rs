use std::borrow::Cow;

use sluicegate::adapter::KeyTag;
use sluicegate::condition::Condition;

use super::{Key, KeyBuf, Missing, View};

/// The service of a gRPC call, with its package: `helloworld.Greeter`.
///
/// It is read from the path as tonic's router reads it, so an unusual spelling reaches no other service. A client can
/// invent services, which tonic answers with `UNIMPLEMENTED`. Each has a budget of its own.
///
/// A request to another path is refused with 400; [`First`](super::First) has an alternative for it.
#[derive(Debug, Clone, Copy)]
pub struct GrpcService;

impl<V: View> Key<V> for GrpcService {
    fn write(&self, view: &V, key: &mut KeyBuf) -> Result<(), Missing> {
        let (service, _) = split(view.routed_path()).ok_or_else(no_method)?;
        KeyTag::GrpcService.push(key, service.as_bytes());
        Ok(())
    }
}

impl GrpcService {
    /// The names of the services of gRPC's health checks and reflection, which limits usually exempt.
    ///
    /// ```
    /// use sluicegate_tonic::condition::Not;
    /// use sluicegate_tonic::key::GrpcService;
    /// use sluicegate_tonic::{Ip, Limit};
    ///
    /// let calls = Limit::per_second(50).by(Ip::peer());
    /// let rule = calls.when(Not(GrpcService.is_any(GrpcService::HEALTH_AND_REFLECTION)));
    /// # let _ = rule;
    /// ```
    pub const HEALTH_AND_REFLECTION: [&'static str; 3] = [
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
    ];

    /// Holds for calls of this service: `helloworld.Greeter`.
    pub fn is(self, service: impl Into<Cow<'static, str>>) -> ServiceIs {
        self.is_any([service])
    }

    /// Holds for calls of one of these services.
    pub fn is_any<S: Into<Cow<'static, str>>>(
        self,
        services: impl IntoIterator<Item = S>,
    ) -> ServiceIs {
        ServiceIs { services: services.into_iter().map(Into::into).collect() }
    }
}

/// Holds for calls of some services; see [`GrpcService::is`].
#[derive(Debug, Clone)]
pub struct ServiceIs {
    services: Vec<Cow<'static, str>>,
}

impl<V: View> Condition<V> for ServiceIs {
    fn holds(&self, view: &V) -> Result<bool, Missing> {
        let service = split(view.routed_path()).map(|(service, _)| service);
        Ok(service.is_some_and(|service| self.services.iter().any(|own| own == service)))
    }
}

/// The service and the method of a path. What follows another slash belongs to the method: tonic's router hands all of it
/// to the service.
pub(super) fn split(path: &str) -> Option<(&str, &str)> {
    let (service, method) = path.strip_prefix('/')?.split_once('/')?;
    (!service.is_empty() && !method.is_empty()).then_some((service, method))
}

pub(super) fn no_method() -> Missing {
    Missing::client("a path of gRPC, such as `/helloworld.Greeter/SayHello`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::testing::{called, key_at};

    #[test]
    fn methods_of_a_service_are_one_key() {
        let one = key_at(&GrpcService, "/a.B/C").unwrap();
        assert_eq!(one, key_at(&GrpcService, "/a.B/D").unwrap());
        assert_ne!(one, key_at(&GrpcService, "/a.C/C").unwrap());
        for path in ["/", "/a.B", "/a.B/", "//C", "a.B/C", "*", ""] {
            assert!(key_at(&GrpcService, path).unwrap_err().is_client(), "{path}");
        }
    }

    #[test]
    fn a_condition_holds_for_what_the_service_answers() {
        let health = GrpcService.is_any(GrpcService::HEALTH_AND_REFLECTION);
        for (path, holds) in [
            ("/grpc.health.v1.Health/Check", true),
            ("/grpc.health.v1.Health/Invented", true),
            ("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", true),
            // tonic compares bytes: these reach no service.
            ("/grpc.health.v1.health/Check", false),
            ("/grpc.health.v1%2EHealth/Check", false),
            ("//grpc.health.v1.Health/Check", false),
            ("/api/grpc.health.v1.Health/Check", false),
            ("/grpc.health.v1.Health", false),
        ] {
            assert_eq!(called(path, |view| health.holds(view)), Ok(holds), "{path}");
        }
    }
}
