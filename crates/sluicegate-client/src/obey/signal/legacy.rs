use std::time::Duration;

use http::HeaderMap;
use sfv::{Dictionary, ListEntry, Parser};
use smallvec::SmallVec;

use super::line::Line;
use super::{Quota, time};

/// Three fields that belong together. The reset is seconds from now, seconds after the epoch (GitHub, X), a duration such
/// as `6m0s` (OpenAI), or a time such as `2026-11-22T20:15:00Z` (Anthropic).
#[derive(Default)]
struct Dialect<'a> {
    remaining: Line<'a>,
    limit: Line<'a>,
    reset: Line<'a>,
}

/// The dialects: `X-RateLimit-*`, with `-Requests`, with `-Tokens`, `RateLimit-*` of the drafts before the seventh,
/// `X-Rate-Limit-*`, and `Anthropic-RateLimit-*` with `Requests`, `Tokens`, `Input-Tokens` and `Output-Tokens`.
const DIALECTS: usize = 9;
const REQUESTS: usize = 1;
const TOKENS: usize = 2;
const ANTHROPIC: [&str; 4] = ["requests", "tokens", "input-tokens", "output-tokens"];
const FIRST_OF_ANTHROPIC: usize = 5;

/// Reads the fields that services sent before there was a draft, and those of its first versions.
pub(super) fn read(
    headers: &HeaderMap,
    date: impl Fn() -> Duration,
    quotas: &mut SmallVec<[Quota; 2]>,
) {
    let mut dialects: [Dialect<'_>; DIALECTS] = Default::default();
    for (name, value) in headers {
        if let Some(line) = line(&mut dialects, name.as_str()) {
            line.add(value);
        }
    }
    for (number, dialect) in dialects.iter().enumerate() {
        let Some(remaining) = dialect.remaining.bytes().and_then(time::digits) else { continue };
        quotas.push(Quota {
            policy: number as u64,
            limit: dialect.limit.bytes().and_then(|line| time::digits(first_number(line))),
            window: None,
            remaining,
            reset: dialect.reset.text().and_then(|text| time::until_reset(text, &date)),
            counts_requests: number != TOKENS && number <= FIRST_OF_ANTHROPIC,
        });
    }
    quotas.extend(seventh_draft(headers));
}

/// Reads `RateLimit: limit=100, remaining=0, reset=30` (draft-ietf-httpapi-ratelimit-headers-07). Later drafts have a list
/// in the field of this name.
fn seventh_draft(headers: &HeaderMap) -> Option<Quota> {
    let line = Line::of(headers, "ratelimit").bytes()?;
    let members = Parser::new(line).parse::<Dictionary>().ok()?;
    let number = |key: &str| match members.get(key)? {
        ListEntry::Item(item) => u64::try_from(i64::from(item.bare_item.as_integer()?)).ok(),
        ListEntry::InnerList(_) => None,
    };
    Some(Quota {
        policy: DIALECTS as u64,
        limit: number("limit"),
        window: None,
        remaining: number("remaining")?,
        reset: number("reset").map(Duration::from_secs),
        counts_requests: true,
    })
}

/// The line that a field belongs to.
fn line<'d, 'a>(dialects: &'d mut [Dialect<'a>; DIALECTS], name: &str) -> Option<&'d mut Line<'a>> {
    let (dialect, part) = if let Some(rest) = name.strip_prefix("x-ratelimit-") {
        match rest.split_once('-') {
            Some((part, "requests")) => (REQUESTS, part),
            Some((part, "tokens")) => (TOKENS, part),
            _ => (0, rest),
        }
    } else if let Some(rest) = name.strip_prefix("ratelimit-") {
        (3, rest)
    } else if let Some(rest) = name.strip_prefix("anthropic-ratelimit-") {
        let (unit, part) = rest.rsplit_once('-')?;
        let number = ANTHROPIC.iter().position(|other| *other == unit)?;
        (FIRST_OF_ANTHROPIC + number, part)
    } else {
        (4, name.strip_prefix("x-rate-limit-")?)
    };
    let dialect = &mut dialects[dialect];
    match part {
        "remaining" => Some(&mut dialect.remaining),
        "limit" => Some(&mut dialect.limit),
        "reset" => Some(&mut dialect.reset),
        _ => None,
    }
}

/// The first number of `100, 100;w=60`, as older drafts wrote the limit.
fn first_number(line: &[u8]) -> &[u8] {
    let end = line.iter().position(|byte| matches!(byte, b',' | b';')).unwrap_or(line.len());
    line[..end].trim_ascii()
}
