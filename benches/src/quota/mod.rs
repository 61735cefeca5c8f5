//! Servers that answer questions about limits, in gRPC and HTTP, and the questions.

mod command;
mod grpc;
mod question;
mod serve;
mod trial;

pub use self::command::{Reloaded, Sluicegate};
pub use self::question::requests;
pub use self::serve::{Kind, asked_for, serve};
pub use self::trial::{Needs, Trial};
