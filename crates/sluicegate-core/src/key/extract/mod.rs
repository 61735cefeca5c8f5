//! Keys that are each read from one place of the request, and the ways to combine them.

mod claim;
mod combined;
mod cookie;
mod extension;
mod fixed;
mod from_fn;
mod header;
mod host;
mod lowercase;
mod pairs;
mod query;
mod target;
#[cfg(test)]
mod tests;

pub use self::claim::Claim;
pub use self::combined::{First, Optional};
pub use self::cookie::Cookie;
pub(crate) use self::cookie::any_cookie;
pub use self::extension::Extension;
pub use self::fixed::{Const, Global};
pub use self::from_fn::{FromFn, from_fn};
pub use self::header::Header;
pub(crate) use self::header::{header_value, is_host, is_token, no_header_name, trimmed};
pub use self::host::Host;
pub(crate) use self::host::{host_address, host_of, sound_name};
#[cfg(test)]
pub(crate) use self::pairs::{MAX_PAIRS, MAX_PAIRS_LENGTH};
pub(crate) use self::pairs::{PairReadings, percent_decoded};
pub use self::query::Query;
pub(crate) use self::query::{any_query, query_value};
pub use self::target::{Method, Path, Route};
