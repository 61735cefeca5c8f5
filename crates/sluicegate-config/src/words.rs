//! Parts of a document in words.

use std::fmt::{self, Display, Formatter};

use crate::document::{
    Amount, Case, Condition, Cost, Expected, Hours, Key, Load, Reject, Rule, Settle, SettleTable,
    Texts,
};

/// Prints a part of a document in words: "header `x-api-key` or else address" for a key.
pub(crate) struct InWords<'a, T>(pub(crate) &'a T);

impl Display for InWords<'_, Key> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Key::Ip => f.write_str("address"),
            Key::Route => f.write_str("route"),
            Key::Method => f.write_str("method"),
            Key::Path => f.write_str("path"),
            Key::Host => f.write_str("host"),
            Key::Global => f.write_str("nothing: one budget for all requests"),
            Key::Country => f.write_str("country"),
            Key::Region => f.write_str("region"),
            Key::Header(name) => write!(f, "header `{name}`"),
            Key::Cookie(name) => write!(f, "cookie `{name}`"),
            Key::Query(name) => write!(f, "query `{name}`"),
            Key::Claim(name) => write!(f, "claim `{name}`"),
            Key::Const(text) => write!(f, "the constant `{text}`"),
            Key::First(keys) => joined(f, keys, " or else "),
            Key::Optional(key) => write!(f, "{}, if present", InWords(&**key)),
            Key::All(keys) => joined(f, keys, " and "),
        }
    }
}

impl Display for InWords<'_, Condition> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // Field by field, so that the compiler asks for words for a new one.
        let Condition {
            method,
            path,
            route,
            host,
            header,
            cookie,
            query,
            claim,
            network,
            country,
            region,
            hours,
            not,
            any,
            wildcards,
        } = self.0;
        let mut parts = Vec::new();
        let lists = [
            ("method", method),
            ("path", path),
            ("route", route),
            ("host", host),
            ("network", network),
            ("country", country),
            ("region", region),
        ];
        for (name, texts) in lists {
            parts.extend(texts.as_ref().map(|texts| format!("{name} {}", InWords(texts))));
        }
        for (kind, values) in
            [("header", header), ("query", query), ("cookie", cookie), ("claim", claim)]
        {
            let words = |(name, expected)| format!("{kind} `{name}` {}", InWords(expected));
            parts.extend(values.iter().map(words));
        }
        parts.extend(hours.as_ref().map(hours_in_words));
        parts.extend(wildcards.iter().map(|wildcard| {
            format!("{} is like `{}`", InWords(&wildcard.key), wildcard.patterns.join("` or `"))
        }));
        parts.extend(not.as_ref().map(|not| format!("not ({})", InWords(&**not))));
        if !any.is_empty() {
            let any: Vec<_> = any.iter().map(|any| InWords(any).to_string()).collect();
            parts.push(format!("({})", any.join(") or (")));
        }
        match parts.as_slice() {
            [] => f.write_str("always"),
            _ => f.write_str(&parts.join(", ")),
        }
    }
}

fn hours_in_words(spec: &Hours) -> String {
    let mut words = Vec::new();
    words.extend(spec.between.as_ref().map(|times| times.join(" to ")));
    if !spec.on.is_empty() {
        let days: Vec<_> = spec.on.iter().map(|day| format!("{day:?}").to_lowercase()).collect();
        words.push(format!("on {}", days.join(" ")));
    }
    words.extend(spec.zone.as_ref().map(|zone| format!("in {zone}")));
    words.join(" ")
}

impl Display for InWords<'_, Texts> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.as_slice().join(" or "))
    }
}

impl Display for InWords<'_, Expected> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Expected::Present(true) => f.write_str("is present"),
            Expected::Present(false) => f.write_str("is absent"),
            Expected::Equal(text) => write!(f, "is `{text}`"),
            Expected::Any(texts) => write!(f, "is `{}`", texts.join("` or `")),
        }
    }
}

impl Display for InWords<'_, Case> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let when = self.0.when.as_ref().map(|when| format!("where {}", InWords(when)));
        let load = self.0.load.as_ref().map(|load| InWords(load).to_string());
        f.write_str(&when.into_iter().chain(load).collect::<Vec<_>>().join(", "))
    }
}

impl Display for InWords<'_, Load> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Load { has_capacity: Some(name), .. } => write!(f, "while `{name}` has capacity"),
            Load { in_flight: Some(bound), .. } => {
                write!(f, "while fewer than {bound} requests are served")
            }
            Load { cpu: Some(Amount::Percent(share)), .. } => {
                write!(f, "while less than {share} of the processors is used")
            }
            Load { .. } => Ok(()),
        }
    }
}

/// The settings of a rule other than its key, condition and limits.
pub(crate) fn besides(rule: &Rule) -> Vec<String> {
    let mut words = Vec::new();
    if rule.blocks {
        words.push("refuses everything".to_owned());
    }
    match &rule.cost {
        None | Some(Cost::Fixed(1)) => {}
        Some(Cost::Fixed(cost)) => words.push(format!("each request costs {cost}")),
        Some(Cost::Table(table)) => {
            let named =
                [("header", &table.header), ("query", &table.query), ("function", &table.call)];
            for (kind, name) in named {
                words.extend(
                    name.as_ref().map(|name| format!("the cost is that of {kind} `{name}`")),
                );
            }
            let per_body = |bytes| format!("the cost is 1 for each {bytes} bytes of the body");
            words.extend(table.body.map(per_body));
            words.extend(table.tokens.map(|_| "the cost is an estimate of its tokens".to_owned()));
        }
    }
    words.extend(rule.settle.as_ref().map(|settle| match settle {
        Settle::Response => "settled by the response".to_owned(),
        Settle::Table(SettleTable { header: Some(header), .. }) => {
            format!("settled by the response's header `{header}`")
        }
        Settle::Table(_) => "settled by the tokens that the answer used".to_owned(),
    }));
    if rule.settle_at_end {
        words.push("settled when the body has ended".to_owned());
    }
    words.extend(rule.settle_at_most.map(|most| format!("settled to {most} at most")));
    if !rule.count_if.is_empty() {
        let statuses: Vec<_> = rule.count_if.iter().map(u16::to_string).collect();
        words.push(format!("counts only {}", statuses.join(" and ")));
    }
    words.extend(rule.reject.as_ref().map(|reject| match reject {
        Reject::Block => "requests over the limit are refused".to_owned(),
        Reject::Shadow => "requests over the limit are served and reported".to_owned(),
        Reject::Degrade => "requests over the limit are degraded".to_owned(),
        Reject::Redirect(to) => {
            format!("requests over the limit are redirected to {}", to.redirect)
        }
    }));
    words
}

fn joined(f: &mut Formatter<'_>, keys: &[Key], by: &str) -> fmt::Result {
    let keys: Vec<_> = keys.iter().map(|key| InWords(key).to_string()).collect();
    f.write_str(&keys.join(by))
}

/// The names as alternatives: the first 20, and how many more there are. `None` if there are none.
pub fn one_of<'a>(mut names: impl ExactSizeIterator<Item = &'a String>) -> Option<String> {
    /// A file may have thousands, and each of them may be missing in thousands of places.
    const MOST: usize = 20;
    let mut words: Vec<_> = names.by_ref().take(MOST).map(|name| format!("`{name}`")).collect();
    // Counting them one by one would take as long as there are names, in each of thousands of places.
    match names.len() {
        0 => {}
        more => words.push(format!("one of {more} more")),
    }
    (!words.is_empty()).then(|| words.join(" or "))
}
