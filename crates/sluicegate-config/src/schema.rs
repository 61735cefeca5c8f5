use crate::document::Document;

/// The JSON Schema of a document, for editors that check a file while it is written.
///
/// It is the same as `schema.json` beside this crate's sources.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Document).to_value()
}
