//! The admin port: the dashboard, metrics, and the policies in force. It listens on the loopback address unless told otherwise, and
//! elsewhere only with a token.

mod access;
pub mod metrics;
pub(crate) mod page;
pub mod status;

pub(crate) use self::access::is_own;
pub use self::access::{Token, guarded};
