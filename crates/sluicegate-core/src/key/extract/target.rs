use crate::key::{Key, KeyBuf, Missing, View, tag};

/// The method as it was sent.
///
/// A client can invent methods. If that matters, put the rule behind the router.
#[derive(Debug, Clone, Copy)]
pub struct Method;

impl<V: View> Key<V> for Method {
    fn write(&self, view: &V, key: &mut KeyBuf) -> Result<(), Missing> {
        key.push(&[tag::METHOD]);
        key.push(view.method().as_bytes());
        Ok(())
    }
}

/// The path as the client wrote it, neither decoded nor normalised.
///
/// Clients choose paths. `/users/7`, `/users/7/` and `/users/%37` are three keys, so a client that is limited only by
/// this key gets a fresh budget for every spelling. Prefer [`Route`], which the server chooses.
#[derive(Debug, Clone, Copy)]
pub struct Path;

impl<V: View> Key<V> for Path {
    fn write(&self, view: &V, key: &mut KeyBuf) -> Result<(), Missing> {
        key.push(&[tag::PATH]);
        key.push(view.path().as_bytes());
        Ok(())
    }
}

/// The pattern of the matched route, such as `/users/{id}`, however the client spelled the path.
///
/// If the rule runs before routing, there is no route, and the answer is 500. If some requests match no route, say
/// what to charge instead: `First((Route, Const("no route")))`.
#[derive(Debug, Clone, Copy)]
pub struct Route;

impl<V: View> Key<V> for Route {
    fn write(&self, view: &V, key: &mut KeyBuf) -> Result<(), Missing> {
        let route = view
            .route()
            .ok_or_else(|| Missing::server("the route that matched", view.route_hint()))?;
        key.push(&[tag::ROUTE]);
        key.push(route.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::testing::{Request, key, missing};

    #[test]
    fn equal_text_from_two_places_is_two_keys() {
        let request = Request {
            method: "/a".into(),
            path: "/a".into(),
            route: Some("/a".into()),
            ..Request::default()
        };
        assert_ne!(key(&Path, &request), key(&Route, &request));
        assert_ne!(key(&Path, &request), key(&Method, &request));
    }

    #[test]
    fn every_path_of_a_route_is_one_key() {
        let request = |path: &str| Request {
            path: path.into(),
            route: Some("/{id}".into()),
            ..Request::default()
        };
        assert_eq!(key(&Route, &request("/1")), key(&Route, &request("/2")));
        assert_ne!(key(&Path, &request("/1")), key(&Path, &request("/2")));
    }

    #[test]
    fn a_missing_route_is_the_servers_to_mend() {
        let missing = missing(&Route, &Request::default());
        assert!(missing.is_server());
        assert_eq!(missing.hint(), "use the router");
    }
}
