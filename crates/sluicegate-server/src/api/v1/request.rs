//! What clients send.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use sluicegate_core::key::Claims;
use sluicegate_llm::{EstimatedTokens, Usage};
use utoipa::ToSchema;

use crate::api::read::{Object, text, text_or_nothing, unique_fields, unique_texts};
use crate::request::DescribedRequest;

/// A request, described as far as the rules look at it.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[schema(as = Request)]
pub(super) struct TakeRequest {
    /// The method, such as `GET`.
    #[serde(deserialize_with = "text")]
    method: String,
    /// The path as the client sent it, such as `/users/7`, and not decoded. A query may follow it. What a target of HTTP
    /// may have besides is left out: a scheme and a host in front, and a fragment.
    #[schema(example = "/users/7")]
    #[serde(deserialize_with = "text")]
    path: String,
    /// The query without its `?`, if it is not in the path.
    #[serde(deserialize_with = "text_or_nothing")]
    query: Option<String>,
    /// The host that the request is for.
    #[serde(deserialize_with = "text_or_nothing")]
    host: Option<String>,
    /// The pattern of the route, such as `/users/{id}`.
    #[serde(deserialize_with = "text_or_nothing")]
    route: Option<String>,
    /// The address of the client.
    #[schema(value_type = Option<String>, example = "192.0.2.7")]
    ip: Option<IpAddr>,
    /// Header fields, each once. 1,000 at most.
    #[schema(value_type = BTreeMap<String, String>)]
    #[serde(deserialize_with = "unique_fields")]
    headers: BTreeMap<String, Vec<u8>>,
    /// What your authentication found out about the client, such as its plan. 1,000 at most.
    #[serde(deserialize_with = "unique_texts")]
    claims: BTreeMap<String, String>,
    /// How many tokens of a language model the request may use, for rules with `cost = { tokens = ".." }`.
    tokens: Option<ExpectedTokens>,
    /// What the request costs, instead of what the rules say.
    pub(super) cost: Option<u64>,
    /// Asks for a ticket with which the cost is settled later. A place of a concurrency limit is held until then.
    pub(super) reserve: bool,
}

impl TakeRequest {
    /// The request that rules see.
    ///
    /// # Errors
    ///
    /// If there are two queries.
    pub(super) fn described(self) -> Result<DescribedRequest, &'static str> {
        let mut described = DescribedRequest {
            method: self.method,
            host: self.host,
            route: self.route,
            peer: self.ip,
            headers: self.headers.into_iter().collect(),
            tokens: self.tokens.map(|tokens| EstimatedTokens::new(tokens.input, tokens.output)),
            claims: self
                .claims
                .into_iter()
                .fold(Claims::new(), |claims, (name, value)| claims.with(name, value)),
            ..DescribedRequest::default()
        };
        described.set_target(&self.path);
        match (&described.query, self.query) {
            (Some(_), Some(_)) => {
                return Err("there is a query in `path` and one in `query`: expected one");
            }
            (None, query) => described.query = query,
            (Some(_), None) => {}
        }
        Ok(described)
    }
}

/// Tokens that a request may use.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ExpectedTokens {
    /// Of the request.
    input: u64,
    /// The most that the answer may have.
    output: u64,
}

/// Tokens that a request used.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct UsedTokens {
    /// Of the request, including `cached`.
    input: u64,
    /// Of the answer.
    output: u64,
    /// The part of `input` that the model read from its cache.
    cached: u64,
}

impl From<UsedTokens> for Usage {
    fn from(UsedTokens { input, output, cached }: UsedTokens) -> Self {
        Self::new(input, output).cached(cached)
    }
}

/// Several requests, each decided by itself.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Batch {
    /// At most 100.
    #[schema(max_items = 100)]
    #[schema(value_type = Vec<TakeRequest>)]
    pub(super) requests: Vec<Object<TakeRequest>>,
}

/// The most requests in a batch.
pub(super) const MOST_IN_BATCH: usize = 100;

/// What a reserved request cost in the end: either `spent` or `tokens`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Settlement {
    /// The ticket of the request.
    pub(super) ticket: String,
    /// What it cost. 0 gives everything back; more than was reserved is charged, beyond the limit if need be.
    pub(super) spent: Option<u64>,
    /// The tokens that it used. They settle the rules with `settle = { tokens = ".." }`; other rules keep their charge, or
    /// are settled as by a response of 200.
    pub(super) tokens: Option<UsedTokens>,
}
