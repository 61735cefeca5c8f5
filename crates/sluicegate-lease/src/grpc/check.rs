use std::collections::HashSet;
use std::fmt;

use tonic::Status;

use super::wire::Unreadable;
use crate::message::{Release, Request};
use crate::pool::{AskError, MAX_NAME};

/// Finds what cannot be right in a request before anything is changed.
pub(super) fn check_request(request: &Request, max_resources: usize) -> Result<(), Invalid> {
    check_resources(
        &request.client,
        request.resources.iter().map(|resource| &*resource.resource),
        max_resources,
    )?;
    for resource in &request.resources {
        request
            .ask(resource)
            .check()
            .map_err(|error| Invalid::Ask { resource: resource.resource.clone(), error })?;
    }
    Ok(())
}

/// Finds what cannot be right in a release.
pub(super) fn check_release(release: &Release, max_resources: usize) -> Result<(), Invalid> {
    let resources = release.resources.iter().map(|resource| &**resource);
    check_resources(&release.client, resources, max_resources)
}

fn check_resources<'a>(
    client: &str,
    resources: impl ExactSizeIterator<Item = &'a str>,
    max: usize,
) -> Result<(), Invalid> {
    if client.is_empty() {
        return Err(Invalid::NoClient);
    }
    if client.len() > MAX_NAME {
        return Err(Invalid::LongClient);
    }
    if !(1..=max).contains(&resources.len()) {
        return Err(Invalid::Resources { count: resources.len(), max });
    }
    let mut seen = HashSet::with_capacity(resources.len());
    for resource in resources {
        if !seen.insert(resource) {
            return Err(Invalid::Twice(resource.into()));
        }
    }
    Ok(())
}

/// Why a request cannot be right. Nothing has changed.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Invalid {
    NoClient,
    LongClient,
    Resources { count: usize, max: usize },
    Twice(Box<str>),
    Ask { resource: Box<str>, error: AskError },
    Message(Unreadable),
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoClient => f.write_str("the request names no client"),
            Self::LongClient => write!(f, "the name of the client is longer than {MAX_NAME} bytes"),
            Self::Resources { count, max } => {
                write!(f, "a request is for 1 to {max} resources; this one is for {count}")
            }
            Self::Twice(resource) => write!(f, "the request names `{resource}` twice"),
            Self::Ask { resource, error } if resource.len() > MAX_NAME || resource.is_empty() => {
                error.fmt(f)
            }
            Self::Ask { resource, error } => write!(f, "`{resource}`: {error}"),
            Self::Message(unreadable) => unreadable.fmt(f),
        }
    }
}

impl From<Unreadable> for Invalid {
    fn from(unreadable: Unreadable) -> Self {
        Self::Message(unreadable)
    }
}

impl From<Invalid> for Status {
    fn from(invalid: Invalid) -> Self {
        Self::invalid_argument(invalid.to_string())
    }
}
