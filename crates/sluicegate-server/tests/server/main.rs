//! The server and the proxy, through real ports where they have some.

mod auth;
mod descriptors;
mod proxy;
mod serving;
