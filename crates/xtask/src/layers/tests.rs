use super::graph::{circles, edges};
use super::imports::Source;

fn names(files: &[(&str, &str)]) -> (Vec<(String, String)>, Vec<Vec<String>>) {
    let sources: Vec<_> = files.iter().map(|(file, text)| Source::read(file, text)).collect();
    let edges = edges(&sources);
    let name = |at: usize| sources[at].file.clone();
    let circles = circles(sources.len(), &edges);
    (
        edges.iter().map(|(from, to)| (name(*from), name(*to))).collect(),
        circles.into_iter().map(|circle| circle.into_iter().map(name).collect()).collect(),
    )
}

fn pair(from: &str, to: &str) -> (String, String) {
    (from.to_owned(), to.to_owned())
}

#[test]
fn imports_are_found_in_use_items_and_in_paths() {
    let (edges, circles) = names(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::{b::{self, Thing as Other}, c::*};\nuse std::fmt;"),
        ("b.rs", "pub struct Thing; // use crate::a::Not;\nfn f() { crate::c::run() }"),
        ("c.rs", "pub fn run() {}\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}"),
    ]);
    assert_eq!(edges, [pair("a.rs", "b.rs"), pair("a.rs", "c.rs"), pair("b.rs", "c.rs")]);
    assert!(circles.is_empty());
}

#[test]
fn a_re_exported_name_counts_as_imported_from_where_it_is_defined() {
    let (edges, _) = names(&[
        ("lib.rs", "pub use self::a::Thing;"),
        ("a/mod.rs", "mod inner;\npub use self::inner::Thing;"),
        ("a/inner.rs", "pub struct Thing;"),
        ("b.rs", "use crate::Thing;\nuse super::a::Thing as Same;"),
    ]);
    assert!(edges.contains(&pair("b.rs", "a/inner.rs")), "{edges:?}");
    assert!(!edges.contains(&pair("b.rs", "a/mod.rs")), "{edges:?}");
}

#[test]
fn files_that_import_each_other_are_a_circle() {
    let (_, circles) = names(&[
        ("lib.rs", ""),
        ("a.rs", "use crate::b::B;"),
        ("b.rs", "use super::c::C;"),
        ("c.rs", "fn f(_: crate::a::A) {}"),
        ("d.rs", "use crate::a::A;"),
    ]);
    assert_eq!(circles, [["a.rs", "b.rs", "c.rs"]]);
}

#[test]
fn a_folder_is_one_room() {
    let (_, circles) = names(&[
        ("a/mod.rs", "mod part;\nuse self::part::Part;\npub struct Whole(Part);"),
        ("a/part.rs", "use super::Whole;\npub struct Part;"),
    ]);
    assert!(circles.is_empty(), "{circles:?}");
}

#[test]
fn the_layers_of_this_project_hold() {
    if let Err(failure) = super::check() {
        panic!("{failure}");
    }
}
