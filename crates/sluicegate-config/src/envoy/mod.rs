//! Envoy's rate limit formats for sluicegate.
//!
//! [`read_yaml`] reads a configuration file of Envoy's rate limit service (`envoyproxy/ratelimit`) into a
//! [`Document`], as if its limits had been written in sluicegate's own format.
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

// Envoy's lookup becomes conditions. The service walks down a tree; here each limit is a rule whose
// condition says that the walk would end there: the values of the limit, and none of those that are looked
// up before. A property test compares random files with the lookup of the service. A request is taken to
// have every list of keys that leads to a limit and that it has values for, because the file does not say
// which lists Envoy sends.

mod descriptors;
mod diagnostics;
mod fields;
mod limit_path;
mod meaning;
mod rules;
pub mod service;
#[cfg(test)]
mod tests;
mod tree;
mod yaml;

pub use self::descriptors::Descriptors;

use self::diagnostics::Diagnostics;
use crate::document::Document;
use crate::read::within_bounds;
use crate::source::{Diagnostic, PolicyError};

/// Reads a file of Envoy's rate limit service (`envoyproxy/ratelimit`) into a document.
///
/// The rules decide like the service. At each level of descriptors, an exact value takes precedence over a value
/// with `*`, and that over a key without a value. Each limit has a budget for each combination of values on its way.
/// `shadow_mode`, `unlimited`, `replaces` and `share_threshold` are supported. Limits are fixed windows aligned to the
/// Unix epoch, unless [`Descriptors::token_buckets`] is set. A month has 30 days, a year 365.
///
/// There are four differences:
///
/// - A value of a path or of a method matches as `path` and `method` do in our own files: `/login` is also `/%6cogin`,
///   and `GET` is also `HEAD`, so that no spelling gets around a limit. This holds for values without `*`, braces and dot
///   segments, and for paths with a `/*` at the end. Other values with `*` are compared byte for byte, so a client can spell
///   a path in another way. A limit for one value replaces the limit for other values only where the bytes are those in the
///   file. So a limit for `HEAD` does not replace the one for `GET`: a request with `HEAD` is counted by both.
/// - The file does not contain the descriptors of a request; Envoy's routes do. Here, a request has every list of keys
///   that leads to a limit and whose parts, according to [`Descriptors`], it has.
/// - A request that one limit refuses is charged by none. The service charges the other limits. A limit of 0 requests
///   refuses with 429 and without `Retry-After`.
/// - An IPv6 address is cut to its first 64 bits.
///
/// `detailed_metric` and `value_to_metric` are for [statistics](service::Plan::statistic) alone, and `metadata` has no effect;
/// [`check`](crate::check()) warns of them.
///
/// ```
/// use sluicegate_config::envoy::{Descriptors, read_yaml};
///
/// let document = read_yaml(
///     "domain: edge
/// descriptors:
///   - key: remote_address
///     rate_limit: { unit: second, requests_per_unit: 10 }
///   - key: remote_address
///     value: 50.0.0.5
///     rate_limit: { unit: second, requests_per_unit: 0 }
/// ",
///     &Descriptors::default(),
/// )?;
/// assert_eq!(document.rules[0].name, "remote_address");
/// # Ok::<(), sluicegate_config::PolicyError>(())
/// ```
///
/// # Errors
///
/// Every error in the file, including keys that `descriptors` do not know. The error for such a key contains the
/// missing line of code.
pub fn read_yaml(text: &str, descriptors: &Descriptors) -> Result<Document, PolicyError> {
    read_yaml_with_warnings(text, descriptors).map(|(document, _)| document)
}

/// Like [`read_yaml`], and returns warnings about settings without an effect.
fn read_yaml_with_warnings(
    text: &str,
    descriptors: &Descriptors,
) -> Result<(Document, Vec<Diagnostic>), PolicyError> {
    read(text, |domain, found| rules::document(&domain, descriptors, found))
}

/// What `make` makes of the domain in a file, and the warnings.
fn read<T: Default>(
    text: &str,
    make: impl FnOnce(tree::Domain, &mut Diagnostics) -> T,
) -> Result<(T, Vec<Diagnostic>), PolicyError> {
    let text = within_bounds(text)?;
    let mut found = Diagnostics::default();
    let node = yaml::read(text, &mut found);
    let domain = node.and_then(|node| tree::domain(&node, &mut found));
    let made = domain.map(|domain| make(domain, &mut found));
    let warnings = found.finish(text)?;
    // Without an error, something was made.
    Ok((made.unwrap_or_default(), warnings))
}
