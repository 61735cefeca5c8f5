use super::{ChosenBy, Condition};
use crate::key::{Missing, View};

/// Holds if one of the conditions holds, so never for an empty list. Like [`Either`](super::Either), for any number
/// of conditions.
///
/// ```
/// use sluicegate::{Ip, Limit};
/// use sluicegate::condition::AnyOf;
/// use sluicegate::key::Path;
///
/// let costly = AnyOf(vec![Path.matches("/search"), Path.matches("/export/*")]);
/// let rule = Limit::per_second(1).by(Ip::peer()).when(costly);
/// ```
#[derive(Debug, Clone)]
pub struct AnyOf<C>(pub Vec<C>);

impl<V: View, C: Condition<V>> Condition<V> for AnyOf<C> {
    fn holds(&self, view: &V) -> Result<bool, Missing> {
        for condition in &self.0 {
            if condition.holds(view)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn surely_holds(&self, view: &V) -> Result<bool, Missing> {
        for condition in &self.0 {
            if condition.surely_holds(view)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn chosen_by(&self) -> ChosenBy {
        ChosenBy::all(self.0.iter().map(Condition::<V>::chosen_by))
    }
}

/// Holds if all of the conditions hold, so always for an empty list. Like a tuple, for any number of conditions.
#[derive(Debug, Clone)]
pub struct AllOf<C>(pub Vec<C>);

impl<V: View, C: Condition<V>> Condition<V> for AllOf<C> {
    fn holds(&self, view: &V) -> Result<bool, Missing> {
        for condition in &self.0 {
            if !condition.holds(view)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn surely_holds(&self, view: &V) -> Result<bool, Missing> {
        for condition in &self.0 {
            if !condition.surely_holds(view)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn chosen_by(&self) -> ChosenBy {
        ChosenBy::all(self.0.iter().map(Condition::<V>::chosen_by))
    }
}
