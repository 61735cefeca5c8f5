//! The schema in the repository is the one that the types generate.

use std::fs;
use std::path::Path;

#[test]
fn the_schema_that_is_checked_in_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema.json");
    let mut generated =
        serde_json::to_string_pretty(&sluicegate_config::schema()).expect("JSON can be printed");
    generated.push('\n');
    if std::env::var_os("REWRITE_SCHEMA").is_some() {
        fs::write(&path, &generated).expect("the file can be written");
    }
    let checked_in = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        checked_in == generated,
        "schema.json is not what the types say: rewrite it with \
         `REWRITE_SCHEMA=1 cargo test -p sluicegate-config --test schema`",
    );
}

/// Authors of a file read the schema, not the sources.
#[test]
fn everything_in_the_schema_is_described() {
    let schema = sluicegate_config::schema();
    let mut count = 0;
    for (name, part) in schema["$defs"].as_object().expect("definitions") {
        assert!(part["description"].is_string(), "{name} has no description");
        for (field, value) in part["properties"].as_object().into_iter().flatten() {
            assert!(value["description"].is_string(), "{name}.{field} has no description");
            count += 1;
        }
    }
    assert!(count > 50, "only {count} fields were found");
}
