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

/// How deep lists and objects may stand in each other: whatever reads a level calls itself for the next.
const DEEPEST: usize = 128;

/// Reads a document in JSON.
///
/// # Errors
///
/// The first error of syntax. Where there is none, all that is wrong, as far as the text tells.
pub fn read_json(text: &str) -> Result<Document, PolicyError> {
    let text = within_bounds(text)?;
    let lines = Lines::new(text);
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        let location = lines.location_of_byte(error.line(), error.column());
        return Err(syntax(location, &without_place(&error)).into());
    }
    let mut values = Values { text, lines: &lines, at: 0, twice: Vec::new() };
    let root = values.value(&DocumentPath::Root, DEEPEST)?;
    document(root, values.twice)
}

fn syntax(location: SourceLocation, message: &str) -> Diagnostic {
    Diagnostic::new("", format!("this is not JSON: {message}")).at(Some(location))
}

/// serde_json ends its messages with a place, which is where it noticed.
fn without_place(error: &Error) -> String {
    let message = error.to_string();
    let location = format!(" at line {} column {}", error.line(), error.column());
    message.strip_suffix(&location).unwrap_or(&message).to_owned()
}

/// The values of a text that is known to be JSON: only what stands where is found out.
struct Values<'a> {
    text: &'a str,
    lines: &'a Lines<'a>,
    /// What is read next, in bytes.
    at: usize,
    /// Names that stand twice in one object.
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
                    let message = format!("`{}` is said twice, expected once", entry.key());
                    let path = path.name(entry.key()).to_string();
                    self.twice.push(Diagnostic::new(path, message).at(Some(named)));
                }
                btree_map::Entry::Occupied(_) => {}
            }
        }
        Ok(Data::Table(entries))
    }

    fn list(&mut self, path: &DocumentPath<'_>, depth: usize) -> Result<Data, Diagnostic> {
        let mut values = Vec::new();
        self.at += 1;
        while self.goes_on(b']') {
            values.push(self.value(&path.index(values.len()), depth)?);
        }
        Ok(Data::List(values))
    }

    /// Passes a list or an object without a look at what is in it.
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

    /// Whether another value follows before `end`, which is passed, as are commas.
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
        // Which escapes are characters, that has not been looked at yet.
        let unescaped = serde_json::from_str(&self.text[begin..self.at]);
        unescaped.map_err(|error| syntax(self.lines.location(begin), &without_place(&error)))
    }

    /// Goes from the quote that begins a text to the one that ends it.
    fn pass_text(&mut self) {
        self.at += 1;
        while self.peek() != b'"' {
            self.at += 1 + usize::from(self.peek() == b'\\');
        }
    }

    /// A number, or one of the three words.
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

    /// The next byte; 0, which is nowhere in JSON, at the end.
    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }
}
