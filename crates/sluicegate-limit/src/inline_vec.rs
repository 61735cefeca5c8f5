use alloc::vec::Vec;
use core::iter::Chain;
use core::{fmt, option, slice};

/// A list that holds its first item in place. Most requests are charged to one limit, and these must not allocate.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct InlineVec<T> {
    first: Option<T>,
    rest: Vec<T>,
}

/// The items in order.
pub type Iter<'a, T> = Chain<option::Iter<'a, T>, slice::Iter<'a, T>>;

impl<T> Default for InlineVec<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> InlineVec<T> {
    /// An empty list.
    #[inline]
    pub const fn new() -> Self {
        Self { first: None, rest: Vec::new() }
    }

    /// A list of one item or none.
    #[inline]
    pub const fn of(first: Option<T>) -> Self {
        Self { first, rest: Vec::new() }
    }

    /// Makes the first item in its final place, in an empty list. An item is large, and the compiler moves it once
    /// more if it has to drop another one first.
    #[inline(always)]
    pub fn begin(&mut self, make: impl FnOnce() -> T) -> &mut T {
        debug_assert!(self.is_empty(), "a list begins with its first item");
        self.first.get_or_insert_with(make)
    }

    /// Adds an item at the end.
    #[inline]
    pub fn push(&mut self, item: T) {
        if self.first.is_none() {
            self.first = Some(item);
        } else {
            self.rest.push(item);
        }
    }

    /// The item, if there is exactly one.
    #[inline]
    pub fn only(&self) -> Option<&T> {
        if self.rest.is_empty() { self.first.as_ref() } else { None }
    }

    /// Whether there is no item.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The number of items.
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    /// The items in order.
    #[inline]
    pub fn iter(&self) -> Iter<'_, T> {
        self.first.iter().chain(&self.rest)
    }

    /// The items in order, to be changed.
    #[inline]
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut T> {
        self.first.iter_mut().chain(&mut self.rest)
    }
}

impl<T> FromIterator<T> for InlineVec<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut items = items.into_iter();
        Self { first: items.next(), rest: items.collect() }
    }
}

impl<T: fmt::Debug> fmt::Debug for InlineVec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
