use std::time::Duration;

use http::{HeaderMap, HeaderName};
use smallvec::SmallVec;

use super::fields::{Fields, Line};
use super::item::Items;
use super::{Quota, plain, structured};

static RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
static RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Reads `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-11). False if there is no `RateLimit`
/// field that can be read.
pub(super) fn read(
    headers: &HeaderMap,
    fields: &Fields<'_>,
    quotas: &mut SmallVec<[Quota; 2]>,
) -> bool {
    let mut standings = Items::new();
    read_field(headers, &RATE_LIMIT, fields.draft, &mut standings);
    if standings.is_empty() {
        return false;
    }
    let mut policies = Items::new();
    read_field(headers, &RATE_LIMIT_POLICY, fields.policy, &mut policies);
    for item in &standings {
        // An item without `r` says nothing.
        let Some(remaining) = item.remaining else { continue };
        let of_item = || policies.iter().filter(|policy| policy.id == item.id);
        // Places are given back when responses end: neither spreading nor waiting for a reset is right for them.
        if of_item().any(|policy| policy.counts_places) {
            continue;
        }
        let policy = of_item().find(|policy| policy.limit.is_some());
        quotas.push(Quota {
            policy: item.id,
            limit: policy.and_then(|policy| policy.limit),
            window: policy.and_then(|policy| policy.window).map(Duration::from_secs),
            remaining,
            reset: item.reset.map(Duration::from_secs),
            counts_requests: policy.is_none_or(|policy| policy.counts_requests),
        });
    }
    true
}

/// Reads the items of a field over all its lines. None if one line is malformed, which makes the field malformed.
fn read_field(headers: &HeaderMap, name: &HeaderName, line: Line<'_>, items: &mut Items) {
    let is_read = match line {
        Line::Missing => true,
        Line::Once(value) => read_line(value.as_bytes(), items),
        Line::Again => headers.get_all(name).iter().all(|line| read_line(line.as_bytes(), items)),
    };
    if !is_read {
        items.clear();
    }
}

/// Reads the items of a line. False if it is malformed.
fn read_line(line: &[u8], items: &mut Items) -> bool {
    let before = items.len();
    plain::read(line, items).is_some() || {
        items.truncate(before);
        structured::read(line, items)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PIECES: [&str; 30] = [
        "\"a\"",
        "\"b c\"",
        "\"a\\\"\"",
        "\"",
        "a",
        ";r=",
        ";t=",
        ";q=",
        ";w=",
        "; r=",
        ";qu=",
        ";pk=",
        ";x=",
        ";x",
        "r",
        "=",
        "0",
        "7",
        "999999999999999",
        "1234567890123456",
        "-1",
        "0.5",
        ",",
        ", ",
        " ",
        "\t",
        "\"requests\"",
        "\"concurrent-requests\"",
        ":YQ==:",
        "(",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn a_plain_line_means_what_it_means_as_a_structured_field(
            pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..12),
            begins in any::<bool>(),
        ) {
            let line = (if begins { "\"a\";r=1" } else { "" }).to_owned() + &pieces.concat();
            let (mut quick, mut whole) = (Items::new(), Items::new());
            let is_well_formed = structured::read(line.as_bytes(), &mut whole);
            if plain::read(line.as_bytes(), &mut quick).is_some() {
                prop_assert!(is_well_formed, "{line}");
                prop_assert_eq!(quick, whole, "{}", line);
            }
        }
    }

    #[test]
    fn what_servers_send_is_plain() {
        for line in [
            r#""100/minute";r=99;t=1"#,
            r#""burst";q=100;w=60, "daily"; q=1000;w=86400;qu="content-bytes""#,
        ] {
            assert!(plain::read(line.as_bytes(), &mut Items::new()).is_some(), "{line}");
        }
    }
}
