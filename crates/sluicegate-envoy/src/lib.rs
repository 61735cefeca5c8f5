//! Envoy's rate limit formats for sluicegate.
//!
//! [`read_yaml`] reads a configuration file of Envoy's rate limit service (`envoyproxy/ratelimit`) into a
//! [`Document`](sluicegate_config::Document), as if its limits had been written in sluicegate's own format.
//! [`Descriptors`] say what the descriptor keys in the file mean, and become a
//! [`Format`](sluicegate_config::Format) for [`Live`](sluicegate_config::Live) and
//! [`check`](sluicegate_config::check()):
//!
//! ```no_run
//! use sluicegate_config::document::Key;
//! use sluicegate_config::{Environment, Live, PolicyFile, check};
//! use sluicegate_envoy::Descriptors;
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

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "yaml")]
mod file;
#[cfg(feature = "yaml")]
pub mod service;

#[cfg(feature = "yaml")]
pub use self::file::{Descriptors, read_yaml, read_yaml_with_warnings};

#[cfg(all(doctest, feature = "yaml"))]
#[doc = include_str!("../README.md")]
struct Readme;
