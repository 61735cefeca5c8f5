use toml::Spanned;
use toml::de::{DeTable, DeValue, Error};

use crate::document::Document;
use crate::source::{Diagnostic, PolicyError};

use super::lenient::document;
use super::within_bounds;
use crate::source::Lines;
use crate::source::{Data, Entry, Node};

/// Reads a document from TOML.
///
/// ```
/// let document = sluicegate_config::read_toml(
///     r#"
///     [[rules]]
///     name = "api"
///     key = "ip"
///     limits = ["100/minute burst 20"]
///     "#,
/// )?;
/// assert_eq!(document.rules[0].name, "api");
/// # Ok::<(), sluicegate_config::PolicyError>(())
/// ```
///
/// # Errors
///
/// All syntax errors; or, without one, every other error in the text.
pub fn read_toml(text: &str) -> Result<Document, PolicyError> {
    let (root, twice) = tree(text)?;
    document(root, twice)
}

/// The values of a text, and the names that occur twice in it.
pub(super) fn tree(text: &str) -> Result<(Node, Vec<Diagnostic>), PolicyError> {
    let text = within_bounds(text)?;
    let lines = Lines::new(text);
    let (table, errors) = DeTable::parse_recoverable(text);
    // After a duplicate name, the rest of the text is still clear.
    let (twice, syntax): (Vec<_>, Vec<_>) =
        errors.into_iter().partition(|error| error.message() == TWICE);
    let diagnostics = |errors: &[Error]| -> Vec<_> {
        let problem = |error: &Error| {
            let location = error.span().map(|span| lines.location(span.start));
            Diagnostic::new("", in_words(text, error)).at(location)
        };
        errors.iter().map(problem).collect()
    };
    if !syntax.is_empty() {
        let all = diagnostics(&syntax).into_iter().chain(diagnostics(&twice));
        if let Some(error) = PolicyError::of(all) {
            return Err(error);
        }
    }
    let location = lines.location(table.span().start);
    Ok((Node::new(location, of_table(table.into_inner(), &lines)), diagnostics(&twice)))
}

const TWICE: &str = "duplicate key";

fn in_words(text: &str, error: &Error) -> String {
    if error.message() == TWICE {
        let name = error.span().and_then(|span| text.get(span)).unwrap_or("the name");
        return format!("`{name}` occurs twice, expected once");
    }
    format!("this is not TOML: {}", error.message().lines().collect::<Vec<_>>().join(", "))
}

fn node(value: Spanned<DeValue<'_>>, lines: &Lines<'_>) -> Node {
    let location = lines.location(value.span().start);
    let data = match value.into_inner() {
        DeValue::String(text) => Data::Text(text.into_owned()),
        DeValue::Boolean(truth) => Data::Truth(truth),
        DeValue::Integer(number) => {
            let (digits, radix) = (number.as_str(), number.radix());
            let number = u64::from_str_radix(digits, radix).map(Data::Number);
            let negative = || i64::from_str_radix(digits, radix).map(Data::Negative);
            let unreadable = |_| Data::Other(format!("integer `{digits}`"));
            number.or_else(|_| negative()).unwrap_or_else(unreadable)
        }
        DeValue::Float(number) => match number.as_str().replace('_', "").parse() {
            Ok(number) => Data::Fraction(number),
            Err(_) => Data::Other(format!("number `{}`", number.as_str())),
        },
        DeValue::Datetime(date) => Data::Other(format!("date `{date}`")),
        DeValue::Array(list) => {
            Data::List(list.into_iter().map(|value| node(value, lines)).collect())
        }
        DeValue::Table(table) => of_table(table, lines),
    };
    Node::new(location, data)
}

fn of_table(table: DeTable<'_>, lines: &Lines<'_>) -> Data {
    let entries = table.into_iter().map(|(name, value)| {
        let location = lines.location(name.span().start);
        (name.into_inner().into_owned(), Entry::new(location, node(value, lines)))
    });
    let mut entries: Vec<_> = entries.collect();
    // With its feature `preserve_order`, `toml` keeps the order of the text.
    entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    Data::Table(entries)
}

#[cfg(test)]
mod tests {
    use super::read_toml;
    use crate::document::{Amount, Expected, Key, Limit, Reject, Settle, Texts};

    const TOML: &str = include_str!("../../tests/documents/everything.toml");

    #[test]
    fn all_that_is_said_is_read() {
        let document = read_toml(TOML).expect("a document");
        assert_eq!(document.time_zone.as_deref(), Some("Europe/Berlin"));
        assert!(document.tiers["partner"].unlimited);
        assert_eq!(document.customers["big.example"], "partner");
        let rule = |name: &str| {
            document.rules.iter().find(|rule| rule.name == name).expect("a rule of this name")
        };
        let Limit::Table(table) = &rule("tokens").limits[1] else { panic!("a table") };
        assert_eq!(table.soft, Some(Amount::Count(15_000)));
        assert_eq!(rule("uploads").key, {
            Key::All(vec![Key::Method, Key::First(vec![Key::Header("x-api-key".into()), Key::Ip])])
        });
        assert_eq!(rule("dollars").settle, Some(Settle::Response));
        assert_eq!(rule("inside").reject, Some(Reject::Shadow));
        let when = rule("uploads").when.as_ref().expect("a condition");
        assert_eq!(when.path, Some(Texts::Any(vec!["/upload".into(), "/files/{id}".into()])));
        assert_eq!(when.header["x-draft"], Expected::Present(false));
        assert_eq!(rule("nights").cases[3].load.as_ref().expect("a load").cpu, {
            Some(Amount::Percent("80%".into()))
        });
    }
}
