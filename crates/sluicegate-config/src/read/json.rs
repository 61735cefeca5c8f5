use std::collections::BTreeMap;
use std::collections::btree_map;

use serde::de::IgnoredAny;
use serde_json::Error;

use crate::document::Document;
use crate::source::DocumentPath;
use crate::source::{Diagnostic, MOST, PolicyError, SourceLocation};

use super::lenient::document;
use super::within_bounds;
use crate::source::Lines;
use crate::source::{Data, Entry, Node};

/// The deepest nesting of lists and objects. Readers are recursive.
const DEEPEST: usize = 128;

/// Reads a document from JSON.
///
/// # Errors
///
/// The first syntax error; or, without one, every other error in the text.
pub fn read_json(text: &str) -> Result<Document, PolicyError> {
    let (root, twice) = tree(text)?;
    document(root, twice)
}

/// The values of a text, and the names that occur twice in it.
pub(super) fn tree(text: &str) -> Result<(Node, Vec<Diagnostic>), PolicyError> {
    let text = within_bounds(text)?;
    let lines = Lines::new(text);
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        let location = lines.location_of_byte(error.line(), error.column());
        return Err(syntax(location, &without_place(&error)).into());
    }
    let mut values = Values { text, lines: &lines, at: 0, twice: Vec::new() };
    let root = values.value(&DocumentPath::Root, DEEPEST)?;
    Ok((root, values.twice))
}

fn syntax(location: SourceLocation, message: &str) -> Diagnostic {
    Diagnostic::new("", format!("this is not JSON: {message}")).at(Some(location))
}

/// Removes the location that serde_json adds to its messages.
fn without_place(error: &Error) -> String {
    let message = error.to_string();
    let location = format!(" at line {} column {}", error.line(), error.column());
    message.strip_suffix(&location).unwrap_or(&message).to_owned()
}

/// Reads the values and locations of a text that is known to be valid JSON.
struct Values<'a> {
    text: &'a str,
    lines: &'a Lines<'a>,
    /// The offset of the next byte.
    at: usize,
    /// Names that occur twice in one object.
    twice: Vec<Diagnostic>,
}

impl Values<'_> {
    fn value(&mut self, path: &DocumentPath<'_>, depth: usize) -> Result<Node, Diagnostic> {
        let location = self.next_place();
        let data = match (self.peek(), depth.checked_sub(1)) {
            (b'{', Some(depth)) => self.object(path, depth)?,
            (b'[', Some(depth)) => self.list(path, depth)?,
            (b'{' | b'[', None) => self.too_deep(),
            (b'"', _) => Data::Text(self.text()?),
            _ => self.word(),
        };
        Ok(Node::new(location, data))
    }

    fn object(&mut self, path: &DocumentPath<'_>, depth: usize) -> Result<Data, Diagnostic> {
        let mut entries = BTreeMap::new();
        self.at += 1;
        while self.goes_on(b'}') {
            let named = self.next_place();
            let name = self.text()?;
            self.space();
            // The colon.
            self.at += 1;
            let value = self.value(&path.name(&name), depth)?;
            match entries.entry(name) {
                btree_map::Entry::Vacant(entry) => {
                    entry.insert(Entry::new(named, value));
                }
                btree_map::Entry::Occupied(entry) if self.twice.len() <= MOST => {
                    let message = format!("`{}` occurs twice, expected once", entry.key());
                    let path = path.name(entry.key()).to_string();
                    self.twice.push(Diagnostic::new(path, message).at(Some(named)));
                }
                btree_map::Entry::Occupied(_) => {}
            }
        }
        Ok(Data::Table(entries.into_iter().collect()))
    }

    fn list(&mut self, path: &DocumentPath<'_>, depth: usize) -> Result<Data, Diagnostic> {
        let mut values = Vec::new();
        self.at += 1;
        while self.goes_on(b']') {
            values.push(self.value(&path.index(values.len()), depth)?);
        }
        Ok(Data::List(values))
    }

    /// Skips a list or an object.
    fn too_deep(&mut self) -> Data {
        let mut open = 0_usize;
        loop {
            match self.peek() {
                b'{' | b'[' => open += 1,
                b'}' | b']' => open -= 1,
                b'"' => self.pass_text(),
                _ => {}
            }
            self.at += 1;
            if open == 0 {
                return Data::Other(format!("value beyond the recursion limit of {DEEPEST}"));
            }
        }
    }

    /// Whether another value follows before `end`. Skips commas and `end`.
    fn goes_on(&mut self, end: u8) -> bool {
        self.space();
        if self.peek() == b',' {
            self.at += 1;
            self.space();
        }
        let goes_on = self.peek() != end;
        self.at += usize::from(!goes_on);
        goes_on
    }

    fn text(&mut self) -> Result<String, Diagnostic> {
        let begin = self.at;
        self.pass_text();
        self.at += 1;
        // Escapes may still be invalid characters.
        let unescaped = serde_json::from_str(&self.text[begin..self.at]);
        unescaped.map_err(|error| syntax(self.lines.location(begin), &without_place(&error)))
    }

    /// Skips a text, from its first quote to its last.
    fn pass_text(&mut self) {
        self.at += 1;
        while self.peek() != b'"' {
            self.at += 1 + usize::from(self.peek() == b'\\');
        }
    }

    /// A number, or `true`, `false` or `null`.
    fn word(&mut self) -> Data {
        let rest = &self.text[self.at..];
        let end = rest.find([',', '}', ']', ' ', '\t', '\r', '\n']).unwrap_or(rest.len());
        let word = &rest[..end];
        self.at += end;
        match word {
            "null" => Data::Null,
            "true" => Data::Truth(true),
            "false" => Data::Truth(false),
            _ => {
                let number =
                    word.parse().map(Data::Number).or_else(|_| word.parse().map(Data::Negative));
                number.unwrap_or_else(|_| match word.parse::<f64>() {
                    Ok(number) if number.is_finite() => Data::Fraction(number),
                    _ => Data::Other(format!("number `{word}`")),
                })
            }
        }
    }

    fn next_place(&mut self) -> SourceLocation {
        self.space();
        self.lines.location(self.at)
    }

    fn space(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\r' | b'\n') {
            self.at += 1;
        }
    }

    /// The next byte. At the end, 0, which JSON cannot contain.
    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }
}
