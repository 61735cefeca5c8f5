//! The admin port: metrics, and the policies in force. It listens on the loopback address unless told otherwise, and
//! elsewhere only with a token.

mod access;
pub mod metrics;
pub mod policies;

pub use self::access::Token;
pub(crate) use self::access::guarded;
