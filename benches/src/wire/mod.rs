//! Over the wire: each server in a process and on a core of its own, and a client that keeps its
//! connections.

mod client;
mod cores;
mod serve;
mod server;
mod trial;

pub use self::cores::Cores;
pub use self::serve::{Kind, asked_for, serve};
pub use self::trial::Trial;
