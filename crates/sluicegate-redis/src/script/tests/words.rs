//! What scripts pass to Redis and what it answers, as values of Lua.

use mlua::{Lua, Value};

/// The answer of a command.
pub(super) enum Reply {
    Nil,
    Number(usize),
    Bytes(Vec<u8>),
    Many(Vec<Option<Vec<u8>>>),
    Time(String, String),
    Okay,
}

impl Reply {
    pub(super) fn into_value(self, lua: &Lua) -> mlua::Result<Value> {
        match self {
            // Converted as Redis converts its replies.
            Self::Nil => Ok(Value::Boolean(false)),
            Self::Number(number) => Ok(Value::Number(number as f64)),
            Self::Bytes(bytes) => lua.create_string(bytes).map(Value::String),
            Self::Many(rows) => {
                let reply = |row: Option<_>| row.map_or(Self::Nil, Self::Bytes).into_value(lua);
                let rows: Vec<_> = rows.into_iter().map(reply).collect::<mlua::Result<_>>()?;
                lua.create_sequence_from(rows).map(Value::Table)
            }
            Self::Time(seconds, micros) => {
                lua.create_sequence_from([seconds, micros]).map(Value::Table)
            }
            Self::Okay => lua.create_table_from([("ok", "OK")]).map(Value::Table),
        }
    }
}

/// An argument as Redis converts it to text: numbers with up to 17 digits.
pub(super) fn word(value: Value) -> Vec<u8> {
    match value {
        Value::String(text) => text.as_bytes().to_vec(),
        Value::Integer(number) => number.to_string().into_bytes(),
        Value::Number(number) => {
            assert!(number.fract() == 0.0 && number.abs() < 1e17, "{number} in a command");
            format!("{number:.0}").into_bytes()
        }
        other => panic!("a command with {other:?}"),
    }
}

pub(super) fn number(word: &[u8]) -> i64 {
    std::str::from_utf8(word).unwrap().parse().unwrap()
}
