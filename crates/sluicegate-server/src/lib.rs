//! Rate limiting as a service, for programs that are not written in Rust.
//!
//! A [`Service`] answers by policies in files, counted in memory or in Redis. It speaks Envoy's rate limit service
//! (gRPC), its rate limit quota service, and JSON over HTTP. A [`Server`] opens the ports; [`rls`] and [`api`] have the parts for a server of your
//! own.
//!
//! ```no_run
//! use sluicegate_core::Memory;
//! use sluicegate_server::{Policies, Server, Service};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let policies = Policies::new().envoy("ratelimit.yaml")?;
//!     let service = Service::builder(policies).store(Memory::new()).build()?;
//!     let server = Server::new(service).grpc("0.0.0.0:8081".parse()?).http("0.0.0.0:8080".parse()?);
//!     server.bind().await?.run(std::future::pending()).await;
//!     Ok(())
//! }
//! ```
//!
//! # Metrics
//!
//! Besides the metrics of the store and of decisions, which `sluicegate-core` and `sluicegate-redis` describe:
//!
//! | metric | labels | |
//! | --- | --- | --- |
//! | `sluicegate_rls_answers_total` | `code` | counter: answers to Envoy and to `/json`; `ok`, `over_limit`, `bad_request` or `store_error` |
//! | `sluicegate_failed_calls_total` | `service`, `code` | counter: calls that failed before a decision, and requests that Envoy was told to refuse because of that |
//! | `sluicegate_rls_near_limit_total` | | counter: descriptors within their limit, with more than four fifths of it spent |
//! | `sluicegate_quota_streams` | | gauge: streams of Envoy's rate limit quota service |
//! | `sluicegate_quota_buckets` | | gauge: buckets that hold a part of a capacity, with those of lost streams |
//! | `sluicegate_quota_reports_total` | | counter: messages of Envoys with reports of usage |
//! | `sluicegate_quota_ignored_buckets_total` | | counter: reported buckets that no capacity is for, or that are too many |
//! | `sluicegate_master_away` | | gauge: 1 while this server knows no server that divides the capacity, or its last call could not reach it |
//! | `sluicegate_rls_shadowed_total` | | counter: descriptors over a limit that is a shadow or a quota |
//! | `sluicegate_statistics_left_out_total` | | counter: descriptors that are not in the metrics below, because their names are too long or too many |
//!
//! With [`ServiceBuilder::statistics`], also those of Envoy's rate limit service, by its default mapping:
//!
//! | metric | labels | |
//! | --- | --- | --- |
//! | `ratelimit_service_rate_limit_total_hits`, `.._over_limit`, `.._near_limit`, `.._within_limit`, `.._shadow_mode` | `domain`, `key1`, `key2` | counters: hits |
//! | `ratelimit_service_total_requests` | `grpc_method` | counter: calls |
//! | `ratelimit_service_response_time_seconds` | `grpc_method` | histogram |
//! | `ratelimit_service_should_rate_limit_error` | `err_type` | counter: calls that were answered with an error; `redis_error` or `service_error` |
//! | `ratelimit_service_config_load_success`, `ratelimit_service_config_load_error` | | counters: how often policies came into force, or were not valid |
//!
//! # Other crates in its API
//!
//! Most programs need [`Server`], [`Service`] and [`Policies`], which show `sluicegate-core` alone, and
//! `sluicegate-config` where a file is read or watched and `sluicegate-lease` where a master is elected. The modules for a server of your own take and return types of `axum` 0.8
//! (`Router` in [`api`] and [`auth`]) and `tonic` 0.14 (`RoutesBuilder` in [`rls`], [`rlqs`], [`auth`] and [`leases`]). A
//! release of this crate that changes to another major version of one of them is a major release, too.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod admin;
mod admission;
pub mod api;
pub mod auth;
pub mod capacity;
mod fields;
mod grpc;
mod health;
pub mod leases;
mod policies;
pub mod proxy;
mod request;
pub mod rlqs;
pub mod rls;
mod rooms;
mod rules;
mod run;
mod service;
pub mod status;
mod text;

pub use self::fields::Fields;
pub use self::policies::{Following, Policies, PoliciesError, Xds};
pub use self::request::DescribedRequest;
pub use self::rls::StatsD;
pub use self::run::{Addresses, Bound, Reload, Server, ServerError, Tls};
pub use self::service::{Service, ServiceBuilder};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
