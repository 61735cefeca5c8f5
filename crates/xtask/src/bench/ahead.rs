//! The sentence below a table that says where a rival is ahead, so that nobody can forget to.

use super::cell::Cell;
use super::table::{Matrix, Table, is_ours};

/// More of them would be a second table.
const MOST_TOLD: usize = 4;

/// How the columns end that hold an algorithm to its own definition.
const PROMISE: &str = "its promise";

/// `None` for a table without rivals, and for one of ratios, which repeats what another one says. Of
/// tables about accuracy, those that hold everybody to a promise have a sentence of their own.
pub(super) fn sentence(table: &Table, rivals: &[String]) -> Option<String> {
    let matrix = table.matrix();
    let is_rival = |name: &str| rivals.iter().any(|rival| is_of(rival, name));
    if table.title.ends_with("ratios") || !matrix.contenders.iter().any(|name| is_rival(name)) {
        return None;
    }
    if table.title.starts_with("Accuracy") {
        let promises = matrix.cases.iter().any(|case| case.ends_with(PROMISE));
        return promises.then(|| of_promises(&matrix));
    }
    if !matrix.contenders.iter().any(|name| is_ours(name)) {
        return None;
    }
    let comparison = Comparison::of(&matrix, &table.title, is_rival);
    let ahead: Vec<_> = comparison.rivals().filter_map(|rival| comparison.told(rival)).collect();
    Some(match ahead.is_empty() {
        true => "No rival is ahead of tollgate here.".to_owned(),
        false => format!("**Ahead of tollgate here**: {}.", ahead.join("; ")),
    })
}

/// Who broke what it promises itself, how often, and how badly.
fn of_promises(matrix: &Matrix<'_>) -> String {
    let told = |contender: usize| {
        let cells = matrix.cases.iter().zip(&matrix.cells[contender]);
        let cells = cells.skip_while(|(case, _)| !case.ends_with(PROMISE));
        let broken = cells.filter(|(_, (_, cell))| cell.is_some_and(|cell| cell.median > 0.0));
        let broken: Vec<_> = broken.map(|(case, (text, _))| format!("{case}: {text}")).collect();
        let name = matrix.contenders[contender];
        (!broken.is_empty()).then(|| format!("{name} ({})", broken.join(", ")))
    };
    let broken: Vec<_> = (0..matrix.contenders.len()).filter_map(told).collect();
    match broken.is_empty() {
        true => "All of them keep their own promise here.".to_owned(),
        false => format!("**Break their own promise**: {}.", broken.join("; ")),
    }
}

struct Comparison<'a> {
    matrix: &'a Matrix<'a>,
    rivals: Vec<usize>,
    ours: Vec<usize>,
    cases: Vec<usize>,
    /// Whether more is better, in a case or in all of them.
    more: Vec<bool>,
}

impl<'a> Comparison<'a> {
    fn of(matrix: &'a Matrix<'a>, title: &str, is_rival: impl Fn(&str) -> bool) -> Self {
        let those = |of: &dyn Fn(&str) -> bool| {
            (0..matrix.contenders.len()).filter(|i| of(matrix.contenders[*i])).collect()
        };
        let is_more = |text: &str| text.contains("a second") || text.contains("of the bare");
        let counts = |case: &usize| {
            !["÷", "beyond the baseline", "busy"].iter().any(|no| matrix.cases[*case].contains(no))
        };
        Self {
            matrix,
            rivals: those(&|name| is_rival(name) && !name.contains('÷')),
            ours: those(&|name| is_ours(name) && !name.contains('÷')),
            cases: (0..matrix.cases.len()).filter(counts).collect(),
            more: matrix.cases.iter().map(|case| is_more(case) || is_more(title)).collect(),
        }
    }

    fn rivals(&self) -> impl Iterator<Item = usize> {
        self.rivals.iter().copied()
    }

    /// Where this rival is ahead of something of ours that it can be compared with.
    fn told(&self, rival: usize) -> Option<String> {
        let ours = self.comparable(rival);
        let ahead: Vec<_> =
            self.cases.iter().filter_map(|&case| self.behind(rival, &ours, case)).collect();
        let worst = ahead.iter().max_by(|a, b| a.factor.total_cmp(&b.factor))?;
        let name = self.matrix.contenders[rival];
        let all = self.cases.iter().filter(|case| self.cell(rival, **case).is_some()).count();
        Some(match ahead.len() {
            told if told <= MOST_TOLD => {
                let each: Vec<_> = ahead.iter().map(|behind| behind.text.as_str()).collect();
                format!("{name} in {}", each.join(", "))
            }
            told if told == all => format!("{name} everywhere, most in {}", worst.text),
            told => format!("{name} in {told} of {all}, most in {}", worst.text),
        })
    }

    /// What says the same of itself behind its first comma, like `admitted` or `X-RateLimit`; where
    /// this rival says nothing that any of ours does, those that say nothing other rivals say.
    fn comparable(&self, rival: usize) -> Vec<usize> {
        let names = &self.matrix.contenders;
        let kind = |contender: usize| names[contender].split_once(", ").map(|(_, kind)| kind);
        let alike = |kind: &str| {
            self.ours.iter().copied().filter(|i| names[*i].contains(kind)).collect::<Vec<_>>()
        };
        let own = kind(rival).map(alike).unwrap_or_default();
        if !own.is_empty() {
            return own;
        }
        let others: Vec<_> = self.rivals().filter_map(kind).collect();
        let is_free = |i: &usize| !others.iter().any(|kind| names[*i].contains(kind));
        self.ours.iter().copied().filter(is_free).collect()
    }

    /// What of ours is behind this rival in this case.
    fn behind(&self, rival: usize, ours: &[usize], case: usize) -> Option<Behind> {
        let theirs = self.cell(rival, case)?;
        let is_behind = |cell: &Cell| match self.more[case] {
            true => cell.median < theirs.median,
            false => cell.median > theirs.median,
        };
        let compared: Vec<_> =
            ours.iter().filter_map(|&i| Some((i, self.cell(i, case)?))).collect();
        let behind: Vec<_> = compared.iter().filter(|(_, cell)| is_behind(cell)).collect();
        let nearest = |a: &&&(usize, Cell), b: &&&(usize, Cell)| {
            let far = |cell: &Cell| (cell.median - theirs.median).abs();
            far(&a.1).total_cmp(&far(&b.1))
        };
        let (best, cell) = behind.iter().min_by(nearest)?;
        let only = match behind.len() == compared.len() {
            true => String::new(),
            false => format!(
                " of {}",
                behind
                    .iter()
                    .map(|(i, _)| self.matrix.contenders[*i])
                    .collect::<Vec<_>>()
                    .join(" and ")
            ),
        };
        let (their_text, our_text) = (self.median(rival, case), self.median(*best, case));
        let doubt = if cell.overlaps(&theirs) { ", within the spread" } else { "" };
        Some(Behind {
            factor: (cell.median / theirs.median).ln().abs(),
            text: format!(
                "{}{only} ({their_text} against {our_text}{doubt})",
                self.matrix.cases[case]
            ),
        })
    }

    fn cell(&self, contender: usize, case: usize) -> Option<Cell> {
        self.matrix.cells[contender][case].1
    }

    fn median(&self, contender: usize, case: usize) -> &str {
        let (text, _) = self.matrix.cells[contender][case];
        text.split(" (").next().unwrap_or(text)
    }
}

struct Behind {
    /// By how much, as a logarithm.
    factor: f64,
    text: String,
}

/// Whether a contender of this name is made of that crate: it begins with the crate's name, or with the
/// short form of a long one.
fn is_of(rival: &str, name: &str) -> bool {
    let short = rival.strip_suffix("-ratelimiter").unwrap_or(rival);
    [rival, short].iter().any(|rival| {
        name.strip_prefix(rival).is_some_and(|rest| {
            !rest.starts_with(|c: char| c.is_alphanumeric() || "-_".contains(c))
        })
    })
}

#[cfg(test)]
mod tests;
