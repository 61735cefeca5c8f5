use std::borrow::Cow;

use sluicegate::adapter::KeyTag;
use sluicegate::condition::{Condition, PatternError};

use super::service::{no_method, split};
use super::{Key, KeyBuf, Missing, View};

/// The method of a gRPC call with its service: `/helloworld.Greeter/SayHello`.
///
/// It is the path, compared byte for byte as tonic does, so an unusual spelling reaches no other method. A client can
/// invent methods, which tonic answers with `UNIMPLEMENTED`. Each has a budget of its own; for one budget,
/// [limit the others by a condition](Self::matches).
///
/// A request to another path is refused with 400; [`First`](super::First) has an alternative for it. The method of HTTP,
/// which is `POST` for all calls, is [`Method`](super::Method).
#[derive(Debug, Clone, Copy)]
pub struct GrpcMethod;

impl<V: View> Key<V> for GrpcMethod {
    fn write(&self, view: &V, key: &mut KeyBuf) -> Result<(), Missing> {
        let path = view.routed_path();
        split(path).ok_or_else(no_method)?;
        KeyTag::GrpcMethod.push(key, path.as_bytes());
        Ok(())
    }
}

impl GrpcMethod {
    /// Holds for calls of one method, `/helloworld.Greeter/SayHello`, or of all methods of a service,
    /// `/helloworld.Greeter/*`.
    ///
    /// Each byte counts, as for tonic. So the condition is exact, and is good for limits and for exceptions. It sees the
    /// path that is left to route: in a nested router, put the layer inside.
    ///
    /// ```
    /// use sluicegate_tonic::key::GrpcMethod;
    /// use sluicegate_tonic::{Ip, Limit};
    ///
    /// let search = GrpcMethod.matches("/shop.Catalogue/Search");
    /// let rule = Limit::per_second(5).by(Ip::peer()).when(search);
    /// # let _ = rule;
    /// ```
    ///
    /// # Panics
    ///
    /// If the pattern is not valid. For patterns from configuration there is [`try_matches`](Self::try_matches).
    #[track_caller]
    pub fn matches(self, pattern: impl Into<Cow<'static, str>>) -> MethodMatches {
        self.try_matches(pattern).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Like [`matches`](Self::matches), for patterns from configuration.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the pattern.
    pub fn try_matches(
        self,
        pattern: impl Into<Cow<'static, str>>,
    ) -> Result<MethodMatches, PatternError> {
        let pattern = pattern.into();
        let error = |problem| PatternError::new("gRPC method", &pattern, problem);
        let Some((service, method)) = split(&pattern) else {
            return Err(error("is not `/package.Service/Method` or `/package.Service/*`"));
        };
        if service.contains('*') || method.contains('*') && method != "*" {
            return Err(error("has a `*` elsewhere than for the whole method"));
        }
        if method.contains('/') {
            return Err(error("has more than a service and a method"));
        }
        Ok(MethodMatches { pattern })
    }
}

/// Holds for calls of some methods; see [`GrpcMethod::matches`].
#[derive(Debug, Clone)]
pub struct MethodMatches {
    pattern: Cow<'static, str>,
}

impl<V: View> Condition<V> for MethodMatches {
    fn holds(&self, view: &V) -> Result<bool, Missing> {
        let path = view.routed_path();
        Ok(match self.pattern.strip_suffix('*') {
            Some(service) => path.starts_with(service) && path.len() > service.len(),
            None => path == self.pattern,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::testing::{called, key_at};

    #[test]
    fn each_method_is_a_key() {
        let one = key_at(&GrpcMethod, "/a.B/C").unwrap();
        assert_eq!(one.legible(), "grpc-method:/a.B/C");
        assert_ne!(one, key_at(&GrpcMethod, "/a.B/D").unwrap());
        assert!(key_at(&GrpcMethod, "/a.B").unwrap_err().is_client());
    }

    #[test]
    fn a_pattern_is_a_method_or_all_of_a_service() {
        let one = GrpcMethod.matches("/a.B/C");
        let all = GrpcMethod.matches("/a.B/*");
        for (path, is_one, is_in) in [
            ("/a.B/C", true, true),
            ("/a.B/D", false, true),
            ("/a.B/C/", false, true),
            ("/a.B/", false, false),
            ("/a.Bx/C", false, false),
            ("/a.b/c", false, false),
            ("/a.B/%43", false, true),
        ] {
            assert_eq!(called(path, |view| one.holds(view)), Ok(is_one), "{path}");
            assert_eq!(called(path, |view| all.holds(view)), Ok(is_in), "{path}");
        }
    }

    #[test]
    fn a_pattern_that_matches_nothing_is_an_error_that_names_it() {
        for pattern in ["", "a.B/C", "/a.B", "/a.B/", "/*/C", "/a.*/C", "/a.B/C*", "/a/b/C"] {
            let error = GrpcMethod.try_matches(pattern).unwrap_err();
            let shown = format!("the gRPC method pattern `{pattern}` ");
            assert!(error.to_string().starts_with(&shown), "{error}");
        }
    }
}
