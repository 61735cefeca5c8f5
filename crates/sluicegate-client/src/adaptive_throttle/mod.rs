//! Do not send what the server would reject: adaptive throttling on the side of the client.
//!
//! A server that is overloaded spends time on requests that it rejects. Each client therefore counts, over two minutes, how
//! many requests it wanted to send and how many were accepted, and rejects new ones itself with a probability of
//! `max(0, (requests − k · accepts) / (requests + 1))` (Beyer et al., "Site Reliability Engineering", 2016, chapter 21).
//! What it rejects counts as a request, too. A request that is sent counts when it has ended, so that those that wait for
//! their turn further in do not look like rejected ones. One that its caller gives up, as by a timeout around the client,
//! counts as rejected if it was under way for longer than the server usually takes.
//!
//! A twentieth of the requests, and one in each second, are sent in any case, so that the client sees when the server is
//! back. The formula alone would believe in the server again minutes later, so the client looks at what becomes of the
//! requests that it does send: when so many are accepted that the server of the last two minutes would hardly have done
//! that, and that lasts for two seconds, what is sent doubles with each half second, and the failures are forgotten in the
//! end. A server that is back has all requests again within five seconds, or ten at a request a second.
//!
//! A server with `sluicegate-throttle` may say in its responses which classes of criticality it admits at present, in the
//! field `sluicegate-admission`. Requests of a class that it would shed are not sent while this is to be believed. The class
//! is that of the [`Context`](crate::outgoing::Context).

mod history;
mod layer;
mod server;
mod service;

pub use self::layer::{AdaptiveThrottleBuilder, AdaptiveThrottleLayer};
pub use self::service::ResponseFuture;
