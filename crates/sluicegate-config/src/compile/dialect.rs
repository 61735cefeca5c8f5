//! Header fields and errors of an API, `[dialect]`.

use std::collections::HashMap;

use sluicegate_llm::{Dialect, Unit};

use super::context::Context;
use crate::document;
use crate::source::DocumentPath;

/// The dialect of a document whose limits have these names.
pub(super) fn dialect<T>(
    spec: &document::Dialect,
    limits: &HashMap<String, T>,
    path: &DocumentPath<'_>,
    context: &Context<'_>,
) -> Option<Dialect> {
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
            match problem(&dialect, name, unit, limits) {
                None => dialect = dialect.policy(name, unit),
                Some(problem) => {
                    context.report(&path, problem);
                    is_valid = false;
                }
            }
        }
    }
    if is_valid && is_empty {
        return context.refuse(path, NOTHING);
    }
    is_valid.then_some(dialect)
}

const NOTHING: &str = "it names no rule, expected the name of a rule in `requests` or `tokens`";

fn problem<T>(
    dialect: &Dialect,
    name: &str,
    unit: Unit,
    limits: &HashMap<String, T>,
) -> Option<String> {
    let mut others = dialect.policies().filter(|(policy, other)| *policy == name && *other != unit);
    if let Some((_, other)) = others.next() {
        return Some(format!("`{name}` counts {other} already, expected either {other} or {unit}"));
    }
    let is_known = limits.keys().any(|limit| {
        limit.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    (!is_known).then(|| format!("no rule and no limit is named `{name}`"))
}
