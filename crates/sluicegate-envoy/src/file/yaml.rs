//! Text to nodes that know where they stand.

use saphyr::{LoadableYamlNode, MarkedYaml, ScalarStyle, YamlData, YamlLoader};
use saphyr_parser::{Event, Marker, Parser, ScanError, SpannedEventReceiver};

use super::found::Found;
use sluicegate_config::SourceLocation;
use sluicegate_config::reader::DocumentPath;

/// How deep lists and maps may stand in each other. A descriptor needs two levels for each of its
/// entries, and whatever reads a level calls itself for the next.
const DEEPEST: usize = 64;

/// How many nodes aliases (`*name`) may stand for, all together.
const ALIASED: usize = 10_000;

/// How many nodes a file may have. Each takes about 460 bytes, and a list of single letters has one for every two
/// bytes of text: as long as a file may be, that would be 1.4 GB. A descriptor with a limit has eight.
const NODES: usize = 1_000_000;

/// A node: text, a list, a map, or nothing.
pub(super) type Node<'t> = MarkedYaml<'t>;

/// Where a node begins.
pub(super) fn location(node: &Node<'_>) -> SourceLocation {
    at(&node.span.start)
}

fn at(marker: &Marker) -> SourceLocation {
    SourceLocation { line: marker.line(), column: marker.col() + 1 }
}

/// The one document that a file holds, its scalars as they are written: a value `010` is not eight.
pub(super) fn read<'t>(text: &'t str, found: &mut Found) -> Option<Node<'t>> {
    match load(text) {
        Err((location, what)) => {
            found.problem(&DocumentPath::Root, location, what);
            None
        }
        Ok(mut documents) => {
            if let Some(second) = documents.get(1) {
                let what = "a second document begins: expected one, with one domain";
                found.problem(&DocumentPath::Root, location(second), what);
            }
            let nothing = || Node::from_bare_yaml(saphyr::Yaml::BadValue);
            Some(if documents.is_empty() { nothing() } else { documents.swap_remove(0) })
        }
    }
}

fn load(text: &str) -> Result<Vec<Node<'_>>, (SourceLocation, String)> {
    let mut loader = YamlLoader::default();
    loader.early_parse(false);
    loader.alias_limit(ALIASED);
    let (mut depth, mut nodes) = (0, 0);
    // One event after the other, instead of `Parser::load`: that goes as deep as the text says.
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| unreadable(&error))?;
        depth = deeper(depth, &event);
        if depth > DEEPEST {
            let what = format!("lists and maps stand in each other: expected {DEEPEST} at most");
            return Err((at(&span.start), what));
        }
        nodes += usize::from(is_node(&event));
        if nodes > NODES {
            let what = format!("there are too many values and names: expected {NODES} at most");
            return Err((at(&span.start), what));
        }
        loader.on_event(event, span);
        if let Some(error) = loader.error() {
            return Err(unreadable(error));
        }
    }
    Ok(loader.into_documents())
}

fn deeper(depth: usize, event: &Event<'_>) -> usize {
    match event {
        Event::SequenceStart(..) | Event::MappingStart(..) => depth + 1,
        Event::SequenceEnd | Event::MappingEnd => depth - 1,
        _ => depth,
    }
}

const fn is_node(event: &Event<'_>) -> bool {
    matches!(event, Event::Scalar(..) | Event::SequenceStart(..) | Event::MappingStart(..))
}

fn unreadable(error: &ScanError) -> (SourceLocation, String) {
    (at(error.marker()), format!("this is not YAML: {}", error.info()))
}

/// A node without the tag (`!name`) that it may wear.
pub(super) fn bare<'n, 't>(mut node: &'n Node<'t>) -> &'n YamlData<'t, Node<'t>> {
    while let YamlData::Tagged(_, inner) = &node.data {
        node = inner;
    }
    &node.data
}

/// The text of a scalar; `None` for `null`, and for what is not a scalar.
pub(super) fn scalar<'n>(node: &'n Node<'_>) -> Option<&'n str> {
    match bare(node) {
        YamlData::Representation(text, style, _) => {
            let null = matches!(text.as_ref(), "" | "~" | "null" | "Null" | "NULL");
            (!null || *style != ScalarStyle::Plain).then_some(text.as_ref())
        }
        _ => None,
    }
}

/// Whether a node says nothing: `null`, or what an empty file holds.
pub(super) fn is_nothing(node: &Node<'_>) -> bool {
    match bare(node) {
        YamlData::Representation(..) => scalar(node).is_none(),
        YamlData::BadValue => true,
        _ => false,
    }
}
