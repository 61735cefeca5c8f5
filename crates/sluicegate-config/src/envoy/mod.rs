//! Envoy's rate limit formats for sluicegate.
//!
//! [`read_yaml`] reads a configuration file of Envoy's rate limit service (`envoyproxy/ratelimit`) into a
//! [`Document`](crate::Document), as if its limits had been written in sluicegate's own format.
//! [`Descriptors`] say what the descriptor keys in the file mean, and become a
//! [`Format`](crate::Format) for [`Live`](crate::Live) and [`check`](crate::check()):
//!
//! ```no_run
//! use sluicegate_config::document::Key;
//! use sluicegate_config::{Environment, Live, PolicyFile, check};
//! use sluicegate_config::envoy::Descriptors;
//!
//! // request_headers: { header_name: x-user, descriptor_key: user }
//! let descriptors = Descriptors::default().with("user", Key::Header("x-user".into()));
//! let file = PolicyFile::new("ratelimit.yaml").format(descriptors);
//!
//! println!("{}", check(&file)?);
//! let policies = Live::open(&file, Environment::new())?;
//! # let _ = policies;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod file;
pub mod service;

pub use self::file::{Descriptors, read_yaml, read_yaml_with_warnings};
