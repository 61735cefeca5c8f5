//! The `struct` library that Redis gives to scripts, with the formats that ours use.

use mlua::{Lua, MultiValue, Value, Variadic};

/// Makes `struct.pack` and `struct.unpack`.
pub(super) fn install(lua: &Lua) -> mlua::Result<()> {
    let library = lua.create_table()?;
    library.set(
        "pack",
        lua.create_function(|lua, (format, values): (mlua::String, Variadic<f64>)| {
            lua.create_string(pack(&format.as_bytes(), &values))
        })?,
    )?;
    library.set(
        "unpack",
        lua.create_function(
            |_, (format, bytes, at): (mlua::String, mlua::String, Option<usize>)| {
                let values = unpack(&format.as_bytes(), &bytes.as_bytes(), at.unwrap_or(1))?;
                Ok(values.into_iter().map(Value::Number).collect::<MultiValue>())
            },
        )?,
    )?;
    lua.globals().set("struct", library)
}

/// The items of a little-endian format: `d`, `B` and `I4`.
fn items(format: &[u8]) -> impl Iterator<Item = u8> {
    assert_eq!(format.first(), Some(&b'<'), "the least byte stands first");
    format.iter().copied().filter(|item| !matches!(item, b'<' | b'4'))
}

fn pack(format: &[u8], values: &[f64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (at, item) in items(format).enumerate() {
        let value = *values.get(at).expect("a value for each item");
        match item {
            b'd' => bytes.extend(value.to_le_bytes()),
            b'B' => bytes.push(whole(value, 255.0) as u8),
            b'I' => bytes.extend((whole(value, f64::from(u32::MAX)) as u32).to_le_bytes()),
            _ => panic!("a format with {}", char::from(item)),
        }
    }
    bytes
}

fn whole(value: f64, most: f64) -> f64 {
    assert!(value.fract() == 0.0 && (0.0..=most).contains(&value), "{value} does not fit");
    value
}

/// The values, and the position after the last one.
fn unpack(format: &[u8], bytes: &[u8], at: usize) -> mlua::Result<Vec<f64>> {
    let mut rest = bytes.get(at - 1..).unwrap_or_default();
    let short = || mlua::Error::runtime("data string too short");
    let mut values = Vec::new();
    for item in items(format) {
        let value = match item {
            b'd' => {
                let (value, after) = rest.split_first_chunk().ok_or_else(short)?;
                rest = after;
                f64::from_le_bytes(*value)
            }
            b'I' => {
                let (value, after) = rest.split_first_chunk().ok_or_else(short)?;
                rest = after;
                f64::from(u32::from_le_bytes(*value))
            }
            _ => panic!("a format with {}", char::from(item)),
        };
        values.push(value);
    }
    values.push((bytes.len() - rest.len() + 1) as f64);
    Ok(values)
}
