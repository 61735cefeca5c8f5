//! All pages: `BENCHMARKS.md` and those in `docs/benchmarks/`.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;

use super::behind;
use super::chart::Wish;
use super::page::{Page, Place};
use super::table::{self, Table};
use super::{read, write};
use crate::step::{Failure, root};

/// The front page. The others contain the tables.
pub(super) const FRONT: &str = "BENCHMARKS.md";

const TABLES: &str = "docs/benchmarks";

/// Pages with their paths from the root of the repository. Each table and chart has one place in all of them.
#[derive(Debug)]
pub(super) struct Book {
    pages: Vec<(String, Page)>,
}

impl Book {
    /// The pages as they are on disk.
    pub(super) fn open() -> Result<Self, Failure> {
        let unreadable = |error| Failure(format!("{TABLES}: {error}"));
        let mut paths = vec![FRONT.to_owned()];
        for entry in fs::read_dir(root().join(TABLES)).map_err(unreadable)? {
            let name = entry.map_err(unreadable)?.file_name().to_string_lossy().into_owned();
            if name.ends_with(".md") {
                paths.push(format!("{TABLES}/{name}"));
            }
        }
        paths[1..].sort();
        let texts: Result<Vec<_>, _> =
            paths.into_iter().map(|path| Ok((read(&path)?, path))).collect();
        let texts = texts?;
        Self::of(texts.iter().map(|(text, path)| (path.as_str(), text.as_str()))).map_err(Failure)
    }

    /// The error names the problem and the page.
    fn of<'a>(texts: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, String> {
        let page = |(path, text): (&str, &str)| match Page::read(text) {
            Ok(page) => Ok((path.to_owned(), page)),
            Err(problem) => Err(format!("{path}: {problem}")),
        };
        let pages: Result<_, _> = texts.into_iter().map(page).collect();
        let book = Self { pages: pages? };
        book.mistake().map_or(Ok(book), Err)
    }

    fn mistake(&self) -> Option<String> {
        let mut seen = HashSet::new();
        for (path, place, marker, _) in self.blocks() {
            if !seen.insert(place) {
                return Some(format!("{path}: `{marker}` is there twice"));
            }
        }
        if self.text(&Place::Machine).is_none() {
            return Some("there is no `<!-- machine -->`".to_owned());
        }
        self.blocks().find_map(|(path, place, marker, _)| match place {
            Place::Chart(wish) if self.text(&Place::Table(wish.title.clone())).is_none() => {
                Some(format!("{path}: `{marker}` names a table that no other marker names"))
            }
            _ => None,
        })
    }

    /// Writes every page.
    pub(super) fn save(&self) -> Result<(), Failure> {
        self.pages.iter().try_for_each(|(path, page)| write(path, &page.to_string()))
    }

    /// The path of the page, the place, its marker and the text that is there now.
    fn blocks(&self) -> impl Iterator<Item = (&str, &Place, &str, &str)> {
        self.pages.iter().flat_map(|(path, page)| {
            page.blocks().map(|(place, marker, text)| (path.as_str(), place, marker, text))
        })
    }

    pub(super) fn text(&self, wanted: &Place) -> Option<&str> {
        self.pages.iter().find_map(|(_, page)| page.text(wanted))
    }

    /// The table of this title, if it was printed.
    pub(super) fn table(&self, title: &str) -> Option<Table> {
        let text = self.text(&Place::Table(title.to_owned()))?;
        table::printed_in(&format!("### {title}\n{text}")).pop()
    }

    /// Puts `new` at this place, if there is one.
    pub(super) fn put(&mut self, wanted: &Place, new: &str) {
        for (_, page) in &mut self.pages {
            page.put(wanted, new);
        }
    }

    /// The charts, each with the path from its page to the root.
    pub(super) fn charts(&self) -> Vec<(Wish, String)> {
        let chart = |(path, place, ..): (&str, &Place, &str, &str)| match place {
            Place::Chart(wish) => Some((wish.clone(), "../".repeat(path.matches('/').count()))),
            _ => None,
        };
        self.blocks().filter_map(chart).collect()
    }

    /// Lists again in which tables rivals are ahead, from the sentences below the tables.
    pub(super) fn tell_where_behind(&mut self) {
        let behind = self.behind();
        self.put(&Place::Behind, &behind);
    }

    fn behind(&self) -> String {
        let mut lines = String::from("\n| table | ahead of sluicegate |\n| --- | --- |\n");
        for (path, place, _, text) in self.blocks() {
            let Place::Table(title) = place else { continue };
            let ahead = behind::ahead(text);
            if !ahead.is_empty() {
                _ = writeln!(lines, "| [{title}]({path}) | {} |", ahead.join("; "));
            }
        }
        lines + "\n"
    }

    /// The titles among these that have no place on any page.
    pub(super) fn homeless<'a>(&self, titles: impl Iterator<Item = &'a String>) -> Vec<String> {
        let homeless = titles.filter(|&title| self.text(&Place::Table(title.clone())).is_none());
        homeless
            .map(|title| format!("no page has `<!-- table: {title} -->`, which was printed"))
            .collect()
    }

    /// The places for tables that `has` does not know.
    pub(super) fn empty(&self, has: impl Fn(&str) -> bool) -> Vec<String> {
        let missing = self.blocks().filter(|(_, place, ..)| match place {
            Place::Table(title) => !has(title),
            _ => false,
        });
        missing
            .map(|(path, _, marker, _)| {
                format!("no program printed the table of `{marker}` in {path}")
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::draw_charts;
    use super::*;

    const FRONT_PAGE: &str = "\
<!-- machine -->
<!-- end -->
<!-- behind -->
<!-- end -->
<!-- bars bench-step: The step, ns | admitted -->
<!-- end -->
";

    const STEP_PAGE: &str = "\
<!-- table: The step, ns -->
| old |

Ahead of sluicegate here: **governor** (10 against 20).
<!-- end -->
<!-- lines bench-steps: The step, ns -->
<!-- end -->
";

    fn book() -> Book {
        Book::of([(FRONT, FRONT_PAGE), ("docs/benchmarks/step.md", STEP_PAGE)]).unwrap()
    }

    fn failure(front: &str, other: &str) -> String {
        Book::of([(FRONT, front), ("docs/benchmarks/other.md", other)]).expect_err("a mistake")
    }

    #[test]
    fn a_chart_is_linked_from_the_page_that_it_is_on() {
        let ways: Vec<_> = book().charts().into_iter().map(|(_, way)| way).collect();
        assert_eq!(ways, ["", "../../"]);
    }

    #[test]
    fn a_rival_that_is_ahead_in_a_table_is_on_the_front_page() {
        let mut book = book();
        book.tell_where_behind();
        let row = "| [The step, ns](docs/benchmarks/step.md) | governor (10 against 20) |";
        let text = book.text(&Place::Behind).unwrap();
        assert!(text.lines().any(|line| line == row), "{text}");
    }

    #[test]
    fn a_title_without_a_marker_is_named_and_a_marker_without_a_table() {
        let titles = ["The step, ns".to_owned(), "The stairs".to_owned()];
        assert_eq!(
            book().homeless(titles.iter()),
            ["no page has `<!-- table: The stairs -->`, which was printed"]
        );
        assert_eq!(book().empty(|title| title == "The step, ns"), [""; 0]);
        assert_eq!(
            book().empty(|_| false),
            ["no program printed the table of `<!-- table: The step, ns -->` in \
              docs/benchmarks/step.md"]
        );
    }

    #[test]
    fn a_marker_that_is_there_twice_is_named() {
        let marker = "<!-- table: The step, ns -->";
        let twice = format!("{marker}\n<!-- end -->\n{marker}\n<!-- end -->\n");
        assert_eq!(
            failure(&format!("{FRONT_PAGE}{STEP_PAGE}"), STEP_PAGE),
            format!("docs/benchmarks/other.md: `{marker}` is there twice")
        );
        assert_eq!(
            failure("<!-- machine -->\n<!-- end -->\n", &twice),
            format!("docs/benchmarks/other.md: `{marker}` is there twice")
        );
    }

    #[test]
    fn a_book_says_on_which_machine_it_was_measured() {
        assert_eq!(failure("Nothing.\n", STEP_PAGE), "there is no `<!-- machine -->`");
    }

    #[test]
    fn a_chart_of_no_table_is_named() {
        let marker = "<!-- bars bench-step: The step, ns | admitted -->";
        assert_eq!(
            failure(FRONT_PAGE, ""),
            format!("{FRONT}: `{marker}` names a table that no other marker names")
        );
    }

    #[test]
    fn the_pages_of_this_repository_can_be_read_and_say_where_rivals_are_ahead() {
        let mut book = Book::open().unwrap_or_else(|failure| panic!("{failure}"));
        let before = book.text(&Place::Behind).unwrap().to_owned();
        book.tell_where_behind();
        if std::env::var_os("REWRITE_BENCHMARKS").is_some() {
            let problems =
                draw_charts(&mut book).and_then(|problems| book.save().map(|()| problems));
            assert_eq!(problems.unwrap_or_else(|failure| panic!("{failure}")), [""; 0]);
        }
        assert_eq!(book.text(&Place::Behind).unwrap(), before);
    }
}
