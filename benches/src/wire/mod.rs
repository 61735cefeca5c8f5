//! Over the wire: each server in its own process and on its own core, and a client that keeps its connections.

mod client;
mod cores;
mod overload;
mod serve;
mod server;
mod trial;

pub use self::cores::Cores;
pub use self::overload::{CLASSES, goodput};
pub use self::serve::{Kind, asked_for, serve};
pub(crate) use self::serve::{announce, end_with_parent};
pub use self::server::Server;
pub use self::trial::Trial;
