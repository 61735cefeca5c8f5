//! `sluicegate check`

mod request;

use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use sluicegate_config::envoy::service::{Domain, Rule};
use sluicegate_config::proxy::Upstream;
use sluicegate_config::reader::text_of;
use sluicegate_config::{Environment, Live, PolicyFile};
use sluicegate_core::adapter::{Charge, Debit};
use sluicegate_core::rule::Rule as _;
use sluicegate_server::capacity::Capacities;
use sluicegate_server::{DescribedRequest, Policies};

use self::request::Example;
use crate::policies::{Kind, PolicyFiles};
use crate::terminal::{print, readable};

/// Reports what policy files say, and everything that is wrong with them.
///
/// Errors, and what is probably a mistake, come with line and column. If a request is given, the report says what it
/// would be charged. Exits with 1 if a file is not valid.
#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    files: PolicyFiles,
    /// Checks files of Envoy's service for a server with `--envoy-merge`: several may have one domain.
    #[arg(long, requires = "envoy")]
    envoy_merge: bool,
    #[command(flatten)]
    example: Example,
}

/// A file that is not valid, or a report that cannot be written. It was reported.
#[derive(Debug)]
struct Invalid;

pub(crate) fn run(options: &Check) -> ExitCode {
    let Check { files, envoy_merge, example } = options;
    let rules = files.rules.iter().map(|path| {
        Kind::Rules.expect(path).map_err(report)?;
        check_rules(path, example)
    });
    let domains = files.envoy.iter().map(|path| each_domain(path, example));
    let capacity = files.capacity.iter().map(|path| {
        Kind::Capacity.expect(path).map_err(report)?;
        check_capacity(path)
    });
    let mut checked: Vec<_> = rules.chain(capacity).collect();
    let domains: Vec<_> = domains.collect();
    let is_each_valid = domains.iter().all(Result::is_ok);
    checked.extend(domains);
    checked.push(together(&files.envoy, *envoy_merge, is_each_valid));
    if checked.iter().all(Result::is_ok) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Checks a file of Envoy's service, or each file of a directory.
fn each_domain(path: &Path, example: &Example) -> Result<(), Invalid> {
    Kind::Envoy.expect(path).map_err(report)?;
    let files = Policies::files(path).map_err(report)?;
    let checked: Vec<_> = files.iter().map(|file| check_domain(file, example)).collect();
    checked.into_iter().collect()
}

/// Checks what only all files together can have wrong, as a server reads them: two with the same domain, or what they say
/// of it if they are merged.
fn together(files: &[PathBuf], merges: bool, is_each_valid: bool) -> Result<(), Invalid> {
    if files.is_empty() {
        return Ok(());
    }
    let read = files.iter().try_fold(Policies::new().merge_domains(merges), Policies::envoy);
    match read {
        Err(error) if is_each_valid || error.is_of_several_files() => Err(report(error)),
        // Everything else was reported with its file.
        _ => Ok(()),
    }
}

/// The text of a file.
fn text(path: &Path) -> Result<String, Invalid> {
    text_of(path).map_err(|error| {
        report(format_args!("{}: the file cannot be read: {error}", path.display()))
    })
}

/// Says a line or more on standard output. What is quoted of a file does nothing to the terminal.
fn say(what: impl Display) -> Result<(), Invalid> {
    let text = readable(&format!("{what}\n"));
    print(text.as_bytes()).map_err(|error| report(format_args!("cannot write the report: {error}")))
}

/// Says what is wrong.
fn report(problems: impl Display) -> Invalid {
    eprintln!("{}", readable(&problems.to_string()));
    Invalid
}

/// Checks a file of capacity.
fn check_capacity(path: &Path) -> Result<(), Invalid> {
    let shown = path.display();
    let text = text(path)?;
    let capacities =
        Capacities::read(&text).map_err(|problems| report(problems.in_file(shown.to_string())))?;
    say(format_args!("{shown}:"))?;
    capacities.describe().iter().try_for_each(|line| say(format_args!("  {line}")))
}

/// Checks a file of Envoy's rate limit service.
fn check_domain(path: &Path, example: &Example) -> Result<(), Invalid> {
    let shown = path.display();
    let text = text(path)?;
    let (domain, warnings) =
        Domain::read(&text).map_err(|problems| report(problems.in_file(shown.to_string())))?;
    say(format_args!("{shown}: {}", words_of(&domain)))?;
    for warning in &warnings {
        say(format_args!("{shown}:{warning}"))?;
    }
    for entries in example.descriptors() {
        let said: Vec<_> = entries.iter().map(|(key, value)| format!("{key}={value}")).collect();
        say(format_args!("  {} meets {}", said.join(","), met(domain.rule(&entries))))?;
    }
    if domain.is_meant() {
        return Ok(());
    }
    Err(report(format_args!(
        "{shown}: no descriptor has a `rate_limit`: say `descriptors: []` if there are to be no limits"
    )))
}

fn words_of(domain: &Domain) -> String {
    let rules = domain.len();
    format!("domain {:?}, {rules} limit{}", domain.name(), if rules == 1 { "" } else { "s" })
}

fn met(rule: Option<&Rule>) -> String {
    match rule {
        None => "no limit".to_owned(),
        Some(rule) => rule.to_string(),
    }
}

/// Where a proxy would listen and what for, and what is probably a mistake, as lines of a report.
fn described(policies: &sluicegate_config::Policies) -> Vec<String> {
    let (listen, upstream) = match (policies.listen(), policies.upstream()) {
        (None, None) => return Vec::new(),
        (Some(_), None) => return vec!["warning: `[listen]` without `[upstream]`".to_owned()],
        (None, Some(_)) => return vec!["warning: `[upstream]` without `[listen]`".to_owned()],
        (Some(listen), Some(upstream)) => (listen, upstream),
    };
    let scheme = if upstream.tls.is_some() { "https" } else { "http" };
    let tls = if listen.tls.is_some() { " with TLS" } else { "" };
    let version = if upstream.http2 { " in HTTP/2" } else { "" };
    let mut lines = vec![format!(
        "a proxy listens at {}{tls}, for {scheme}://{}{version}",
        listen.address, upstream.authority
    )];
    if is_itself(listen.address, upstream) {
        let what = "the application is at the address of the proxy: requests go in a circle";
        lines.push(format!("warning: {what}"));
    }
    lines
}

/// Whether the application is where the proxy listens.
fn is_itself(address: SocketAddr, upstream: &Upstream) -> bool {
    let default = if upstream.tls.is_some() { 443 } else { 80 };
    let (host, port) = match upstream.authority.rsplit_once(':') {
        // The colons of an address of IPv6 are inside of brackets.
        Some((host, port)) if !port.contains(']') => (host, port.parse().unwrap_or(default)),
        _ => (&*upstream.authority, default),
    };
    let host = host.trim_matches(['[', ']']);
    let at = host.parse::<IpAddr>().ok();
    let is_here = host.eq_ignore_ascii_case("localhost") || at.is_some_and(|at| at.is_loopback());
    port == address.port()
        && (at == Some(address.ip())
            || (is_here && (address.ip().is_unspecified() || address.ip().is_loopback())))
}

/// Checks a file of rules.
fn check_rules(path: &Path, example: &Example) -> Result<(), Invalid> {
    let looked = sluicegate_config::check(PolicyFile::new(path)).map_err(report)?;
    // Neither command has anything to offer to a file that names functions of a service.
    let live = Live::open(path, Environment::new());
    // The proxies that ask `serve` say who their clients are, and an option names them. `sluicegate proxy` has the file
    // alone.
    let is_served = live.as_ref().is_ok_and(|live| live.policies().upstream().is_none());
    say(if is_served { looked.knows_addresses() } else { looked })?;
    let live = live.map_err(report)?;
    for line in described(&live.policies()) {
        say(line)?;
    }
    if is_served && live.policies().counts_tokens() {
        say(TOKENS)?;
    }
    if is_served && live.throttle().is_some() {
        // Says why `serve` would not start.
        Policies::new().rules(path).map_err(report)?;
    }
    for cases in cases_beside(path) {
        let (cases, rules) = (cases.display(), path.display());
        say(format_args!("cases to test it: sluicegate test {cases} --rules {rules}"))?;
    }
    example.request().map_or(Ok(()), |request| explain(&live, &request))
}

/// The files beside a file of rules whose names end in `cases.toml` or `cases.json`, in order.
fn cases_beside(rules: &Path) -> Vec<PathBuf> {
    let directory = match rules.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.map(|entry| PathBuf::from(entry.file_name()));
    let is_cases = |name: &PathBuf| {
        let name = name.to_string_lossy();
        name.ends_with("cases.toml") || name.ends_with("cases.json")
    };
    let beside = names.filter(is_cases).map(|name| rules.with_file_name(name));
    let mut cases: Vec<_> = beside.filter(|cases| cases != rules && cases.is_file()).collect();
    cases.sort();
    cases
}

const TOKENS: &str = "warning: a rule counts tokens. `sluicegate proxy` reads them in bodies. `sluicegate serve` knows them only from \
                      clients of `POST /v1/take`, not where a proxy asks it about requests.";

/// Tells what a request is charged.
fn explain(rules: &Live, request: &DescribedRequest) -> Result<(), Invalid> {
    let what = format!("\n{} {}", request.method, request.path);
    let mut charge = Charge::new();
    match rules.charge(&request.view(), &mut charge) {
        Err(missing) if missing.is_client() => {
            say(format_args!("{what} is answered with 400: {missing}"))
        }
        Err(missing) => {
            say(format_args!("{what} cannot be decided: {missing}"))?;
            Err(Invalid)
        }
        Ok(()) if charge.is_empty() => say(format_args!("{what} is charged by no limit")),
        Ok(()) => {
            say(format_args!("{what} is charged:"))?;
            for debit in charge.debits() {
                let Debit { limit, cost, .. } = debit;
                say(format_args!("  {cost} by {}: {}", limit.name(), words(limit)))?;
            }
            Ok(())
        }
    }
}

/// A limit without its name.
pub(crate) fn words(limit: &sluicegate_core::Limit) -> String {
    let text = limit.to_string();
    let name = limit.own_name().map(|name| format!(" named {name:?}"));
    text.replace(&name.unwrap_or_default(), "").replace(" carried", "")
}
