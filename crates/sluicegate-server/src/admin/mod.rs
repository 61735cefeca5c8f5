//! The admin port: the dashboard, metrics, and the policies in force. It listens on the loopback address unless told otherwise, and
//! elsewhere only with a token.

mod access;
pub mod metrics;
mod origin;
pub(crate) mod page;
pub mod policies;
mod secret;
mod session;
pub mod status;

pub use self::access::{Token, guarded};
pub(crate) use self::origin::is_own;
