//! Keys that are made of other keys.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::key::{Key, KeyBuf, Missing, View, tag};

/// The first of two to four keys that is present.
///
/// ```
/// use sluicegate::{First, Header, Ip};
///
/// // A client with a key is limited by it, any other client by its address. That is for keys that are checked
/// // further out: a client that may invent one has a fresh budget with each.
/// let key = First((Header("x-api-key"), Ip::peer()));
/// # let _ = key;
/// ```
///
/// The position of the alternative is part of the key, so a client cannot send an `x-api-key` that reads like another
/// client's address. An alternative that the server does not provide is skipped, like one that the client left out. A
/// value that can be read in more than one way is an error at once, because it is present.
///
/// If none is present, the answer is 400; or 500, if the server could have provided one.
#[derive(Debug, Clone, Copy)]
pub struct First<T>(pub T);

macro_rules! alternatives {
    ($($index:tt $name:ident),*) => {
        impl<V: View, $($name: Key<V>),*> Key<V> for First<($($name,)*)> {
            #[expect(non_snake_case, reason = "what is missing is named after the key's type")]
            fn write(&self, view: &V, key: &mut KeyBuf) -> Result<(), Missing> {
                $(
                    let $name = match attempt(&self.0.$index, $index, view, key) {
                        Err(missing) if !missing.is_ambiguous() => missing,
                        done => return done,
                    };
                )*
                Err(all_missing(&[$($name),*]))
            }
        }
    };
}

alternatives!(0 A, 1 B);
alternatives!(0 A, 1 B, 2 C);
alternatives!(0 A, 1 B, 2 C, 3 D);

/// A list of alternatives that is known only at run time, such as one from a file. At most 255 of them are used.
impl<V: View, K: Key<V>> Key<V> for First<Arc<[K]>> {
    fn write(&self, view: &V, key: &mut KeyBuf) -> Result<(), Missing> {
        let mut all = SmallVec::<[Missing; 4]>::new();
        for (index, alternative) in (0..u8::MAX).zip(self.0.iter()) {
            match attempt(alternative, index, view, key) {
                Err(missing) if !missing.is_ambiguous() => all.push(missing),
                done => return done,
            }
        }
        Err(all_missing(&all))
    }
}

/// Writes into a copy, so an alternative that fails midway leaves nothing behind.
fn attempt<V: View, K: Key<V>>(
    alternative: &K,
    index: u8,
    view: &V,
    key: &mut KeyBuf,
) -> Result<(), Missing> {
    let mut attempt = *key;
    attempt.push(&[tag::FIRST, index]);
    alternative.write(view, &mut attempt)?;
    *key = attempt;
    Ok(())
}

fn all_missing(all: &[Missing]) -> Missing {
    if let Some(server) = all.iter().find(|missing| missing.is_server()) {
        return server.clone();
    }
    if all.iter().any(Missing::is_exempt) {
        return Missing::exempt();
    }
    Missing::client(all.iter().map(Missing::what).collect::<Vec<_>>().join(" or "))
}

/// A key that clients may leave out. A request without it is not limited by the rule.
///
/// It is still an error if the server does not provide the value, or if the value can be read in more than one way.
#[derive(Debug, Clone, Copy)]
pub struct Optional<K>(pub K);

impl<V: View, K: Key<V>> Key<V> for Optional<K> {
    fn write(&self, view: &V, key: &mut KeyBuf) -> Result<(), Missing> {
        self.0.write(view, key).map_err(|missing| {
            if missing.is_client() && !missing.is_ambiguous() { Missing::exempt() } else { missing }
        })
    }
}

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
    use super::*;
    use crate::key::testing::{Request, key, missing};
    use crate::key::{Const, Cookie, Header, Ip, Optional, Path, Route, from_fn};

    #[test]
    fn the_first_that_is_there_wins() {
        let first = First((Header("a"), Header("b")));
        let b = Request::default().header("b", "1");
        let both = Request::default().header("b", "2").header("a", "1");
        let a = Request::default().header("a", "1");
        assert_eq!(key(&first, &both), key(&first, &a));
        assert_ne!(key(&first, &b), key(&first, &a));
    }

    #[test]
    fn a_list_writes_the_same_as_a_tuple() {
        let tuple = First((Header("a"), Header("b"), Header("c")));
        let list = First(Arc::from([Header("a"), Header("b"), Header("c")]));
        for name in ["a", "b", "c"] {
            let request = Request::default().header(name, "1");
            assert_eq!(key(&tuple, &request), key(&list, &request));
        }
        let none = Request::default();
        assert_eq!(missing(&tuple, &none).what(), missing(&list, &none).what());
        let twice = Request::default().header("a", "1").header("a", "2").header("b", "1");
        assert!(missing(&list, &twice).is_ambiguous());
    }

    #[test]
    fn no_alternative_can_pose_as_another() {
        let swapped = (First((Header("a"), Path)), First((Path, Header("a"))));
        let request = Request::default().header("a", "/");
        assert_ne!(key(&swapped.0, &request), key(&swapped.1, &request));

        let query = from_fn(|request: &Request| request.query.clone());
        let path = from_fn(|request: &Request| Some(request.path.clone()));
        let posing = Request { query: Some("/".into()), ..Request::default() };
        let first = First((query, path));
        assert_ne!(key(&first, &posing), key(&first, &Request::default()));
    }

    #[test]
    fn a_failed_alternative_leaves_nothing_behind() {
        let first = First(((Path, Header("a")), Header("b")));
        let request =
            |path: &str| Request { path: path.into(), ..Request::default() }.header("b", "1");
        assert_eq!(key(&first, &request("/1")), key(&first, &request("/2")));
    }

    #[test]
    fn what_the_server_fails_to_provide_is_passed_over() {
        key(&First((Route, Const("no route"))), &Request::default());
        key(&First((Ip::peer(), Route, Header("a"), Path)), &Request::default());
    }

    #[test]
    fn where_all_are_missing_the_answer_names_them_all() {
        let missing = missing(&First((Header("x-api-key"), Cookie("sid"))), &Request::default());
        assert!(missing.is_client());
        assert_eq!(missing.what(), "the `x-api-key` header or the `sid` cookie");
    }

    #[test]
    fn where_all_are_missing_the_servers_part_comes_first() {
        let first = First((Header("a"), Ip::peer(), Header("b")));
        assert_eq!(missing(&first, &Request::default()).what(), "the peer address");
        let exempt = First((Header("a"), Optional(Header("b"))));
        assert!(missing(&exempt, &Request::default()).is_exempt());
    }

    #[test]
    fn a_header_sent_twice_is_no_way_to_another_budget() {
        let request = Request::default().header("a", "1").header("a", "2");
        assert!(missing(&First((Header("a"), Path)), &request).is_ambiguous());
        assert!(missing(&First((Header("b"), Header("a"))), &request).is_ambiguous());
    }
}
