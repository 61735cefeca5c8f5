use super::Condition;
use crate::key::View;

/// Holds when one of the conditions does, and so never where there is none: [`Either`](super::Either)
/// for as many as a file has.
///
/// ```
/// use tollgate_core::{AnyOf, Ip, Limit, Path};
///
/// let costly = AnyOf(vec![Path.matches("/search"), Path.matches("/export/*")]);
/// let rule = Limit::per_second(1).by(Ip::peer()).when(costly);
/// ```
#[derive(Debug, Clone)]
pub struct AnyOf<C>(pub Vec<C>);

impl<V: View, C: Condition<V>> Condition<V> for AnyOf<C> {
    fn holds(&self, view: &V) -> bool {
        self.0.iter().any(|condition| condition.holds(view))
    }
}

/// Holds when all of the conditions do, and so always where there is none: a tuple for as many as a
/// file has.
#[derive(Debug, Clone)]
pub struct AllOf<C>(pub Vec<C>);

impl<V: View, C: Condition<V>> Condition<V> for AllOf<C> {
    fn holds(&self, view: &V) -> bool {
        self.0.iter().all(|condition| condition.holds(view))
    }
}
