//! A file of cases, checked.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use jiff::Timestamp;
use sluicegate_config::reader::{one_of, read_as, time};
use sluicegate_config::{Diagnostic, PolicyError, SourceMap};
use sluicegate_core::key::Claims;
use sluicegate_llm::{EstimatedTokens, Usage};
use sluicegate_server::DescribedRequest;

use super::expectation::Expectation;
use super::file;
use crate::virtual_time::micros;

/// The most requests of a case, so that a slip of the keyboard does not run for hours.
const MOST_REQUESTS: u64 = 10_000_000;

/// When a case begins unless it says otherwise: midnight of a Saturday, 2000-01-01.
const START: u64 = 946_684_800_000_000;

/// Where clocks of stores end, in the year 2255.
const LAST: u64 = 1 << 53;

/// A case.
pub(super) struct Case {
    pub(super) name: String,
    /// In microseconds since the Unix epoch, as all times.
    pub(super) start: u64,
    pub(super) senders: Vec<Sender>,
    pub(super) expect: Option<Expectation>,
}

/// The same request several times.
pub(super) struct Sender {
    pub(super) first: u64,
    pub(super) every: u64,
    pub(super) times: u64,
    /// What each client sends, with the name of the client.
    pub(super) requests: Vec<(Option<String>, DescribedRequest)>,
    pub(super) response: Response,
    pub(super) expect: Option<Expectation>,
}

/// What the service answers.
pub(super) struct Response {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) takes: u64,
    pub(super) cost: Option<u64>,
    pub(super) tokens: Option<Usage>,
}

/// Reads a file of cases for rules with limits of these names.
///
/// # Errors
///
/// Everything that is wrong with the file.
pub(super) fn read(path: &Path, limits: &[String]) -> Result<Vec<Case>, PolicyError> {
    let shown = path.display().to_string();
    let (file, source) = read_as::<file::File>(path)?;
    let mut reading = Reading {
        file: &shown,
        source: &source,
        clients: &file.clients,
        limits,
        problems: Vec::new(),
    };
    if file.cases.is_empty() {
        reading.report("cases", "there are no cases, so nothing could fail");
    }
    for (name, client) in &file.clients {
        let path = format!("clients.{name}");
        reading.address(client.ip.as_deref(), &path);
        reading.header_names(&client.headers, &path);
    }
    let cases = file.cases.iter().enumerate();
    let cases = cases.map(|(at, case)| reading.case(case, &format!("cases[{at}]"))).collect();
    match PolicyError::of(reading.problems) {
        Some(error) => Err(error.in_file(shown)),
        None => Ok(cases),
    }
}

/// Where the parts of a file are, and what is wrong with it so far.
pub(super) struct Reading<'a> {
    file: &'a str,
    source: &'a SourceMap,
    clients: &'a BTreeMap<String, file::Client>,
    limits: &'a [String],
    problems: Vec<Diagnostic>,
}

impl Reading<'_> {
    pub(super) fn report(&mut self, path: &str, what: impl Into<String>) {
        self.problems.push(self.source.diagnostic(path, what));
    }

    /// The file, line and column of a value.
    pub(super) fn place(&self, path: &str) -> String {
        let at = self.source.diagnostic(path, "");
        match (at.line(), at.column()) {
            (Some(line), Some(column)) => format!("{}:{line}:{column}", self.file),
            _ => self.file.to_owned(),
        }
    }

    /// Checks the name of a limit.
    pub(super) fn limit(&mut self, name: &str, path: &str) {
        if !self.limits.iter().any(|limit| limit == name) {
            let known = one_of(self.limits.iter()).unwrap_or_else(none);
            self.report(path, format!("the rules have no limit called `{name}`, expected {known}"));
        }
    }

    /// A duration, which may be zero.
    pub(super) fn time(&mut self, text: Option<&str>, path: &str) -> Option<Duration> {
        let text = text?;
        // A limit has no period of zero.
        let (is_zero, positive) = match text.trim_start().strip_prefix('0') {
            Some(rest) if !rest.starts_with(|next: char| next.is_ascii_digit() || next == '_') => {
                (true, format!("1{rest}"))
            }
            _ => (false, text.to_owned()),
        };
        let found = time(&positive);
        if found.is_none() {
            let what = "is not a duration, expected a number and a unit, such as `90 seconds` or `5 minutes`";
            self.report(path, format!("`{text}` {what}"));
        }
        if is_zero { Some(Duration::ZERO) } else { found }
    }

    fn case(&mut self, case: &file::Case, path: &str) -> Case {
        let start = case.start.as_deref().map_or(START, |text| {
            let start = text.parse::<Timestamp>().ok();
            let start = start.and_then(|start| u64::try_from(start.as_microsecond()).ok());
            start.unwrap_or_else(|| {
                let expected = "expected one since 1970 such as `2026-03-02T09:00:00+01:00`";
                self.report(
                    &format!("{path}.start"),
                    format!("`{text}` is not a time, {expected}"),
                );
                START
            })
        });
        if case.requests.is_empty() {
            self.report(&format!("{path}.requests"), "the case has no requests");
        }
        let requests = case.requests.iter().enumerate();
        let senders: Vec<_> = requests
            .map(|(at, request)| self.sender(request, start, &format!("{path}.requests[{at}]")))
            .collect();
        let count = senders.iter().map(|sender| {
            sender.times.saturating_mul(sender.requests.len().try_into().unwrap_or(u64::MAX))
        });
        if count.fold(0, u64::saturating_add) > MOST_REQUESTS {
            let what = format!("the case has more than {MOST_REQUESTS} requests");
            self.report(&format!("{path}.requests"), what);
        }
        let last = senders.iter().map(|sender| {
            let ends = sender.every.saturating_mul(sender.times.saturating_sub(1));
            sender.first.saturating_add(ends).saturating_add(sender.response.takes)
        });
        if last.max().is_some_and(|last| last >= LAST) {
            self.report(path, "the case goes on beyond the year 2255, where clocks end");
        }
        let expect = format!("{path}.expect");
        let expect = case.expect.as_ref().map(|it| Expectation::new(it, &expect, self));
        if expect.is_none() && senders.iter().all(|sender| sender.expect.is_none()) {
            self.report(path, "nothing is expected, so the case cannot fail: expected `expect`");
        }
        Case { name: case.name.clone(), start, senders, expect }
    }

    fn sender(&mut self, request: &file::Request, start: u64, path: &str) -> Sender {
        let at = self.time(request.at.as_deref(), &format!("{path}.at")).unwrap_or_default();
        let every = self.time(request.every.as_deref(), &format!("{path}.every"));
        let times = request.times.unwrap_or(1);
        if times == 0 {
            self.report(&format!("{path}.times"), "the request is never sent, expected at least 1");
        }
        if request.every.is_some() && times == 1 {
            let what = "the request is sent once: expected `times` beside `every`";
            self.report(&format!("{path}.every"), what);
        }
        let expect = format!("{path}.expect");
        let expect = request.expect.as_ref().map(|it| Expectation::new(it, &expect, self));
        Sender {
            first: start.saturating_add(micros(at)),
            every: micros(every.unwrap_or_default()),
            times,
            requests: self.requests(request, path),
            response: self.response(&request.response, &format!("{path}.response")),
            expect,
        }
    }

    /// The request of each client.
    fn requests(
        &mut self,
        request: &file::Request,
        path: &str,
    ) -> Vec<(Option<String>, DescribedRequest)> {
        let nobody = file::Client::default();
        let Some(names) = &request.client else {
            return vec![(None, self.request(request, &nobody, path))];
        };
        let clients = self.clients;
        let path_of_client = format!("{path}.client");
        if names.as_slice().is_empty() {
            self.report(&path_of_client, "no client sends the request: expected a name");
        }
        let mut requests = Vec::new();
        for name in names.as_slice() {
            let client = clients.get(name).unwrap_or_else(|| {
                let known = one_of(clients.keys()).unwrap_or_else(none);
                let what = format!("there is no client `{name}`, expected {known}");
                self.report(&path_of_client, what);
                &nobody
            });
            requests.push((Some(name.clone()), self.request(request, client, path)));
        }
        requests
    }

    fn request(
        &mut self,
        request: &file::Request,
        client: &file::Client,
        path: &str,
    ) -> DescribedRequest {
        self.header_names(&request.headers, path);
        let method = request.method.as_deref().unwrap_or("GET");
        if method.parse::<Method>().is_err() {
            self.report(&format!("{path}.method"), format!("`{method}` is not a method"));
        }
        let target = request.path.as_deref().unwrap_or("/");
        if !target.starts_with('/') && target != "*" {
            let what = format!("`{target}` is not a path, expected one that begins with `/`");
            self.report(&format!("{path}.path"), what);
        }
        let own = self.address(request.ip.as_deref(), path);
        let peer = own.or_else(|| client.ip.as_deref().and_then(|ip| ip.parse().ok()));
        // A field of the request takes the place of the client's.
        let is_own = |name: &str| request.headers.keys().any(|own| own.eq_ignore_ascii_case(name));
        let inherited = client.headers.iter().filter(|(name, _)| !is_own(name));
        let headers = inherited.chain(&request.headers);
        let claims = client.claims.iter().chain(&request.claims);
        let mut described = DescribedRequest {
            method: method.to_owned(),
            host: request.host.clone(),
            route: request.route.clone(),
            peer,
            headers: headers
                .map(|(name, value)| (name.clone(), value.clone().into_bytes()))
                .collect(),
            claims: claims.fold(Claims::new(), |claims, (name, value)| {
                claims.with(name.clone(), value.clone())
            }),
            tokens: request.tokens.map(|tokens| EstimatedTokens::new(tokens.input, tokens.output)),
            ..DescribedRequest::default()
        };
        described.set_target(target);
        described
    }

    fn response(&mut self, response: &file::Response, path: &str) -> Response {
        let mut headers = HeaderMap::new();
        for (name, value) in &response.headers {
            match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                (Ok(name), Ok(value)) => drop(headers.insert(name, value)),
                _ => self.report(
                    &format!("{path}.headers"),
                    format!("`{name}: {value}` is not a header field"),
                ),
            }
        }
        let status = response.status.unwrap_or(200);
        let status = Some(status).filter(|status| matches!(status, 200..=599));
        let status = status.and_then(|status| StatusCode::from_u16(status).ok());
        if status.is_none() {
            let what = "this is not the status of a response, expected one from 200 to 599";
            self.report(&format!("{path}.status"), what);
        }
        let takes = self.time(response.takes.as_deref(), &format!("{path}.takes"));
        Response {
            status: status.unwrap_or_default(),
            headers,
            takes: micros(takes.unwrap_or_default()),
            cost: response.cost,
            tokens: response
                .tokens
                .map(|used| Usage::new(used.input, used.output).cached(used.cached)),
        }
    }

    fn address(&mut self, text: Option<&str>, path: &str) -> Option<std::net::IpAddr> {
        let address = text?.parse().ok();
        if address.is_none() {
            let what = format!("`{}` is not an address", text.unwrap_or_default());
            self.report(&format!("{path}.ip"), what);
        }
        address
    }

    fn header_names(&mut self, headers: &BTreeMap<String, String>, path: &str) {
        for name in headers.keys().filter(|name| HeaderName::try_from(*name).is_err()) {
            let what = format!("`{name}` is not the name of a header field");
            self.report(&format!("{path}.headers"), what);
        }
    }
}

fn none() -> String {
    "none: there are none".to_owned()
}
