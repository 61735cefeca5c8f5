//! What other filters of Envoy may read about quotas: the dynamic metadata of the answer.

use std::borrow::Cow;

use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{ListValue, Struct, Value};
use sluicegate_config::envoy::service::{Answer, Request};

/// The metadata of a request that meets a quota, with the names that Envoy's service uses. Other requests have none.
pub(super) fn of(request: &Request<'_>, answer: &Answer) -> Option<Struct> {
    let spent = answer.spent_quotas.as_ref()?;
    let descriptors = request.descriptors.iter().map(|descriptor| {
        let entry = |(key, text): &(&[u8], &[u8])| {
            let (key, text) = (shown(key), shown(text));
            value(Kind::StringValue(format!("{key}={text}")))
        };
        let entries = descriptor.entries.iter().map(entry);
        structure([("entries", list(entries.collect()))])
    });
    let mut fields = vec![
        ("domain", text(request.domain.to_owned())),
        ("descriptors", list(descriptors.map(value).collect())),
        ("quotaModeEnabled", Kind::BoolValue(true)),
    ];
    if !spent.is_empty() {
        let spent = spent.iter().map(|at| value(Kind::NumberValue(*at as f64)));
        fields
            .push(("quotaModeViolations", Kind::ListValue(ListValue { values: spent.collect() })));
    }
    let fields = fields.into_iter().map(|(name, kind)| (name.to_owned(), value(kind)));
    Some(Struct { fields: fields.collect() })
}

/// The most bytes of a text that are repeated: clients choose them, and other filters tell requests by fewer.
const SHOWN: usize = 1_024;

/// A text of Envoy, in which what is not UTF-8 is replaced.
fn shown(text: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&text[..text.len().min(SHOWN)])
}

fn value(kind: Kind) -> Value {
    Value { kind: Some(kind) }
}

fn text(text: String) -> Kind {
    Kind::StringValue(text)
}

fn list(values: Vec<Value>) -> Kind {
    Kind::ListValue(ListValue { values })
}

fn structure<const N: usize>(fields: [(&str, Kind); N]) -> Kind {
    let fields = fields.into_iter().map(|(name, kind)| (name.to_owned(), value(kind)));
    Kind::StructValue(Struct { fields: fields.collect() })
}
