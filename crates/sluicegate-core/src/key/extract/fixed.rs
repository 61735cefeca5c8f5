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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::testing::{Request, key};

    #[test]
    fn global_is_one_key_and_no_constant_is_it() {
        let request = Request::default();
        let other = Request { path: "/other".into(), ..Request::default() };
        assert_eq!(key(&Global, &request), key(&Global, &other));
        assert_ne!(key(&Global, &request), key(&Const(()), &request));
        assert_ne!(key(&Const("a"), &request), key(&Const("b"), &request));
    }
}
