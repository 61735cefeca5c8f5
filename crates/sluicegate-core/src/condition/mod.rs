//! Conditions: when a rule applies.
//!
//! A condition asks something of the request (its path, method, host, a header) or of the server (the time of
//! day, its load). [`By::when`](crate::rule::By::when) puts a rule under one; tuples, [`Not`], [`AnyOf`] and
//! [`AllOf`] combine them.
//!
//! ```
//! use sluicegate::condition::Not;
//! use sluicegate::key::{Method, Path};
//! use sluicegate::{Ip, Limit};
//!
//! let writes = Limit::per_minute(10)
//!     .by(Ip::peer())
//!     .when((Path.matches("/api/{*rest}"), Not(Method.is("GET"))));
//! # let _ = writes;
//! ```

#[cfg(feature = "geoip")]
mod geoip;
#[cfg(feature = "hours")]
pub(crate) mod hours;
pub(crate) mod load;

#[cfg(feature = "geoip")]
pub use self::geoip::{GeoDatabase, GeoError, GeoIn, GeoKey};
#[cfg(feature = "hours")]
pub use self::hours::{Hours, HoursError, Weekday};
#[cfg(feature = "cpu")]
pub use self::load::{Cpu, CpuError};
pub use self::load::{HasCapacity, InFlight, InFlightGuard};
mod extension;
mod host;
mod index;
mod list;
mod path;
mod pattern;
mod target;
mod values;
mod within;

use std::fmt;

pub use self::extension::ExtensionIs;
pub use self::host::HostIs;
pub use self::index::{Index, Target};
pub use self::list::{AllOf, AnyOf};
pub use self::path::PathMatches;
pub use self::pattern::PatternError;
pub use self::target::{MethodIs, RouteIs};
pub use self::values::{Equals, Present, Values};
pub use self::within::Within;
pub use crate::key::network::NetworkError;
pub use crate::key::path::MAX_PATH;
use crate::key::{Missing, View};

/// Says yes or no to a request.
///
/// A closure over the framework's own request is a condition. Keys make conditions, and [`Not`] and [`Either`]
/// combine them. A tuple of conditions holds if all of them hold. [`AnyOf`] and [`AllOf`] are for lists.
///
/// | condition | holds for requests |
/// | --- | --- |
/// | [`Method.is("POST")`](crate::key::Method::is), [`is_any`](crate::key::Method::is_any) | of a method |
/// | [`Route.is("/users/{id}")`](crate::Route::is) | that matched a route |
/// | [`Path.matches("/api/*")`](crate::key::Path::matches) | to paths of a pattern |
/// | [`Host.is("example.com")`](crate::key::Host::is), [`matches("*.example.com")`](crate::key::Host::matches) | for a host |
/// | [`Header("x").equals("v")`](crate::Header::equals), [`is_present`](crate::Header::is_present); [`Query`](crate::key::Query), [`Cookie`](crate::key::Cookie) and [`Claim`](crate::Claim) too | with such a value |
/// | [`Extension::<T>::new().is(..)`](crate::key::Extension::is) | to which an earlier layer added such a value |
/// | [`Ip::peer().within(["10.0.0.0/8"])`](crate::Ip::within) | from a network |
///
/// ```
/// use sluicegate::{Ip, Limit};
/// use sluicegate::condition::Not;
///
/// struct Request { preflight: bool } // your framework's request
///
/// let rule = Limit::per_second(10).by(Ip::peer()).when(Not(|request: &Request| request.preflight));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a condition on these requests",
    label = "not a condition",
    note = "keys make conditions: `Path.matches(\"/login\")`, `Method.is(\"POST\")`, `Header(\"x\").equals(\"y\")`",
    note = "a closure over the framework's request is one: `|request: &Request<Body>| ..`"
)]
pub trait Condition<V: View> {
    /// Whether the condition holds for the request of `view`, or may hold.
    ///
    /// Some conditions cannot always be known, because servers read a path in several ways. Such a condition holds as
    /// soon as one way to read the request matches, so that an unusual spelling does not get past a limit.
    ///
    /// # Errors
    ///
    /// Returns what the server does not provide, such as the address of the peer. An unknown condition is never
    /// treated as one that does not hold.
    fn holds(&self, view: &V) -> Result<bool, Missing>;

    /// Whether the condition certainly holds, however the request is read. [`Not`] asks this, so that an unusual
    /// spelling does not reach an exception either, and so do [`Cases`](crate::rule::Cases) before limits are replaced.
    ///
    /// Only a condition that cannot always be known has to implement this.
    ///
    /// # Errors
    ///
    /// As [`holds`](Self::holds).
    fn surely_holds(&self, view: &V) -> Result<bool, Missing> {
        self.holds(view)
    }

    /// Who decides whether the condition holds: the client, unless an implementation says otherwise.
    ///
    /// [`Cases`](crate::rule::Cases) use this: a case that a client can choose has a budget of its own, and cases
    /// that only the server chooses share what was spent. [`ByServer`] and [`ByClient`] set it for a closure.
    fn chosen_by(&self) -> ChosenBy {
        ChosenBy::Client
    }
}

/// Who decides whether a [`Condition`] holds for a request.
///
/// | chosen by | conditions |
/// | --- | --- |
/// | the client | method, path, route, host, header, query, cookie, and closures |
/// | the server | hours, load ([`HasCapacity`], [`InFlight`], `Cpu`), a claim and an extension, which an earlier layer has left, the network, country and region of the address |
///
/// A client cannot freely choose its address: it has few of them. A combination that depends on anything the client
/// chooses is chosen by the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChosenBy {
    /// The client: it can send the next request so that the condition holds, or does not.
    Client,
    /// The server: a request gets the same answer, whatever else the client writes into it.
    Server,
}

impl ChosenBy {
    /// Who chooses a condition that depends on both: the client, if it chooses one of them.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Server, Self::Server) => Self::Server,
            _ => Self::Client,
        }
    }

    /// Who chooses a condition that depends on all of them. Without any, it is the server.
    pub(crate) fn all(parts: impl IntoIterator<Item = Self>) -> Self {
        parts.into_iter().fold(Self::Server, Self::and)
    }
}

/// Declares that the server chooses whether the inner condition holds, whatever it reads; see [`ChosenBy`].
///
/// ```
/// use sluicegate::{Ip, Limit, when};
/// use sluicegate::condition::ByServer;
///
/// struct Request { is_crawler: bool } // as your own layer has found out
///
/// // One budget, of which crawlers may spend less.
/// let crawler = ByServer(|request: &Request| request.is_crawler);
/// let rule = when(crawler, Limit::per_minute(10))
///     .otherwise(Limit::per_minute(60))
///     .by(Ip::peer());
/// ```
#[derive(Clone, Copy)]
pub struct ByServer<C>(pub C);

impl<V: View, C: Condition<V>> Condition<V> for ByServer<C> {
    #[inline]
    fn holds(&self, view: &V) -> Result<bool, Missing> {
        self.0.holds(view)
    }

    fn surely_holds(&self, view: &V) -> Result<bool, Missing> {
        self.0.surely_holds(view)
    }

    fn chosen_by(&self) -> ChosenBy {
        ChosenBy::Server
    }
}

impl<C> fmt::Debug for ByServer<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ByServer")
    }
}

/// Declares that the client chooses whether the inner condition holds: for a claim or an extension that a client can
/// leave out or change. See [`ChosenBy`].
#[derive(Clone, Copy)]
pub struct ByClient<C>(pub C);

impl<V: View, C: Condition<V>> Condition<V> for ByClient<C> {
    #[inline]
    fn holds(&self, view: &V) -> Result<bool, Missing> {
        self.0.holds(view)
    }

    fn surely_holds(&self, view: &V) -> Result<bool, Missing> {
        self.0.surely_holds(view)
    }

    fn chosen_by(&self) -> ChosenBy {
        ChosenBy::Client
    }
}

impl<C> fmt::Debug for ByClient<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ByClient")
    }
}

// Makes the compiler say "not a condition" for a type that is not a closure either.
#[diagnostic::do_not_recommend]
impl<V: View, F: Fn(&V::Request) -> bool> Condition<V> for F {
    fn holds(&self, view: &V) -> Result<bool, Missing> {
        Ok(self(view.request()))
    }
}

/// Holds if the inner condition does not hold, or may not hold.
#[derive(Clone, Copy)]
pub struct Not<C>(pub C);

impl<V: View, C: Condition<V>> Condition<V> for Not<C> {
    fn holds(&self, view: &V) -> Result<bool, Missing> {
        Ok(!self.0.surely_holds(view)?)
    }

    fn surely_holds(&self, view: &V) -> Result<bool, Missing> {
        Ok(!self.0.holds(view)?)
    }

    fn chosen_by(&self) -> ChosenBy {
        self.0.chosen_by()
    }
}

impl<C> fmt::Debug for Not<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Not")
    }
}

/// Holds if one of the two conditions holds.
#[derive(Clone, Copy)]
pub struct Either<A, B>(pub A, pub B);

impl<V: View, A: Condition<V>, B: Condition<V>> Condition<V> for Either<A, B> {
    fn holds(&self, view: &V) -> Result<bool, Missing> {
        Ok(self.0.holds(view)? || self.1.holds(view)?)
    }

    fn surely_holds(&self, view: &V) -> Result<bool, Missing> {
        Ok(self.0.surely_holds(view)? || self.1.surely_holds(view)?)
    }

    fn chosen_by(&self) -> ChosenBy {
        self.0.chosen_by().and(self.1.chosen_by())
    }
}

impl<A, B> fmt::Debug for Either<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Either")
    }
}

macro_rules! tuples {
    ($($condition:ident),*) => {
        impl<V: View, $($condition: Condition<V>),*> Condition<V> for ($($condition,)*) {
            #[expect(non_snake_case, reason = "a tuple's fields are named after their types")]
            fn holds(&self, view: &V) -> Result<bool, Missing> {
                let ($($condition,)*) = self;
                Ok($($condition.holds(view)?)&&*)
            }

            #[expect(non_snake_case, reason = "a tuple's fields are named after their types")]
            fn surely_holds(&self, view: &V) -> Result<bool, Missing> {
                let ($($condition,)*) = self;
                Ok($($condition.surely_holds(view)?)&&*)
            }

            #[expect(non_snake_case, reason = "a tuple's fields are named after their types")]
            fn chosen_by(&self) -> ChosenBy {
                let ($($condition,)*) = self;
                ChosenBy::all([$($condition.chosen_by()),*])
            }
        }
    };
}

tuples!(A, B);
tuples!(A, B, C);
tuples!(A, B, C, D);

#[cfg(test)]
mod tests;
