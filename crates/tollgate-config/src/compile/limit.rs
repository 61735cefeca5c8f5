use tollgate_core::{Limit, Limits};

use super::notes::Notes;
use crate::document;
use crate::path::Path;

pub(super) fn compile(
    name: &str,
    limits: &[document::Limit],
    path: &Path<'_>,
    notes: &Notes<'_>,
) -> Option<Limits> {
    let mut made = Vec::new();
    for (index, limit) in limits.iter().enumerate() {
        let text = match limit {
            document::Limit::Text(text) => text,
            document::Limit::Table(table) => &table.rate,
        };
        let limit = text.parse::<Limit>().and_then(|limit| limit.try_named(name));
        made.extend(notes.check(&path.index(index), limit));
    }
    (!made.is_empty()).then(|| Limits::from(made))
}
