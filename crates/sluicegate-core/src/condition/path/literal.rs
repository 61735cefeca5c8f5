//! Patterns in the dialects of other routers, which are compared literally here.

use crate::standard_error::{self, is_recorded};

/// The first segment that other routers take for a variable or an expression.
pub(super) fn segment(pattern: &str) -> Option<&str> {
    pattern.split('/').find(|segment| is_foreign(segment))
}

/// `:id` and `user-:id` (Express, Rails), `<id>` and `<int:id>` (Flask, Rocket), `[id]` (Next.js), and regular expressions. Characters
/// that names in paths often have, such as `$` at the beginning, `+` and parentheses, are no sign of one.
fn is_foreign(segment: &str) -> bool {
    let inner = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    if inner.is_some() {
        return false;
    }
    let is_variable = segment.len() > 1 && segment.starts_with(':')
        || ["(:", "-:", ".:", "_:", "@:"].iter().any(|begin| segment.contains(begin))
        || segment.contains(['<', '>', '[', ']']);
    let is_expression = segment.contains(['\\', '^', '|'])
        || segment.ends_with('$')
        || segment.contains(".+")
        || segment.contains(")+");
    is_variable || is_expression
}

/// Logs that a pattern has such a segment.
pub(in crate::condition) fn warn(kind: &str, pattern: &str) {
    let Some(segment) = segment(pattern) else { return };
    #[cfg(feature = "tracing")]
    tracing::warn!(
        kind,
        pattern,
        segment,
        "a pattern has a segment that is compared literally: a segment of any value is written `{{id}}`, and the rest \
         of a path `*`"
    );
    standard_error::write_unless(is_recorded!(WARN), || {
        format!(
            "the {kind} pattern `{pattern}` compares `{segment}` literally: a segment of any value is written `{{id}}`"
        )
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_of_another_dialect_is_found() {
        for (pattern, expected) in [
            ("/api/:id", ":id"),
            ("/api/:id/books", ":id"),
            ("/user-:id/books", "user-:id"),
            ("/@:name", "@:name"),
            ("/api/<id>", "<id>"),
            ("/api/<int:id>", "<int:id>"),
            ("/api/<path..>", "<path..>"),
            ("/api/[id]", "[id]"),
            ("/api/[0-9]+", "[0-9]+"),
            (r"/api/\d+/x", r"\d+"),
            ("/api$", "api$"),
            ("/(a|b)/c", "(a|b)"),
            ("/files/.+", ".+"),
        ] {
            assert_eq!(segment(pattern), Some(expected), "{pattern}");
        }
    }

    #[test]
    fn a_path_as_it_is_and_the_own_dialect_are_none() {
        for pattern in [
            "/",
            "/api/*",
            "/api/{id}",
            "/api/{id:[0-9]+}",
            "/api/{*rest}",
            "/odata/$metadata",
            "/Products(1)",
            "/a+b",
            "/v1/models/gpt-4:generate",
            "/@me/~x/a,b;c=1",
            "/%3Aid",
        ] {
            assert_eq!(segment(pattern), None, "{pattern}");
        }
    }
}
