//! Parses YAML into nodes with locations.

use saphyr::{LoadableYamlNode, MarkedYaml, ScalarStyle, YamlData, YamlLoader};
use saphyr_parser::{Event, Marker, Parser, ScanError, SpannedEventReceiver};

use super::diagnostics::Diagnostics;
use crate::source::{DocumentPath, SourceLocation};

/// The deepest nesting of lists and maps. A descriptor needs two levels for each of its entries. Readers are
/// recursive.
const DEEPEST: usize = 64;

/// The most nodes that all aliases (`*name`) may expand to.
const ALIASED: usize = 10_000;

/// How many nodes a file may have. Each takes about 460 bytes, and a list of single letters has one for every two
/// bytes of text: as long as a file may be, that would be 1.4 GB. A descriptor with a limit has eight.
const NODES: usize = 1_000_000;

/// A node: text, a list, a map, or nothing.
pub(super) type Node<'t> = MarkedYaml<'t>;

/// The location of a node.
pub(super) fn location(node: &Node<'_>) -> SourceLocation {
    at(&node.span.start)
}

fn at(marker: &Marker) -> SourceLocation {
    SourceLocation { line: marker.line(), column: marker.col() + 1 }
}

/// The only document of a file. Scalars are texts as written, so a value `010` is not eight.
pub(super) fn read<'t>(text: &'t str, found: &mut Diagnostics) -> Option<Node<'t>> {
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
    // Event by event, because `Parser::load` recurses as deep as the text.
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| unreadable(&error))?;
        depth = deeper(depth, &event);
        if depth > DEEPEST {
            let what =
                format!("lists and maps are nested too deeply: expected {DEEPEST} levels at most");
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

/// A node without its tag (`!name`), if any.
pub(super) fn bare<'n, 't>(mut node: &'n Node<'t>) -> &'n YamlData<'t, Node<'t>> {
    while let YamlData::Tagged(_, inner) = &node.data {
        node = inner;
    }
    &node.data
}

/// The text of a scalar. `None` for `null` and other nodes.
pub(super) fn scalar<'n>(node: &'n Node<'_>) -> Option<&'n str> {
    match bare(node) {
        YamlData::Representation(text, style, _) => {
            let null = matches!(text.as_ref(), "" | "~" | "null" | "Null" | "NULL");
            (!null || *style != ScalarStyle::Plain).then_some(text.as_ref())
        }
        _ => None,
    }
}

/// Whether a node is `null` or comes from an empty file.
pub(super) fn is_nothing(node: &Node<'_>) -> bool {
    match bare(node) {
        YamlData::Representation(..) => scalar(node).is_none(),
        YamlData::BadValue => true,
        _ => false,
    }
}
