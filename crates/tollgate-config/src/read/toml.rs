use toml::de::{DeTable, DeValue, Error};
use toml::{Deserializer, Spanned};

use crate::document::Document;
use crate::origin::{Lines, Origin};
use crate::path::Path;
use crate::problem::{Place, Problem, Problems};

use super::{misfit, within_bounds};

/// Reads a document in TOML.
///
/// ```
/// let document = tollgate_config::read_toml(
///     r#"
///     [[rules]]
///     name = "api"
///     key = "ip"
///     limits = ["100/minute burst 20"]
///     "#,
/// )?;
/// assert_eq!(document.rules[0].name, "api");
/// # Ok::<(), tollgate_config::Problems>(())
/// ```
///
/// # Errors
///
/// All errors of syntax, or the first value that does not fit.
pub fn read_toml(text: &str) -> Result<Document, Problems> {
    let text = within_bounds(text)?;
    let lines = Lines::new(text);
    let (table, errors) = DeTable::parse_recoverable(text);
    let syntax = errors.iter().map(|error| {
        let place = error.span().map(|span| lines.place(span.start));
        Problem::new("", in_words(text, error)).at(place)
    });
    if let Some(problems) = Problems::of(syntax) {
        return Err(problems);
    }
    let mut origin = Origin::default();
    mark_table(&mut origin, &lines, &Path::Root, table.get_ref());
    match serde_path_to_error::deserialize(Deserializer::from(table)) {
        Ok(document) => Ok(Document { origin, ..document }),
        Err(error) => Err(misfit(&origin, error.path(), error.inner().message()).into()),
    }
}

fn in_words(text: &str, error: &Error) -> String {
    if error.message() == "duplicate key" {
        let name = error.span().and_then(|span| text.get(span)).unwrap_or("the name");
        return format!("`{name}` is said twice, expected once");
    }
    format!("this is not TOML: {}", error.message().lines().collect::<Vec<_>>().join(", "))
}

fn mark_table(origin: &mut Origin, lines: &Lines<'_>, path: &Path<'_>, table: &DeTable<'_>) {
    for (name, value) in table {
        let path = path.name(name.get_ref());
        origin.mark_named(&path, start(lines, value), start(lines, name));
        mark_inside(origin, lines, &path, value.get_ref());
    }
}

fn mark_inside(origin: &mut Origin, lines: &Lines<'_>, path: &Path<'_>, value: &DeValue<'_>) {
    match value {
        DeValue::Table(table) => mark_table(origin, lines, path, table),
        DeValue::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                let path = path.index(index);
                origin.mark(path.to_string(), start(lines, value));
                mark_inside(origin, lines, &path, value.get_ref());
            }
        }
        _ => {}
    }
}

fn start<T>(lines: &Lines<'_>, value: &Spanned<T>) -> Place {
    lines.place(value.span().start)
}
