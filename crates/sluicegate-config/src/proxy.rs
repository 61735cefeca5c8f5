//! The settings of `sluicegate proxy`, checked: see [`Policies::listen`](crate::Policies::listen) and
//! [`Policies::upstream`](crate::Policies::upstream).

pub use crate::compile::proxy::{Listen, Upstream, UpstreamTls};
