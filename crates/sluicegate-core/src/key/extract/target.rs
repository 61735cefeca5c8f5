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
