//! Keys: which budget a request is charged to.
//!
//! A key reads something from the request: the client's address ([`Ip`]), a header ([`Header`]), a claim of
//! your own authentication ([`Claim`]), the route ([`Route`]). A tuple of keys is a key, and [`First`] takes
//! the first key that is present. [`Key`] is the trait behind them.
//!
//! ```
//! use sluicegate::{First, Header, Ip, Limit, Route};
//!
//! // One budget for each API key (or address, without one) and route.
//! let rule = Limit::per_minute(100).by((First((Header("x-api-key"), Ip::peer())), Route));
//! # let _ = rule;
//! ```

mod buf;
mod claims;
mod extract;
pub(crate) mod hash;
mod hop;
mod ip;
mod legible;
mod missing;
mod nat64;
pub(crate) mod network;
mod part;
pub(crate) mod path;
mod print;
mod proxies;
mod readings;
mod short;
mod short_key;
mod single;
pub(crate) mod tag;
#[cfg(test)]
pub(crate) mod testing;
mod text;
mod view;

pub use self::buf::KeyBuf;
pub use self::claims::Claims;
pub use self::extract::{
    Claim, Const, Cookie, Extension, First, FromFn, Global, Header, Host, Method, Optional, Path,
    Query, Route, from_fn,
};
#[cfg(test)]
pub(crate) use self::extract::{MAX_PAIRS, MAX_PAIRS_LENGTH};
pub(crate) use self::extract::{
    PairReadings, any_cookie, any_query, header_value, host_address, host_of, is_host, is_token,
    no_header_name, percent_decoded, query_value, sound_name, trimmed,
};
pub use self::ip::Ip;
pub use self::missing::Missing;
pub(crate) use self::network::Network;
pub use self::part::Part;
pub use self::print::KeySecret;
pub use self::proxies::{Proxies, ProxiesError};
pub use self::readings::Readings;
pub(crate) use self::short_key::ShortKey;
pub use self::text::Text;
pub use self::view::View;

/// Where a request's key comes from.
///
/// A key is *written* into a [`KeyBuf`], so combining keys costs no allocation. A tuple of keys is a key, [`First`]
/// takes the first key that is present, and [`Optional`] exempts requests without the key.
///
/// ```
/// use sluicegate::{First, Header, Ip, Limit, Route};
///
/// let rule = Limit::per_minute(100)
///     .burst(20)
///     .by((First((Header("x-api-key"), Ip::peer())), Route));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a key of these requests",
    label = "not a key",
    note = "a header is `Header(\"name\")`, a constant `Const(value)`, a closure `from_fn(..)`",
    note = "`Path`, `Query`, `Host` and `Extension` of axum are extractors: import those of `key`"
)]
pub trait Key<V: View> {
    /// Writes the key of the request behind `view`.
    ///
    /// # Errors
    ///
    /// Returns what is missing, and who has to add it.
    fn write(&self, view: &V, key: &mut KeyBuf) -> Result<(), Missing>;
}
