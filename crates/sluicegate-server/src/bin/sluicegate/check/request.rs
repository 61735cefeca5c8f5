//! The options that describe a request.

use std::net::IpAddr;

use clap::Args;
use sluicegate_core::key::Claims;
use sluicegate_server::DescribedRequest;

/// A request to explain: a described one by rules, descriptors by files of Envoy's service.
#[derive(Debug, Args)]
#[command(next_help_heading = "A request to explain")]
pub(super) struct Example {
    /// Its method, such as `POST`.
    #[arg(long, value_name = "METHOD", requires = "rules")]
    method: Option<String>,
    /// Its path, and its query if it has one, such as `/search?q=x`.
    #[arg(long, value_name = "PATH", requires = "rules")]
    path: Option<String>,
    /// The host that it is for.
    #[arg(long, value_name = "HOST", requires = "rules")]
    host: Option<String>,
    /// The address of the client.
    #[arg(long, value_name = "ADDRESS", requires = "rules")]
    ip: Option<IpAddr>,
    /// A header field, such as `x-api-key: abc`. May be given several times.
    #[arg(long, value_name = "NAME: VALUE", requires = "rules", value_parser = pair::<':'>)]
    header: Vec<Pair>,
    /// What your authentication found out, such as `plan=free`. May be given several times.
    #[arg(long, value_name = "NAME=VALUE", requires = "rules", value_parser = pair::<'='>)]
    claim: Vec<Pair>,
    /// A descriptor of Envoy: keys and values in order, such as `user=alice,path=/x`. May be given several times.
    #[arg(long, value_name = "KEY=VALUE,..", requires = "envoy", value_parser = entries)]
    descriptor: Vec<Vec<Pair>>,
}

impl Example {
    /// The request, if one is given.
    pub(super) fn request(&self) -> Option<DescribedRequest> {
        let Self { method, path, host, ip, header, claim, descriptor: _ } = self;
        let is_given = method.is_some()
            || path.is_some()
            || host.is_some()
            || ip.is_some()
            || !header.is_empty()
            || !claim.is_empty();
        let mut request = DescribedRequest {
            method: method.clone().unwrap_or_else(|| "GET".to_owned()),
            host: host.clone(),
            peer: *ip,
            headers: header
                .iter()
                .map(|(name, value)| (name.clone(), value.clone().into_bytes()))
                .collect(),
            claims: claim.iter().fold(Claims::new(), |claims, (name, value)| {
                claims.with(name.clone(), value.clone())
            }),
            ..DescribedRequest::default()
        };
        request.set_target(path.as_deref().unwrap_or("/"));
        is_given.then_some(request)
    }

    /// The descriptors.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = Vec<(&str, &str)>> {
        self.descriptor.iter().map(|entries| {
            entries.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect()
        })
    }
}

/// A name and a value.
type Pair = (String, String);

/// Reads a name and a value.
fn pair<const BETWEEN: char>(text: &str) -> Result<Pair, String> {
    let (name, value) = text
        .split_once(BETWEEN)
        .filter(|(name, _)| !name.trim().is_empty())
        .ok_or_else(|| format!("expected a name and a value with `{BETWEEN}` between them"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// Reads the entries of a descriptor.
fn entries(text: &str) -> Result<Vec<Pair>, String> {
    text.split(',').map(pair::<'='>).collect()
}
