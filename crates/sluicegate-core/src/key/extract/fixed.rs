use crate::key::{Key, KeyBuf, Missing, Part, View, tag};

/// One key for all requests: all clients share one budget.
///
/// For what has to be protected as a whole, such as an expensive service behind this one.
#[derive(Debug, Clone, Copy)]
pub struct Global;

impl<V: View> Key<V> for Global {
    fn write(&self, _: &V, key: &mut KeyBuf) -> Result<(), Missing> {
        key.push(&[tag::GLOBAL]);
        Ok(())
    }
}

/// The same value for every request.
///
/// It names a budget that several rules share. It can also end a [`First`](super::First): `First((Route, Const("no
/// route")))`.
#[derive(Debug, Clone, Copy)]
pub struct Const<P: Part>(pub P);

impl<V: View, P: Part> Key<V> for Const<P> {
    fn write(&self, _: &V, key: &mut KeyBuf) -> Result<(), Missing> {
        key.push(&[tag::CONST]);
        self.0.write(key);
        Ok(())
    }
}
