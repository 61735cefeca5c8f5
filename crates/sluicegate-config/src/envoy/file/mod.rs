//! Reads files of Envoy's rate limit service as documents.
//!
//! Envoy's lookup becomes conditions. The service walks down a tree; here each limit is a rule whose
//! condition says that the walk would end there: the values of the limit, and none of those that are looked
//! up before. A property test compares random files with the lookup of the service. A request is taken to
//! have every list of keys that leads to a limit and that it has values for, because the file does not say
//! which lists Envoy sends.

mod asked;
mod descriptors;
mod fields;
mod found;
mod meaning;
pub(crate) mod name;
mod question;
pub(crate) mod rate;
mod rules;
#[cfg(test)]
mod tests;
pub(crate) mod tree;
pub(crate) mod ways;
mod yaml;

pub use self::descriptors::Descriptors;

use self::found::Found;
use crate::document::Document;
use crate::reader::text_within_bounds;
use crate::{Diagnostic, PolicyError};

/// Reads a file of Envoy's rate limit service (`envoyproxy/ratelimit`) into a document.
///
/// The rules decide like the service. At each level of descriptors, an exact value takes precedence over a value
/// with `*`, and that over a key without a value. Each limit has a budget for each combination of values on its way.
/// `shadow_mode`, `unlimited`, `replaces` and `share_threshold` are supported. Limits are fixed windows aligned to the
/// Unix epoch, unless [`Descriptors::token_buckets`] is set. A month has 30 days, a year 365.
///
/// There are three differences:
///
/// - The file does not contain the descriptors of a request; Envoy's routes do. Here, a request has every list of keys
///   that leads to a limit and whose parts, according to [`Descriptors`], it has.
/// - A request that one limit refuses is charged by none. The service charges the other limits.
/// - An IPv6 address is cut to its first 64 bits.
///
/// `detailed_metric`, `value_to_metric` and `metadata` have no effect; [`read_yaml_with_warnings`] reports them.
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
///
/// # Errors
///
/// As [`read_yaml`].
pub fn read_yaml_with_warnings(
    text: &str,
    descriptors: &Descriptors,
) -> Result<(Document, Vec<Diagnostic>), PolicyError> {
    let text = text_within_bounds(text)?;
    let mut found = Found::default();
    let node = yaml::read(text, &mut found);
    let domain = node.and_then(|node| tree::domain(&node, &mut found));
    let document = domain.map(|domain| rules::document(&domain, descriptors, &mut found));
    let warnings = found.finish(text)?;
    // Without an error, there is a document.
    Ok((document.unwrap_or_default(), warnings))
}

/// Reads a file into its domain, without asking what its keys mean of an HTTP request.
pub(crate) fn read_domain(text: &str) -> Result<(tree::Domain, Vec<Diagnostic>), PolicyError> {
    let mut found = Found::default();
    let node = yaml::read(text, &mut found);
    let domain = node.and_then(|node| tree::domain(&node, &mut found));
    let warnings = found.finish(text)?;
    // Without an error, there is a domain.
    Ok((domain.unwrap_or_default(), warnings))
}
