use crate::key::{Key, KeyBuf, Missing, View};

macro_rules! tuples {
    ($($name:ident),*) => {
        /// All of the keys together. If one is missing, the tuple is missing.
        impl<V: View, $($name: Key<V>),*> Key<V> for ($($name,)*) {
            #[expect(non_snake_case, reason = "a tuple's fields are named after their types")]
            fn write(&self, view: &V, key: &mut KeyBuf) -> Result<(), Missing> {
                let ($($name,)*) = self;
                $($name.write(view, key)?;)*
                Ok(())
            }
        }
    };
}

tuples!(A);
tuples!(A, B);
tuples!(A, B, C);
tuples!(A, B, C, D);
