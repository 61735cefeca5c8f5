//! Files of Envoy's rate limit service: read, checked and followed.

mod deciding;
mod files;
mod statistics;
