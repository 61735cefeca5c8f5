//! The page: text by hand, and between pairs of comments what the benchmarks put there.
//!
//! ```text
//! <!-- machine -->
//! <!-- table: The step, ns -->
//! <!-- lines bench-table: The table, ns | `u64` -->
//! <!-- bars bench-layer: The layer, ns | request -->
//! ```
//!
//! and after each of them, some lines further down, `<!-- end -->`. A chart has a name, the title of
//! the table that it shows, and what part of the table, if not all.

use std::collections::HashSet;
use std::fmt;

use super::chart::Wish;

/// What the page consists of, in order.
#[derive(Debug)]
pub(super) struct Page {
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    ByHand(String),
    Block { place: Place, marker: String, text: String },
}

/// What a marker makes room for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Machine,
    /// With this title.
    Table(String),
    Chart(Wish),
}

const END: &str = "<!-- end -->";

impl Page {
    /// The error says what is wrong with which marker.
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
        let page = Self { parts };
        page.mistake().map_or(Ok(page), Err)
    }

    fn mistake(&self) -> Option<String> {
        let mut seen = HashSet::new();
        let mut twice = self.blocks().filter(|(place, ..)| !seen.insert(*place));
        if let Some((_, marker, _)) = twice.next() {
            return Some(format!("`{marker}` stands there twice"));
        }
        if self.text(&Place::Machine).is_none() {
            return Some("there is no `<!-- machine -->`".to_owned());
        }
        self.blocks().find_map(|(place, marker, _)| match place {
            Place::Chart(wish) if self.text(&Place::Table(wish.title.clone())).is_none() => {
                Some(format!("`{marker}` names a table that no other marker names"))
            }
            _ => None,
        })
    }

    fn blocks(&self) -> impl Iterator<Item = (&Place, &str, &str)> {
        self.parts.iter().filter_map(|part| match part {
            Part::Block { place, marker, text } => Some((place, &**marker, &**text)),
            Part::ByHand(_) => None,
        })
    }

    /// What stands at this place now.
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

    pub(super) fn charts(&self) -> impl Iterator<Item = &Wish> {
        self.blocks().filter_map(|(place, ..)| match place {
            Place::Chart(wish) => Some(wish),
            _ => None,
        })
    }

    /// The titles among these that have no place here.
    pub(super) fn homeless<'a>(&self, titles: impl Iterator<Item = &'a String>) -> Vec<String> {
        let homeless = titles.filter(|&title| self.text(&Place::Table(title.clone())).is_none());
        homeless
            .map(|title| {
                format!("BENCHMARKS.md has no `<!-- table: {title} -->`, which was printed")
            })
            .collect()
    }

    /// The places for tables of which `has` knows nothing.
    pub(super) fn empty(&self, has: impl Fn(&str) -> bool) -> Vec<String> {
        let missing = self.blocks().filter(|(place, ..)| match place {
            Place::Table(title) => !has(title),
            _ => false,
        });
        missing
            .map(|(_, marker, _)| format!("no program printed the table of `{marker}`"))
            .collect()
    }
}

impl Place {
    /// `None` for a line that is no marker.
    fn read(line: &str) -> Result<Option<Self>, String> {
        let comment = line.trim().strip_prefix("<!--").and_then(|line| line.strip_suffix("-->"));
        let Some(comment) = comment.map(str::trim) else { return Ok(None) };
        let (head, rest) = comment
            .split_once(':')
            .map_or((comment, ""), |(head, rest)| (head.trim(), rest.trim()));
        match head.split_whitespace().collect::<Vec<_>>()[..] {
            ["machine"] => Ok(Some(Self::Machine)),
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
    fn only_what_stands_between_two_markers_is_replaced() {
        let mut page = Page::read(PAGE).unwrap();
        page.put(&step(), "| new |\n| newer |\n");
        page.put(&Place::Machine, "");
        let expected = PAGE.replace("| old |\n", "| new |\n| newer |\n").replace("old\n", "");
        assert_eq!(page.to_string(), expected);
        assert_eq!(page.text(&step()), Some("| new |\n| newer |\n"));
        // What is new may be replaced again.
        let mut page = Page::read(&page.to_string()).unwrap();
        page.put(&step(), "| old |\n");
        page.put(&Place::Machine, "old\n");
        assert_eq!(page.to_string(), PAGE);
    }

    #[test]
    fn a_title_without_a_marker_is_named_and_a_marker_without_a_table() {
        let page = Page::read(PAGE).unwrap();
        let titles = ["The step, ns".to_owned(), "The stairs".to_owned()];
        assert_eq!(
            page.homeless(titles.iter()),
            ["BENCHMARKS.md has no `<!-- table: The stairs -->`, which was printed"]
        );
        assert_eq!(page.empty(|title| title == "The step, ns"), [""; 0]);
        assert_eq!(
            page.empty(|_| false),
            ["no program printed the table of `<!-- table: The step, ns -->`"]
        );
    }

    #[test]
    fn a_marker_without_an_end_is_named() {
        let marker = "`<!-- table: The step, ns -->` has no `<!-- end -->`";
        let at_the_end = "<!-- machine -->\n<!-- end -->\n<!-- table: The step, ns -->\n| a |\n";
        assert_eq!(failure(at_the_end), marker);
        assert_eq!(failure(&format!("<!-- table: The step, ns -->\n{PAGE}")), marker);
    }

    #[test]
    fn a_marker_that_stands_there_twice_is_named() {
        let twice = format!("{PAGE}<!-- table: The step, ns -->\n<!-- end -->\n");
        assert_eq!(failure(&twice), "`<!-- table: The step, ns -->` stands there twice");
    }

    #[test]
    fn a_marker_that_cannot_be_read_is_named() {
        assert_eq!(failure("\n<!-- table: -->\n"), "line 2: `<!-- table: -->` is incomplete");
        assert_eq!(failure("<!-- bars: A -->\n"), "line 1: `<!-- bars: A -->` is incomplete");
        assert_eq!(failure("Nothing.\n"), "there is no `<!-- machine -->`");
    }

    #[test]
    fn a_chart_of_no_table_is_named() {
        let chart = "<!-- bars bench-x: The stairs -->";
        assert_eq!(
            failure(&format!("{PAGE}{chart}\n<!-- end -->\n")),
            format!("`{chart}` names a table that no other marker names")
        );
    }
}
