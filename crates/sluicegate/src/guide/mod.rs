//! The guide: from the first limit to production.
//!
//! Read the first page, then the page for the question at hand.
//!
//! | page | answers |
//! | --- | --- |
//! | [`first_limit`] | How do I limit an API in axum, actix-web, tower, or code without HTTP? |
//! | [`keys`] | Which budget is a request charged to? What if the key is missing? |
//! | [`proxies`] | How do I get the client's address behind nginx, AWS, Cloudflare or Kubernetes? |
//! | [`algorithms`] | Token bucket, window, log, or concurrency: which one? |
//! | [`rules`] | Who may do how much? Tiers, cases, conditions, costs, and counting by response. |
//! | [`tokens`] | How do I give each client a budget of tokens of a language model? |
//! | [`which_number`] | How much should I allow? Limits from an access log. |
//! | [`policies`] | How do I keep the limits in a file and change them while the service runs? |
//! | [`overload`] | Limits, queues and overload: which do I need? |
//! | [`rejection`] | What happens to a request over the limit: refuse, queue, redirect, degrade? |
//! | [`fleets`] | How do several processes share a limit, and what happens when Redis is away? |
//! | [`engines`] | How do processes share limits in PostgreSQL, or in an engine of my own? |
//! | [`leases`] | How do services divide the capacity of something they share, such as a database? |
//! | [`testing`] | How do I test my limits without waiting? |
//! | [`operating`] | How do I try limits out, watch them, and size the memory? |
//! | [`migrating`] | I use governor, tower_governor, actix-governor or Envoy. What changes? |
//! | [`clients`] | How do I call a limited API without being refused? |
//! | [`recipes`] | Health checks, CORS, layer order, caches, gRPC, blocking a key by hand. |
//!
//! Every snippet on these pages is compiled and run by the tests of the project.
//!
//! # Examples
//!
//! The repository has whole programs in `examples/`. Start one with `cargo run --example NAME`. The servers print
//! the `curl` lines to try.
//!
//! | name | shows |
//! | --- | --- |
//! | `axum`, `actix` | a limit on everything, and a stricter one on a route |
//! | `boxed` | a layer whose rule is chosen when the service starts, held by a struct |
//! | `login` | only failed logins count |
//! | `tiers` | limits by API key: free, paid and default, changed while the service runs |
//! | `llm`, `llm_file` | budgets of tokens in front of a language model that streams, in code and in a file |
//! | `queue` | requests wait a little, and are then sent elsewhere |
//! | `plain` | hyper and tower without a framework |
//! | `grpc` | a gRPC service, and a client that reads why it is refused |
//! | `one_port` | gRPC and HTTP on one port, limited together: each caller is answered in its own protocol |
//! | `client` | a crawler of a limited API that is never refused |
//! | `grpc_client` | a client of a limited gRPC service that waits instead of being refused |
//! | `throttle` | overload protection: a queue by cost and class, under twice the load that fits |
//! | `guard`, `guard_actix` | rate limits around a throttle, and a cheaper page for requests without room |
//! | `product` | a public API with a file of policies that can be changed while it serves |
//! | `metrics` | Prometheus, a Grafana dashboard, and the keys that are limited most |
//! | `redis` | two processes that share a limit, and half of it each while Redis is away |
//! | `fleet` | a dozen processes that divide a limit and decide in memory, while one is killed and two join |
//! | `leases` | a dozen clients of three servers of leases, while one wants ten times as much and a server is killed |
//! | `two_tiers` | a limit in each process and an hourly quota over all, by leases |
//! | `critical_path` | a shop that overloads itself: who is answered, with a throttle and without |
//! | `overload` | draws the picture of the page on overload |
//! | `lease_pictures` | draws the picture of the page on leases |
//! | `algorithms` | draws what each algorithm lets through |

// The pages use every crate of the project, so their snippets run as tests of `sluicegate-tests`, which
// depends on all of them. Here they are only shown.

#[cfg_attr(not(doctest), doc = include_str!("first_limit.md"))]
pub mod first_limit {}

#[cfg_attr(not(doctest), doc = include_str!("keys.md"))]
pub mod keys {}

#[cfg_attr(not(doctest), doc = include_str!("proxies.md"))]
pub mod proxies {}

#[cfg_attr(not(doctest), doc = include_str!("algorithms.md"))]
pub mod algorithms {}

#[cfg_attr(not(doctest), doc = include_str!("rules.md"))]
pub mod rules {}

#[cfg_attr(not(doctest), doc = include_str!("tokens.md"))]
pub mod tokens {}

#[cfg_attr(not(doctest), doc = include_str!("policies.md"))]
pub mod policies {}

#[cfg_attr(not(doctest), doc = include_str!("which_number.md"))]
pub mod which_number {}

#[cfg_attr(not(doctest), doc = include_str!("overload.md"))]
#[doc = include_str!("overload.svg")]
pub mod overload {}

#[cfg_attr(not(doctest), doc = include_str!("rejection.md"))]
pub mod rejection {}

#[cfg_attr(not(doctest), doc = include_str!("fleets.md"))]
pub mod fleets {}

#[cfg_attr(not(doctest), doc = include_str!("engines.md"))]
pub mod engines {}

#[cfg_attr(not(doctest), doc = include_str!("leases.md"))]
#[doc = include_str!("leases.svg")]
pub mod leases {}

#[cfg_attr(not(doctest), doc = include_str!("testing.md"))]
pub mod testing {}

#[cfg_attr(not(doctest), doc = include_str!("operating.md"))]
pub mod operating {}

#[cfg_attr(not(doctest), doc = include_str!("migrating.md"))]
pub mod migrating {}

#[cfg_attr(not(doctest), doc = include_str!("recipes.md"))]
pub mod recipes {}

#[cfg_attr(not(doctest), doc = include_str!("clients.md"))]
pub mod clients {}
