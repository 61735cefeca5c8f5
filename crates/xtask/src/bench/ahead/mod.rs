//! The sentence below a table that says where a rival is ahead. It is generated, so it cannot be forgotten.

mod comparison;

use self::comparison::Comparison;
use super::table::{Matrix, Table, is_ours};

/// The ends of the columns that compare an algorithm with its own definition.
const PROMISE: &str = "its promise";

/// `None` for a table without rivals, and for a table whose figures are neither better nor worse, or repeat those of
/// another. Among tables about accuracy, those about promises have their own sentence.
pub(super) fn sentence(table: &Table, rivals: &[String]) -> Option<String> {
    let matrix = table.matrix();
    let is_rival = |name: &str| rivals.iter().any(|rival| is_of(rival, name));
    if !matrix.contenders.iter().any(|name| is_rival(name)) {
        return None;
    }
    if table.title.starts_with("Accuracy") {
        let promises = matrix.cases.iter().any(|case| case.ends_with(PROMISE));
        return promises.then(|| of_promises(&matrix));
    }
    if !is_contest(&table.title) || !matrix.contenders.iter().any(|name| is_ours(name)) {
        return None;
    }
    Some(Comparison::of(&matrix, &table.title, is_rival).sentence())
}

/// Whether a table with this title contains times, sizes, crates or requests a second.
fn is_contest(title: &str) -> bool {
    let ends = [", ns", ", resident MB"].iter().any(|unit| title.ends_with(unit));
    let starts = ["Resident", "Allocations", "Over the wire", "Redis", "Weight"];
    ends || starts.iter().any(|start| title.starts_with(start))
}

/// Which contenders broke their own promise, how often, and how badly.
fn of_promises(matrix: &Matrix<'_>) -> String {
    let told = |contender: usize| {
        let cells = matrix.cases.iter().zip(&matrix.cells[contender]);
        let cells = cells.skip_while(|(case, _)| !case.ends_with(PROMISE));
        let broken = cells.filter(|(_, (_, cell))| cell.is_some_and(|cell| cell.median > 0.0));
        let broken: Vec<_> = broken.map(|(case, (text, _))| format!("{case}: {text}")).collect();
        let name = matrix.contenders[contender];
        (!broken.is_empty()).then(|| format!("**{name}** ({})", broken.join(", ")))
    };
    let broken: Vec<_> = (0..matrix.contenders.len()).filter_map(told).collect();
    match broken.is_empty() {
        true => "All of them keep their own promise here.".to_owned(),
        false => format!("Break their own promise: {}.", broken.join("; ")),
    }
}

/// Whether a contender with this name belongs to that crate: it begins with the crate's name, or with the short form
/// of a long one.
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
