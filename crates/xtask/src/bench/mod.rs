//! The benchmarks: runs them, writes their tables into `BENCHMARKS.md` and `docs/benchmarks/`, and draws the charts.

mod ahead;
mod behind;
mod book;
mod cell;
mod chart;
mod command;
mod machine;
mod module;
mod page;
mod program;
mod table;
mod wanted;
mod weight;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::time::Instant;

pub(crate) use self::chart::draw_over_time;

use self::book::Book;
use self::machine::Machine;
use self::page::Place;
use self::table::Table;
use self::wanted::Wanted;
use crate::step::{Failure, Seconds, root};

/// By title.
type Tables = BTreeMap<String, Table>;

/// Runs the benchmarks that the arguments ask for, and puts their output into its places on the pages. Successful
/// results are kept even if another benchmark failed.
pub(crate) fn bench(arguments: Vec<OsString>) -> Result<(), Failure> {
    let manifest = read("benches/Cargo.toml")?;
    let mut programs = program::all(&manifest);
    programs.push(weight::PROGRAM.to_owned());
    let wanted = Wanted::read(arguments, &programs)?;
    let mut book = Book::open()?;
    let mut releases = program::releases(&manifest, &read("Cargo.lock")?);
    releases.push(format!("{} {}", module::NAME, module::RELEASE));
    releases.push(format!("{} {}", command::NAME, command::RELEASE));
    let machine = Machine::here(&releases);
    let times_anything = wanted.programs.iter().any(|program| program != weight::PROGRAM);
    if times_anything && !wanted.is_everything() {
        machine.check(book.text(&Place::Machine).unwrap_or_default())?;
    }

    let started = Instant::now();
    if times_anything {
        program::build()?;
    }
    let outcome = program::run(&wanted);
    let mut problems = outcome.problems;
    let mut tables = Tables::new();
    for table in table::printed_in(&outcome.printed) {
        if let Some(other) = tables.insert(table.title.clone(), table) {
            problems.push(format!("two tables have the title `{}`", other.title));
        }
    }
    problems.extend(wanted.in_vain(&tables.keys().map(String::as_str).collect::<Vec<_>>()));
    problems.extend(book.homeless(tables.keys()));
    if wanted.is_everything() {
        problems.extend(book.empty(|title| tables.contains_key(title)));
    }
    let mut rivals = program::rivals(&manifest);
    rivals.extend([module::NAME, command::NAME].map(str::to_owned));
    write_tables(&mut book, &tables, &rivals, &machine, &wanted);
    problems.extend(draw_charts(&mut book)?);
    book.tell_where_behind();
    book.save()?;

    eprintln!("\n{}: {} tables, in {}.", book::FRONT, tables.len(), Seconds(started.elapsed()));
    match problems.is_empty() {
        true => Ok(()),
        false => Err(Failure(format!("benchmarks: {}", problems.join("; ")))),
    }
}

/// After a full run the front page says once when it was. Otherwise each new table says it.
fn write_tables(
    book: &mut Book,
    tables: &Tables,
    rivals: &[String],
    machine: &Machine,
    wanted: &Wanted,
) {
    let run = machine::run_of(&wanted.command());
    for (title, table) in tables {
        let mut text = format!("\n{table}");
        if let Some(sentence) = ahead::sentence(table, rivals) {
            text += &format!("\n{sentence}\n");
        }
        if !wanted.is_everything() {
            text += &format!("\nBy {run}.\n");
        }
        book.put(&Place::Table(title.clone()), &format!("{text}\n"));
    }
    if wanted.is_everything()
        || book.text(&Place::Machine).is_some_and(|text| text.trim().is_empty())
    {
        book.put(&Place::Machine, &format!("\n{machine}- **Run**: {run}.\n\n"));
    }
}

/// Draws the charts of all tables as they are on the pages. Returns why some could not be drawn.
fn draw_charts(book: &mut Book) -> Result<Vec<String>, Failure> {
    let mut problems = Vec::new();
    for (wish, way) in book.charts() {
        let Some(table) = book.table(&wish.title) else { continue };
        match wish.draw(&table) {
            Ok(picture) => {
                write(&wish.path(), &picture)?;
                let link = format!("\n{}\n", wish.link(&way));
                book.put(&Place::Chart(wish), &link);
            }
            Err(problem) => problems.push(problem),
        }
    }
    Ok(problems)
}

fn read(path: &str) -> Result<String, Failure> {
    fs::read_to_string(root().join(path)).map_err(|error| Failure(format!("{path}: {error}")))
}

fn write(path: &str, text: &str) -> Result<(), Failure> {
    fs::write(root().join(path), text).map_err(|error| Failure(format!("{path}: {error}")))
}
