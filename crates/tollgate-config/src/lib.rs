//! Rate limiting policies from a file.
//!
//! A [`Document`] is read from TOML or JSON and compiled into [`Policies`], which are a
//! [`Rule`](tollgate_core::Rule) like those that code makes. Whatever is wrong with the file is told with
//! line, column and what was expected: see [`Problems`].

mod check;
mod compile;
pub mod document;
mod environment;
mod envoy;
mod live;
mod origin;
mod path;
mod problem;
mod read;
mod request;
mod schema;
#[cfg(test)]
mod testing;
mod words;

pub use self::check::{Report, RuleReport, check};
pub use self::compile::Policies;
pub use self::document::Document;
pub use self::environment::Environment;
pub use self::envoy::{Descriptors, Like, read_envoy, read_envoy_with_warnings};
pub use self::live::{Changes, Event, LimitChange, Live, WatchError, Watching};
pub use self::origin::Origin;
pub use self::problem::{Place, Problem, Problems};
pub use self::read::{read_json, read_toml};
pub use self::request::Request;
pub use self::schema::schema;
