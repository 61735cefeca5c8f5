//! A page: text written by hand, and generated text between pairs of comments.
//!
//! ```text
//! <!-- machine -->
//! <!-- behind -->
//! <!-- table: The step, ns -->
//! <!-- lines bench-table: The table, ns | `u64` -->
//! <!-- bars bench-layer: The layer, ns | request -->
//! ```
//!
//! and after each of them, some lines further down, `<!-- end -->`. A chart has a name, the title of
//! the table that it shows, and the part of the table, if not all.

use std::fmt;

use super::chart::Wish;

/// The parts of a page, in order.
#[derive(Debug)]
pub(super) struct Page {
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    ByHand(String),
    Block { place: Place, marker: String, text: String },
}

/// What a marker is a place for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Machine,
    /// The list of tables in which rivals are ahead.
    Behind,
    /// The table with this title.
    Table(String),
    Chart(Wish),
}

const END: &str = "<!-- end -->";

impl Page {
    /// The error names the marker and the problem.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let place =
                Place::read(line).map_err(|problem| format!("line {}: {problem}", index + 1))?;
            match (parts.last_mut(), place) {
                (Some(Part::Block { marker, .. }), Some(_)) => return Err(open(marker)),
                (Some(Part::Block { .. }), None) if line.trim() == END => {
                    parts.push(Part::ByHand(String::new()));
                }
                (_, Some(place)) => {
                    let marker = line.trim().to_owned();
                    parts.push(Part::Block { place, marker, text: String::new() });
                }
                (Some(Part::ByHand(text) | Part::Block { text, .. }), None) => {
                    text.push_str(line);
                    text.push('\n');
                }
                (None, None) => parts.push(Part::ByHand(format!("{line}\n"))),
            }
        }
        if let Some(Part::Block { marker, .. }) = parts.last() {
            return Err(open(marker));
        }
        Ok(Self { parts })
    }

    pub(super) fn blocks(&self) -> impl Iterator<Item = (&Place, &str, &str)> {
        self.parts.iter().filter_map(|part| match part {
            Part::Block { place, marker, text } => Some((place, &**marker, &**text)),
            Part::ByHand(_) => None,
        })
    }

    /// The text at this place now.
    pub(super) fn text(&self, wanted: &Place) -> Option<&str> {
        self.blocks().find(|(place, ..)| *place == wanted).map(|(.., text)| text)
    }

    /// Puts `new` at this place, if there is one.
    pub(super) fn put(&mut self, wanted: &Place, new: &str) {
        for part in &mut self.parts {
            if let Part::Block { place, text, .. } = part
                && place == wanted
            {
                new.clone_into(text);
            }
        }
    }
}

impl Place {
    /// `None` for a line that is not a marker.
    fn read(line: &str) -> Result<Option<Self>, String> {
        let comment = line.trim().strip_prefix("<!--").and_then(|line| line.strip_suffix("-->"));
        let Some(comment) = comment.map(str::trim) else { return Ok(None) };
        let (head, rest) = comment
            .split_once(':')
            .map_or((comment, ""), |(head, rest)| (head.trim(), rest.trim()));
        match head.split_whitespace().collect::<Vec<_>>()[..] {
            ["machine"] => Ok(Some(Self::Machine)),
            ["behind"] => Ok(Some(Self::Behind)),
            ["table"] if !rest.is_empty() => Ok(Some(Self::Table(rest.to_owned()))),
            [style @ ("lines" | "bars"), name] if !rest.is_empty() => {
                Wish::read(style, name, rest).map(|wish| Some(Self::Chart(wish)))
            }
            ["table" | "lines" | "bars", ..] => Err(format!("`{}` is incomplete", line.trim())),
            _ => Ok(None),
        }
    }
}

fn open(marker: &str) -> String {
    format!("`{marker}` has no `{END}`")
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            Part::ByHand(text) => f.write_str(text),
            Part::Block { marker, text, .. } => write!(f, "{marker}\n{text}{END}\n"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# Benchmarks

<!-- machine -->
old
<!-- end -->

By hand. <!-- a remark -->

<!-- table: The step, ns -->
| old |
<!-- end -->
Between.
<!-- bars bench-step: The step, ns | admitted -->
<!-- end -->

The end.
";

    fn failure(text: &str) -> String {
        Page::read(text).expect_err("a mistake")
    }

    fn step() -> Place {
        Place::Table("The step, ns".to_owned())
    }

    #[test]
    fn a_page_is_written_as_it_was_read() {
        assert_eq!(Page::read(PAGE).unwrap().to_string(), PAGE);
    }

    #[test]
    fn only_text_between_two_markers_is_replaced() {
        let mut page = Page::read(PAGE).unwrap();
        page.put(&step(), "| new |\n| newer |\n");
        page.put(&Place::Machine, "");
        let expected = PAGE.replace("| old |\n", "| new |\n| newer |\n").replace("old\n", "");
        assert_eq!(page.to_string(), expected);
        assert_eq!(page.text(&step()), Some("| new |\n| newer |\n"));
        // New text can be replaced again.
        let mut page = Page::read(&page.to_string()).unwrap();
        page.put(&step(), "| old |\n");
        page.put(&Place::Machine, "old\n");
        assert_eq!(page.to_string(), PAGE);
    }

    #[test]
    fn a_marker_without_an_end_is_named() {
        let marker = "`<!-- table: The step, ns -->` has no `<!-- end -->`";
        let at_the_end = "<!-- machine -->\n<!-- end -->\n<!-- table: The step, ns -->\n| a |\n";
        assert_eq!(failure(at_the_end), marker);
        assert_eq!(failure(&format!("<!-- table: The step, ns -->\n{PAGE}")), marker);
    }

    #[test]
    fn a_marker_that_cannot_be_read_is_named() {
        assert_eq!(failure("\n<!-- table: -->\n"), "line 2: `<!-- table: -->` is incomplete");
        assert_eq!(failure("<!-- bars: A -->\n"), "line 1: `<!-- bars: A -->` is incomplete");
    }
}
