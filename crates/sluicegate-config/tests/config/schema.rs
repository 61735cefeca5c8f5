//! The schema in the repository is the one that the types generate.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};
use sluicegate_config::read_json;

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
         `REWRITE_SCHEMA=1 cargo test -p sluicegate-config --all-features --test config schema`",
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

/// The schema comes from the types, and some of the reading is written by hand.
#[test]
fn an_example_of_every_alternative_of_the_schema_is_read() {
    let schema = sluicegate_config::schema();
    let examples =
        Examples { definitions: &schema["$defs"], inside: Vec::new(), is_short: false }.of(&schema);
    for example in &examples {
        if let Err(problems) = read_json(&example.to_string()) {
            panic!("{example}: {problems}");
        }
    }
    assert!(examples.len() > 300, "only {} examples", examples.len());
}

/// The names in an error about a key are those of the schema.
#[test]
fn the_keys_that_are_read_are_those_of_the_schema() {
    let schema = sluicegate_config::schema();
    let (mut words, mut tables) = (BTreeSet::new(), BTreeSet::new());
    let mut alternatives = vec![&schema["$defs"]["Key"]];
    while let Some(one) = alternatives.pop() {
        alternatives.extend(one["oneOf"].as_array().into_iter().flatten());
        alternatives.extend(one["anyOf"].as_array().into_iter().flatten());
        let named = one["enum"].as_array().into_iter().flatten().chain(one.get("const"));
        words.extend(named.filter_map(Value::as_str).map(str::to_owned));
        tables.extend(one["properties"].as_object().into_iter().flat_map(Map::keys).cloned());
    }
    let known = |key: Value| -> BTreeSet<String> {
        let document = json!({ "rules": [{ "name": "a", "limits": ["1/s"], "key": key }] });
        let problems = read_json(&document.to_string()).expect_err("no such key").to_string();
        let names = problems.split('`').skip(3).step_by(2).map(str::to_owned);
        names.filter(|name| !name.starts_with('{')).collect()
    };
    assert_eq!(known(json!("?")), words);
    assert_eq!(known(json!({ "?": "x" })), tables);
}

/// Makes a value of each form that a schema allows.
struct Examples<'s> {
    definitions: &'s Value,
    /// The definitions around the present one.
    inside: Vec<&'s str>,
    /// Whether the shortest form is enough, because the definition is inside of itself.
    is_short: bool,
}

impl<'s> Examples<'s> {
    fn of(&mut self, schema: &'s Value) -> Vec<Value> {
        if let Some(name) = schema["$ref"].as_str() {
            let name = name.trim_start_matches("#/$defs/");
            let was_short = self.is_short;
            self.is_short |= self.inside.contains(&name);
            self.inside.push(name);
            let examples = self.of(&self.definitions[name]);
            self.inside.pop();
            self.is_short = was_short;
            return examples;
        }
        for several in ["oneOf", "anyOf"] {
            if let Some(several) = schema[several].as_array() {
                let most = if self.is_short { 1 } else { several.len() };
                return several[..most].iter().flat_map(|one| self.of(one)).collect();
            }
        }
        if let Some(only) = schema.get("const") {
            return vec![only.clone()];
        }
        if let Some(words) = schema["enum"].as_array() {
            return words.clone();
        }
        let types = match &schema["type"] {
            Value::Array(types) => types.as_slice(),
            one => std::slice::from_ref(one),
        };
        let types = types.iter().filter_map(Value::as_str);
        types.flat_map(|kind| self.of_type(kind, schema)).collect()
    }

    fn of_type(&mut self, kind: &str, schema: &'s Value) -> Vec<Value> {
        match kind {
            "null" => vec![Value::Null],
            "boolean" => vec![json!(true), json!(false)],
            "integer" => vec![json!(schema["minimum"].as_u64().unwrap_or_default().max(1))],
            "string" => vec![json!("5 seconds")],
            "array" => {
                let least = schema["minItems"].as_u64().unwrap_or(1);
                let least = usize::try_from(least).expect("a few");
                let items = self.of(&schema["items"]);
                items.into_iter().map(|item| Value::Array(vec![item; least])).collect()
            }
            "object" => self.of_object(schema),
            _ => panic!("{kind} in {schema}"),
        }
    }

    fn of_object(&mut self, schema: &'s Value) -> Vec<Value> {
        if schema["additionalProperties"].is_object() {
            let values = self.of(&schema["additionalProperties"]);
            return values.into_iter().map(|value| json!({ "a": value })).collect();
        }
        let Some(fields) = schema["properties"].as_object() else { return vec![json!({})] };
        let required: Vec<_> = schema["required"].as_array().into_iter().flatten().collect();
        let mut least = Map::new();
        let mut all = Vec::new();
        for (name, field) in fields {
            let is_required = required.iter().any(|one| *one == name);
            if self.is_short && !is_required {
                continue;
            }
            let values = self.of(field);
            if is_required {
                least.insert(name.clone(), values[0].clone());
            }
            all.push((name, values));
        }
        let mut examples = vec![Value::Object(least.clone())];
        for (name, values) in all {
            examples.extend(values.into_iter().map(|value| {
                let mut example = least.clone();
                example.insert(name.clone(), value);
                Value::Object(example)
            }));
        }
        examples
    }
}
