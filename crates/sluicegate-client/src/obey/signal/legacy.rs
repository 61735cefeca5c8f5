use std::time::Duration;

use http::{HeaderMap, HeaderName};
use smallvec::SmallVec;

use super::{Quota, date, line, time};

const fn name(name: &'static str) -> HeaderName {
    HeaderName::from_static(name)
}

/// The names of three fields that belong together, and whether they count requests.
struct Dialect {
    remaining: HeaderName,
    limit: HeaderName,
    reset: HeaderName,
    counts_requests: bool,
}

/// The dialects, the most frequent first. The reset is seconds from now, seconds after the epoch (GitHub, X), or a
/// duration such as `6m0s` (OpenAI).
static DIALECTS: [Dialect; 5] = [
    Dialect {
        remaining: name("x-ratelimit-remaining"),
        limit: name("x-ratelimit-limit"),
        reset: name("x-ratelimit-reset"),
        counts_requests: true,
    },
    Dialect {
        remaining: name("x-ratelimit-remaining-requests"),
        limit: name("x-ratelimit-limit-requests"),
        reset: name("x-ratelimit-reset-requests"),
        counts_requests: true,
    },
    Dialect {
        remaining: name("x-ratelimit-remaining-tokens"),
        limit: name("x-ratelimit-limit-tokens"),
        reset: name("x-ratelimit-reset-tokens"),
        counts_requests: false,
    },
    // The drafts before the eighth.
    Dialect {
        remaining: name("ratelimit-remaining"),
        limit: name("ratelimit-limit"),
        reset: name("ratelimit-reset"),
        counts_requests: true,
    },
    Dialect {
        remaining: name("x-rate-limit-remaining"),
        limit: name("x-rate-limit-limit"),
        reset: name("x-rate-limit-reset"),
        counts_requests: true,
    },
];

/// Reads the fields that services sent before there was a draft.
pub(super) fn read(headers: &HeaderMap, since_epoch: Duration, quotas: &mut SmallVec<[Quota; 2]>) {
    for (number, dialect) in DIALECTS.iter().enumerate() {
        let remaining = line(headers, &dialect.remaining);
        let Some(remaining) = remaining.and_then(|text| time::digits(text.as_bytes())) else {
            continue;
        };
        let reset = line(headers, &dialect.reset)
            .and_then(|text| time::until_reset(text, date(headers, since_epoch)));
        let limit = line(headers, &dialect.limit);
        quotas.push(Quota {
            policy: number as u64,
            limit: limit.and_then(|text| time::digits(first_number(text).as_bytes())),
            window: None,
            remaining,
            reset,
            counts_requests: dialect.counts_requests,
        });
    }
}

/// The first number of `100, 100;w=60`, as older drafts wrote the limit.
fn first_number(text: &str) -> &str {
    text.split([',', ';']).next().unwrap_or_default().trim()
}
