//! Rate limiting policies from a file, changed while the service runs.
//!
//! A [`Document`] is read from TOML ([`read_toml`]) or JSON ([`read_json`]) and compiled into [`Policies`]: a
//! [`Rule`](sluicegate_core::rule::Rule) that decides like the same rule in code. [`Live`] reads a file and reloads it
//! when it changes. [`check`](check()) looks at a file without running anything. The module [`envoy`] reads
//! files of Envoy's rate limit service.
//!
//! ```
//! use sluicegate_config::{Environment, Policies, read_toml};
//!
//! let document = read_toml(
//!     r#"
//!     time_zone = "Europe/Berlin"
//!
//!     [tiers.free]
//!     limits = ["5/second burst 10", "10000 per 30 days"]
//!     [tiers.partner]
//!     unlimited = true
//!
//!     [[rules]]
//!     name = "api"
//!     key = { claim = "customer" }
//!     tiers = { by = { claim = "plan" }, default = "free" }
//!     when = { path = "/api/*" }
//!
//!     [[rules]]
//!     name = "login"
//!     key = "ip"
//!     limits = [{ rate = "log 5 per 15 minutes", ban = { for = "1 hour", after = 3, within = "1 hour" } }]
//!     when = { method = "POST", path = "/login" }
//!     count_if = [401, 403]
//!
//!     [[rules]]
//!     name = "everybody"
//!     key = "global"
//!     limits = ["1000/second"]
//!     cases = [{ when = { hours = { between = ["22:00", "06:00"] } }, limits = ["2000/second"] }]
//!     "#,
//! )?;
//! let policies = Policies::new(&document, &Environment::new())?;
//! # let _ = policies;
//! # Ok::<(), sluicegate_config::PolicyError>(())
//! ```
//!
//! The JSON Schema describes everything that a file can contain, for editors and readers: the file `schema.json` of
//! this crate, which [`schema`] generates.
//!
//! Every problem with a file is reported with its line, column, path and what was expected. All of them are
//! reported at once, whether a value has the wrong type, a name is not known or a limit makes no sense: see
//! [`PolicyError`] for the two exceptions.
//!
//! ```
//! use sluicegate_config::{Environment, Policies, read_toml};
//!
//! let document = read_toml(
//!     "[[rules]]
//! name = \"api\"
//! key = \"ip\"
//! limits = [\"100/fortnight\"]
//! when = { method = \"post\" }",
//! )?;
//! let problems = Policies::new(&document, &Environment::new()).unwrap_err();
//! assert_eq!(
//!     problems.in_file("policies.toml").to_string(),
//!     "policies.toml:4:11: rules[0].limits[0]: in `100/fortnight`: the unit of time is not known: use us, \
//!      ms, s, min, h, d, w, month or year, or their names\n\
//!      policies.toml:5:19: rules[0].when.method: methods are case-sensitive, expected \
//!      `POST` instead of `post`",
//! );
//! # Ok::<(), sluicegate_config::PolicyError>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

mod absent;
mod check;
mod compile;
pub mod document;
mod environment;
#[cfg(feature = "envoy")]
pub mod envoy;
mod live;
mod policy_file;
mod read;
mod source;
pub mod texts;
#[cfg(feature = "throttle")]
mod throttle;
mod words;

pub use self::check::{Report, RuleReport, check, check_change};
pub use self::compile::Policies;
pub use self::document::Document;
#[cfg(feature = "schema")]
pub use self::document::schema;
pub use self::environment::{Environment, Request};
pub use self::live::{Changes, Event, LimitChange, Live};
#[cfg(feature = "watch")]
pub use self::live::{WatchError, Watching};
pub use self::policy_file::{Format, PolicyFile};
#[cfg(feature = "json")]
pub use self::read::read_json;
#[cfg(feature = "toml")]
pub use self::read::read_toml;
pub use self::source::{Diagnostic, PolicyError, SourceLocation, SourceMap};
#[cfg(feature = "throttle")]
pub use self::throttle::{FileRequests, FileThrottle, FileThrottleLayer};

/// The settings of `sluicegate proxy`, checked: see [`Policies::listen`] and [`Policies::upstream`].
pub mod proxy {
    pub use crate::compile::proxy::{Listen, Upstream, UpstreamTls, fields};
}

/// For crates that read policies in another format.
///
/// Such a crate builds a [`Document`], [marks](SourceMap::mark) where its parts are in the text, and offers the reader as
/// a [`Format`].
pub mod reader {
    pub use crate::compile::time;
    #[cfg(all(feature = "toml", feature = "json"))]
    pub use crate::read::read_as;
    pub use crate::read::{text_of, within_bounds as text_within_bounds};
    pub use crate::words::one_of;
}
