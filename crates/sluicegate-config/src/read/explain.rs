//! Turns messages of serde into sentences, with a suggestion for misspelt names.

/// The similarity from which a name is suggested, from 0 to 1: `burst` for `brust`, but not `name` for `rate`.
const ALIKE: f64 = 0.75;

/// Whether the message is about the name of a value instead of the value.
pub(super) fn is_about_name(message: &str) -> bool {
    message.starts_with("unknown field") || message.starts_with("duplicate field")
}

/// The name of the missing value, if the message reports one.
pub(super) fn missing(message: &str) -> Option<&str> {
    message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`'))
}

/// The known name that is most similar to the unknown one in the message.
pub(super) fn suggested(message: &str) -> Option<String> {
    let rest = message.strip_prefix("unknown field")?;
    let mut names = rest.split('`').skip(1).step_by(2);
    let wrong = names.next()?;
    nearest(wrong, &names.collect::<Vec<_>>()).map(str::to_owned)
}

/// The known name that is most similar to `wrong`, if it is similar enough.
fn nearest<'n>(wrong: &str, known: &[&'n str]) -> Option<&'n str> {
    let likeness = |name: &str| strsim::jaro_winkler(wrong, name);
    let nearest = known.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    nearest.copied().filter(|name| likeness(name) >= ALIKE)
}

/// A sentence with the error and what was expected.
pub(super) fn sentence(message: &str) -> String {
    let message = message.trim().replace('\n', ", ");
    let unknown = message.strip_prefix("unknown field").or(message.strip_prefix("unknown variant"));
    if let Some(rest) = unknown {
        return unknown_name(rest);
    }
    if let Some(name) = message.strip_prefix("missing field ") {
        return format!("{name} is missing");
    }
    if let Some(name) = message.strip_prefix("duplicate field ") {
        return format!("{name} occurs twice, expected once");
    }
    let found = message.strip_prefix("invalid type: ").or(message.strip_prefix("invalid value: "));
    match found {
        Some(rest) => format!("found {}", in_words(rest)),
        None => message,
    }
}

/// `` `brust`, expected one of `rate`, `burst` ``
fn unknown_name(rest: &str) -> String {
    let mut names = rest.split('`').skip(1).step_by(2);
    let wrong = names.next().unwrap_or_default();
    let known: Vec<_> = names.collect();
    let suggestion = match nearest(wrong, &known) {
        Some(name) => format!("; did you mean `{name}`?"),
        None => ",".to_owned(),
    };
    let expected = match known.as_slice() {
        [] => "nothing".to_owned(),
        [one] => format!("`{one}`"),
        [several @ .., last] => format!("`{}` or `{last}`", several.join("`, `")),
    };
    format!("`{wrong}` is not known here{suggestion} expected {expected}")
}

/// Replaces Rust types by words for authors of files.
fn in_words(text: &str) -> String {
    let Some((found, expected)) = text.rsplit_once(", expected ") else {
        return text.to_owned();
    };
    let expected = match expected {
        "a string" => "a text",
        "u16" => "a whole number from 0 to 65535",
        "u64" | "usize" => "a whole number, not negative",
        "a sequence" => "a list",
        "a map" => "a table",
        "a boolean" => "`true` or `false`",
        _ if expected.starts_with("struct ") => "a table",
        _ => expected,
    };
    let found = match found {
        "sequence" => "a list".to_owned(),
        "map" => "a table".to_owned(),
        "null" => "nothing (`null`)".to_owned(),
        _ => match found.strip_prefix("string ") {
            Some(text) => format!("the text {text}"),
            None => format!("the {found}"),
        },
    };
    format!("{found}, expected {expected}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested() {
        assert_eq!(
            sentence("unknown field `brust`, expected one of `rate`, `burst`, `ban`"),
            "`brust` is not known here; did you mean `burst`? expected `rate`, `burst` or `ban`"
        );
        assert_eq!(
            sentence("unknown variant `xyz`, expected `block` or `shadow`"),
            "`xyz` is not known here, expected `block` or `shadow`"
        );
        assert_eq!(
            sentence("unknown field `a`, there are no fields"),
            "`a` is not known here, expected nothing"
        );
    }

    #[test]
    fn types_are_told_in_the_words_of_the_file() {
        assert_eq!(
            sentence("invalid type: string \"5\", expected u64"),
            "found the text \"5\", expected a whole number, not negative"
        );
        assert_eq!(
            sentence("invalid type: map, expected a string"),
            "found a table, expected a text"
        );
        assert_eq!(sentence("missing field `name`"), "`name` is missing");
    }
}
