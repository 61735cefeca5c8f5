use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use super::KeyBuf;
use super::single::Single;

/// A value that can be part of a key: text, bytes, numbers, addresses, and tuples of these.
///
/// ```
/// use sluicegate::key::{KeyBuf, Part};
///
/// let mut key = KeyBuf::new();
/// ("tenant", 7_u64).write(&mut key);
/// assert!(!key.is_empty());
/// ```
pub trait Part {
    /// Appends the value to `key`.
    fn write(&self, key: &mut KeyBuf);

    /// The value as a key of its own, where that can be hashed without writing it into a buffer first.
    #[doc(hidden)]
    #[inline(always)]
    fn single(&self) -> Single<'_> {
        Single::Other
    }
}

impl KeyBuf {
    /// The key of one value.
    ///
    /// ```
    /// use sluicegate::key::KeyBuf;
    ///
    /// assert_eq!(KeyBuf::of("alice"), KeyBuf::of(String::from("alice")));
    /// ```
    #[inline]
    pub fn of(part: impl Part) -> Self {
        let mut key = Self::new();
        part.write(&mut key);
        key
    }
}

impl<T: Part + ?Sized> Part for &T {
    #[inline]
    fn write(&self, key: &mut KeyBuf) {
        (**self).write(key);
    }

    #[inline(always)]
    fn single(&self) -> Single<'_> {
        (**self).single()
    }
}

impl Part for KeyBuf {
    #[inline]
    fn write(&self, key: &mut KeyBuf) {
        key.push(&self.lengths().to_le_bytes());
        self.words().iter().for_each(|word| key.push(&word.to_le_bytes()));
    }
}

impl Part for [u8] {
    #[inline]
    fn write(&self, key: &mut KeyBuf) {
        key.push(self);
    }

    #[inline(always)]
    fn single(&self) -> Single<'_> {
        Single::of_bytes(self)
    }
}

impl Part for Vec<u8> {
    #[inline]
    fn write(&self, key: &mut KeyBuf) {
        key.push(self);
    }

    #[inline(always)]
    fn single(&self) -> Single<'_> {
        Single::of_bytes(self)
    }
}

impl Part for str {
    #[inline]
    fn write(&self, key: &mut KeyBuf) {
        key.push(self.as_bytes());
    }

    #[inline(always)]
    fn single(&self) -> Single<'_> {
        Single::of_bytes(self.as_bytes())
    }
}

impl Part for String {
    #[inline]
    fn write(&self, key: &mut KeyBuf) {
        key.push(self.as_bytes());
    }

    #[inline(always)]
    fn single(&self) -> Single<'_> {
        Single::of_bytes(self.as_bytes())
    }
}

impl Part for Arc<str> {
    #[inline]
    fn write(&self, key: &mut KeyBuf) {
        key.push(self.as_bytes());
    }

    #[inline(always)]
    fn single(&self) -> Single<'_> {
        Single::of_bytes(self.as_bytes())
    }
}

impl Part for Cow<'_, str> {
    #[inline]
    fn write(&self, key: &mut KeyBuf) {
        key.push(self.as_bytes());
    }

    #[inline(always)]
    fn single(&self) -> Single<'_> {
        Single::of_bytes(self.as_bytes())
    }
}

/// An IPv4-mapped IPv6 address is written as IPv4. Addresses are not cut to a prefix here; [`Ip`](super::Ip) does
/// that.
impl Part for IpAddr {
    #[inline]
    fn write(&self, key: &mut KeyBuf) {
        match self.to_canonical() {
            Self::V4(v4) => key.push(&v4.octets()),
            Self::V6(v6) => key.push(&v6.octets()),
        }
    }

    #[inline(always)]
    fn single(&self) -> Single<'_> {
        match self.to_canonical() {
            Self::V4(v4) => Single::of_few(&v4.octets()),
            Self::V6(v6) => Single::of_few(&v6.octets()),
        }
    }
}

impl Part for Ipv4Addr {
    #[inline]
    fn write(&self, key: &mut KeyBuf) {
        IpAddr::V4(*self).write(key);
    }

    #[inline(always)]
    fn single(&self) -> Single<'_> {
        Single::of_few(&self.octets())
    }
}

impl Part for Ipv6Addr {
    #[inline]
    fn write(&self, key: &mut KeyBuf) {
        IpAddr::V6(*self).write(key);
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Part for $number {
            #[inline]
    fn write(&self, key: &mut KeyBuf) {
                key.push(&self.to_le_bytes());
            }

            #[inline(always)]
            fn single(&self) -> Single<'_> {
                Single::of_few(&self.to_le_bytes())
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64, u128, usize, i32, i64);

impl Part for () {
    fn write(&self, _: &mut KeyBuf) {}
}

macro_rules! tuples {
    ($($name:ident),*) => {
        impl<$($name: Part),*> Part for ($($name,)*) {
            #[expect(non_snake_case, reason = "a tuple's fields are named after their types")]
            #[inline]
    fn write(&self, key: &mut KeyBuf) {
                let ($($name,)*) = self;
                $($name.write(key);)*
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

    #[test]
    fn text_is_one_key_whoever_owns_it() {
        let plain = KeyBuf::of("acme");
        assert_eq!(KeyBuf::of(Arc::<str>::from("acme")), plain);
        assert_eq!(KeyBuf::of(String::from("acme")), plain);
        assert_eq!(KeyBuf::of(Cow::Borrowed("acme")), plain);
    }
}
