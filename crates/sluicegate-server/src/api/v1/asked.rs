//! What clients send.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;
use sluicegate_core::key::Claims;
use utoipa::ToSchema;

use crate::api::object::Object;
use crate::request::DescribedRequest;

/// A request, described as far as the rules look at it.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[schema(as = Request)]
pub(super) struct Asked {
    /// The method, such as `GET`.
    method: String,
    /// The path, such as `/users/7`. A query may follow it.
    #[schema(example = "/users/7")]
    path: String,
    /// The query without its `?`, if it is not in the path.
    query: Option<String>,
    /// The host that the request is for.
    host: Option<String>,
    /// The pattern of the route, such as `/users/{id}`.
    route: Option<String>,
    /// The address of the client.
    #[schema(value_type = Option<String>, example = "192.0.2.7")]
    ip: Option<IpAddr>,
    /// Header fields.
    headers: BTreeMap<String, String>,
    /// What your authentication found out about the client, such as its plan.
    claims: BTreeMap<String, String>,
    /// What the request costs, instead of what the rules say.
    pub(super) cost: Option<u64>,
    /// Asks for a ticket with which the cost is settled later. A place of a concurrency limit is held until then.
    pub(super) reserve: bool,
}

impl Asked {
    /// The request that rules see.
    ///
    /// # Errors
    ///
    /// If there are two queries.
    pub(super) fn described(&self) -> Result<DescribedRequest, &'static str> {
        let claims = self.claims.iter();
        let (path, query) = match self.path.split_once('?') {
            None => (self.path.as_str(), self.query.as_deref()),
            Some((path, query)) if self.query.is_none() => (path, Some(query)),
            Some(_) => return Err("there is a query in `path` and one in `query`: expected one"),
        };
        Ok(DescribedRequest {
            method: self.method.clone(),
            path: if path.is_empty() { "/".to_owned() } else { path.to_owned() },
            query: query.map(str::to_owned),
            host: self.host.clone(),
            route: self.route.clone(),
            peer: self.ip,
            headers: self.headers.clone().into_iter().collect(),
            claims: claims.fold(Claims::new(), |claims, (name, value)| {
                claims.with(name.clone(), value.clone())
            }),
        })
    }
}

/// Several requests, each decided by itself.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Batch {
    /// At most 100.
    #[schema(max_items = 100)]
    #[schema(value_type = Vec<Asked>)]
    pub(super) requests: Vec<Object<Asked>>,
}

/// The most requests in a batch.
pub(super) const MOST_IN_BATCH: usize = 100;

/// What a reserved request cost in the end.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Settlement {
    /// The ticket of the request.
    pub(super) ticket: String,
    /// What it cost. 0 gives everything back; more than was reserved is charged, beyond the limit if need be, but at
    /// most ten times what was reserved or what the limit holds.
    pub(super) spent: u64,
}
