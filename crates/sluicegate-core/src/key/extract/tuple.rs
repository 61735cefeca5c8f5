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

#[cfg(test)]
mod tests {
    use crate::key::testing::{Request, key, missing};
    use crate::key::{Header, Method, Path};

    #[test]
    fn order_counts_and_neighbours_do_not_run_into_each_other() {
        let (a, b) = (Header("a"), Header("b"));
        let request = Request::default().header("a", "12").header("b", "3");
        let other = Request::default().header("a", "1").header("b", "23");
        assert_ne!(key(&(a, b), &request), key(&(a, b), &other));
        assert_ne!(key(&(a, b), &request), key(&(b, a), &request));
        assert_eq!(key(&(a,), &request), key(&a, &request));
        key(&(a, b, Method, Path), &request);
    }

    #[test]
    fn one_missing_key_is_missing_from_the_whole() {
        assert!(missing(&(Method, Header("a"), Path), &Request::default()).is_client());
    }
}
