use std::fmt;

use serde::de::{Deserialize, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Deserializer, Error};

use crate::document::Document;
use crate::origin::{Lines, Origin};
use crate::path::Path;
use crate::problem::{Place, Problem, Problems};

use super::{misfit, within_bounds};

/// As deep as serde_json reads.
const DEEPEST: usize = 128;

/// Reads a document in JSON.
///
/// # Errors
///
/// The first error of syntax, all names that are said twice, or the first value that does not fit.
pub fn read_json(text: &str) -> Result<Document, Problems> {
    let text = within_bounds(text)?;
    let mut marks =
        Marks { text, lines: Lines::new(text), origin: Origin::default(), twice: vec![] };
    let whole = serde_json::from_str(text).map_err(|error| marks.syntax(&error))?;
    marks.origin.mark("", marks.place(whole));
    marks.inside(&Path::Root, whole, DEEPEST).map_err(|error| marks.syntax(&error))?;
    if let Some(problems) = Problems::of(std::mem::take(&mut marks.twice)) {
        return Err(problems);
    }
    match serde_path_to_error::deserialize(&mut Deserializer::from_str(text)) {
        Ok(document) => Ok(Document { origin: marks.origin, ..document }),
        Err(error) if error.inner().is_data() => {
            let message = without_place(error.inner());
            Err(misfit(&marks.origin, error.path(), &message).into())
        }
        Err(error) => Err(marks.syntax(error.inner()).into()),
    }
}

/// serde_json ends its messages with a place, which is where it noticed.
fn without_place(error: &Error) -> String {
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    message.strip_suffix(&place).unwrap_or(&message).to_owned()
}

/// Finds out where each value stands: a [`RawValue`] is a part of the text.
struct Marks<'a> {
    text: &'a str,
    lines: Lines<'a>,
    origin: Origin,
    /// Names that stand twice in one object.
    twice: Vec<Problem>,
}

impl<'a> Marks<'a> {
    fn inside(&mut self, path: &Path<'_>, value: &'a RawValue, depth: usize) -> Result<(), Error> {
        let Some(depth) = depth.checked_sub(1) else {
            return Ok(());
        };
        match value.get().as_bytes().first() {
            Some(b'{') => self.inside_object(path, value, depth),
            Some(b'[') => self.inside_list(path, value, depth),
            _ => Ok(()),
        }
    }

    fn inside_object(
        &mut self,
        path: &Path<'_>,
        value: &'a RawValue,
        depth: usize,
    ) -> Result<(), Error> {
        let Entries(entries) = serde_json::from_str(value.get())?;
        let mut seen = std::collections::BTreeSet::new();
        for (raw, value) in entries {
            let name: String = serde_json::from_str(raw.get())?;
            let path = path.name(&name);
            self.origin.mark_named(&path, self.place(value), self.place(raw));
            if !seen.insert(name.clone()) {
                let message = format!("`{name}` is said twice, expected once");
                self.twice.push(self.origin.problem_with_name(&path, message));
            }
            self.inside(&path, value, depth)?;
        }
        Ok(())
    }

    fn inside_list(
        &mut self,
        path: &Path<'_>,
        value: &'a RawValue,
        depth: usize,
    ) -> Result<(), Error> {
        let values: Vec<&RawValue> = serde_json::from_str(value.get())?;
        for (index, value) in values.into_iter().enumerate() {
            let path = path.index(index);
            self.origin.mark(path.to_string(), self.place(value));
            self.inside(&path, value, depth)?;
        }
        Ok(())
    }

    fn place(&self, part: &RawValue) -> Place {
        self.lines.place(part.get().as_ptr() as usize - self.text.as_ptr() as usize)
    }

    fn syntax(&self, error: &Error) -> Problem {
        let place = self.lines.place_of_byte(error.line(), error.column());
        Problem::new("", format!("this is not JSON: {}", without_place(error))).at(Some(place))
    }
}

/// The entries of an object, as they stand in the text.
struct Entries<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<'de>, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Entries(entries))
    }
}
