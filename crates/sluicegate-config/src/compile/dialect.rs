//! Header fields and errors of an API, `[dialect]`.

use std::collections::{HashMap, HashSet};

use sluicegate_llm::{Dialect, Unit};

use super::context::Context;
use crate::document;
use crate::source::DocumentPath;

/// The dialect of a document whose limits have these names, besides others if they are not `complete`.
pub(super) fn dialect<'a>(
    spec: &'a document::Dialect,
    limits: impl Iterator<Item = &'a String>,
    complete: bool,
    path: &DocumentPath<'_>,
    context: &Context<'_>,
) -> Option<Dialect> {
    // A rule's name stands before a `/` in those of its limits.
    let beginnings = |name: &'a String| name.match_indices('/').map(|(at, _)| &name[..at]);
    let known: HashSet<&str> =
        limits.flat_map(|name| beginnings(name).chain([name.as_str()])).collect();
    let mut counted = HashMap::new();
    let (mut dialect, has_halves) = match spec.api {
        document::Api::OpenAi => (Dialect::openai(), false),
        document::Api::Anthropic => (Dialect::anthropic(), true),
    };
    let units = [
        ("requests", &spec.requests, Unit::Requests),
        ("tokens", &spec.tokens, Unit::Tokens),
        ("input_tokens", &spec.input_tokens, Unit::InputTokens),
        ("output_tokens", &spec.output_tokens, Unit::OutputTokens),
    ];
    let (mut is_valid, mut is_empty) = (true, true);
    for (field, names, unit) in units {
        let (Some(names), path) = (names, path.name(field)) else { continue };
        if !has_halves && matches!(unit, Unit::InputTokens | Unit::OutputTokens) {
            let message = format!("OpenAI's API has no fields for {unit}, expected `tokens`");
            context.report(&path, message);
            is_valid = false;
            continue;
        }
        for name in names.as_slice() {
            is_empty = false;
            let other = *counted.entry(name.as_str()).or_insert(unit);
            if other != unit {
                let expected = format!("expected either {other} or {unit}");
                context.report(&path, format!("`{name}` counts {other} already, {expected}"));
                is_valid = false;
            } else if complete && !known.contains(name.as_str()) {
                context.report(&path, format!("no rule and no limit is named `{name}`"));
                is_valid = false;
            } else {
                dialect = dialect.policy(name, unit);
            }
        }
    }
    if is_valid && is_empty {
        return context.refuse(path, NOTHING);
    }
    is_valid.then_some(dialect)
}

const NOTHING: &str = "it names no rule, expected the name of a rule in `requests` or `tokens`";
