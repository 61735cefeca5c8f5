//! The root of a crate holds the names that a user types in the first hour. Everything else is in a module.

use std::fs;

const MOST: usize = 30;

/// The names that the `pub` items of a `lib.rs` put into the root of its crate. Items inside of inline modules
/// are indented, and are not in the root.
fn root_names(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut items = source.split_inclusive('\n').peekable();
    while let Some(line) = items.next() {
        let Some(mut item) = line.strip_prefix("pub ").map(str::to_owned) else { continue };
        if item.starts_with("use ") {
            while !item.contains(';') {
                item.push_str(items.next().expect("an end of the `use`"));
            }
            let list = item.trim_start_matches("use ").trim_end().trim_end_matches(';');
            let list = match list.split_once('{') {
                Some((_, list)) => list.trim_end_matches('}'),
                None => list.rsplit("::").next().unwrap(),
            };
            assert!(!list.contains('*'), "a glob hides how many names there are: {item}");
            assert!(!list.contains('{'), "one list for each `use`: {item}");
            let entries = list.split(',').map(str::trim).filter(|name| !name.is_empty());
            names.extend(entries.map(|name| name.rsplit(" as ").next().unwrap().to_owned()));
        } else {
            let mut words = item.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            let kinds = ["mod", "type", "struct", "enum", "trait", "fn", "const", "async"];
            let name = words.find(|word| !word.is_empty() && !kinds.contains(word)).unwrap();
            names.push(name.to_owned());
        }
    }
    names
}

#[test]
fn the_roots_that_users_type_from_hold_thirty_names_at_most() {
    let crates = super::root().join("crates");
    for name in ["sluicegate", "sluicegate-axum", "sluicegate-actix"] {
        let source = fs::read_to_string(crates.join(name).join("src/lib.rs")).unwrap();
        let names = root_names(&source);
        assert!(names.iter().any(|name| name == "Limit"), "{name}: {names:?}");
        assert!(names.len() <= MOST, "{name} has {} names: {names:?}", names.len());
    }
}

#[test]
fn every_kind_of_item_is_counted_once() {
    let source = "\
mod private;
pub mod guide;
#[doc(inline)]
pub use core::{
    Claim, Cost as Price,
    key,
};
pub use self::layer::RateLimitLayer;
pub(crate) use self::hidden::Hidden;
pub type Layer<R> = service::LayerFor<R>;
pub mod adapter {
    pub use core::adapter::Charge;
}
pub const fn limit() {}
";
    let names = ["guide", "Claim", "Price", "key", "RateLimitLayer", "Layer", "adapter", "limit"];
    assert_eq!(root_names(source), names);
}
