//! The part of Redis that the scripts need: some commands on strings, and the same Lua.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use mlua::{Function, Lua, MultiValue, Value};

use super::super::{Call, Script};
use super::lua_struct;
use super::words::{Reply, number, word};
use crate::script::{CallBatch, SingleCall};

/// What a key holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    Bytes(Vec<u8>),
    /// Not a string at all.
    List,
}

#[derive(Debug, Clone)]
struct Entry {
    content: Content,
    /// In milliseconds. A row without an expiry would stay for ever.
    expiry: Option<u64>,
}

#[derive(Debug, Default)]
struct Keys {
    entries: BTreeMap<Vec<u8>, Entry>,
    /// In microseconds.
    now: u64,
    written: BTreeSet<Vec<u8>>,
    /// Rows whose expiry was written, too.
    timed: BTreeSet<Vec<u8>>,
    commands: u64,
    /// Bytes read and written.
    moved: usize,
}

/// A server with a manual clock.
pub(super) struct Redis {
    lua: Lua,
    scripts: BTreeMap<String, Function>,
    keys: Rc<RefCell<Keys>>,
}

impl Redis {
    pub(super) fn new() -> Self {
        let lua = Lua::new();
        let keys = Rc::new(RefCell::new(Keys::default()));
        let redis = lua.create_table().unwrap();
        let on = Rc::clone(&keys);
        let call = lua.create_function(move |lua, words: MultiValue| {
            let reply = on.borrow_mut().run(words.into_iter().map(word).collect());
            reply.map_err(mlua::Error::runtime)?.into_value(lua)
        });
        redis.set("call", call.unwrap()).unwrap();
        let on = Rc::clone(&keys);
        let pcall = lua.create_function(move |lua, words: MultiValue| {
            match on.borrow_mut().run(words.into_iter().map(word).collect()) {
                Ok(reply) => reply.into_value(lua),
                Err(text) => lua.create_table_from([("err", text)]).map(Value::Table),
            }
        });
        redis.set("pcall", pcall.unwrap()).unwrap();
        let error_reply =
            lua.create_function(|lua, text: mlua::String| lua.create_table_from([("err", text)]));
        redis.set("error_reply", error_reply.unwrap()).unwrap();
        lua.globals().set("redis", redis).unwrap();
        lua_struct::install(&lua).unwrap();
        Self { lua, scripts: BTreeMap::new(), keys }
    }

    pub(super) fn turn_to(&self, now: u64) {
        self.keys.borrow_mut().now = now;
    }

    /// Runs a call. Returns the bulk string that it answers, or its error.
    pub(super) fn run(&mut self, call: &Call<'_>) -> Result<Vec<u8>, String> {
        self.keys.borrow_mut().written.clear();
        self.keys.borrow_mut().timed.clear();
        (self.keys.borrow_mut().commands, self.keys.borrow_mut().moved) = (0, 0);
        let keys: Vec<_> = call.keys().map(|key| self.lua.create_string(key).unwrap()).collect();
        self.lua.globals().set("KEYS", keys).unwrap();
        let args = [self.lua.create_string(call.args()).unwrap()];
        self.lua.globals().set("ARGV", args).unwrap();
        let answer = self.script(call.script()).call::<Value>(());
        self.keys.borrow().assert_every_row_expires();
        match answer.map_err(|error| error.to_string())? {
            Value::String(bytes) => Ok(bytes.as_bytes().to_vec()),
            Value::Table(table) => Err(table.get::<String>("err").unwrap()),
            Value::Integer(number) => Ok(number.to_string().into_bytes()),
            Value::Number(number) => Ok(number.to_string().into_bytes()),
            other => panic!("a script answers {other:?}"),
        }
    }

    /// Runs several calls in one script. Returns the answer to each.
    pub(super) fn run_together(&mut self, calls: &[Call<'_>]) -> Vec<Result<Vec<u8>, String>> {
        self.keys.borrow_mut().commands = 0;
        let parts = calls.iter().map(|call| SingleCall::of(call.clone()));
        let mut parts: Vec<_> = parts.enumerate().collect();
        parts.sort_by(|(_, one), (_, other)| one.order().cmp(&other.order()));
        let (places, parts): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let many = CallBatch(parts);
        let keys: Vec<_> = many.keys().map(|key| self.lua.create_string(key).unwrap()).collect();
        self.lua.globals().set("KEYS", keys).unwrap();
        self.lua.globals().set("ARGV", [self.lua.create_string(many.args()).unwrap()]).unwrap();
        let answers = self.script(calls[0].script()).call::<Vec<Value>>(()).unwrap();
        let answer = |answer| match answer {
            Value::String(bytes) => Ok(bytes.as_bytes().to_vec()),
            Value::Table(table) => Err(table.get::<String>("err").unwrap()),
            other => panic!("a script answers {other:?}"),
        };
        let mut answers: Vec<_> = places.into_iter().zip(answers.into_iter().map(answer)).collect();
        answers.sort_by_key(|(place, _)| *place);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    fn script(&mut self, script: &'static Script) -> Function {
        let known = self.scripts.entry(script.sha().to_owned());
        known.or_insert_with(|| self.lua.load(script.source()).into_function().unwrap()).clone()
    }

    /// Whether the last script wrote the row.
    pub(super) fn has_written(&self, key: &[u8]) -> bool {
        self.keys.borrow().written.contains(key)
    }

    /// Whether the last script wrote the expiry of the row.
    pub(super) fn has_timed(&self, key: &[u8]) -> bool {
        self.keys.borrow().timed.contains(key)
    }

    pub(super) fn has_timed_any(&self) -> bool {
        !self.keys.borrow().timed.is_empty()
    }

    pub(super) fn has_written_any(&self) -> bool {
        !self.keys.borrow().written.is_empty()
    }

    /// How many commands the last script ran.
    pub(super) fn commands(&self) -> u64 {
        self.keys.borrow().commands
    }

    /// How many bytes it read and wrote.
    pub(super) fn moved(&self) -> usize {
        self.keys.borrow().moved
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys.borrow().entries.is_empty()
    }

    /// The total length of all rows.
    pub(super) fn bytes(&self) -> usize {
        let len = |entry: &Entry| match &entry.content {
            Content::Bytes(bytes) => bytes.len(),
            Content::List => 0,
        };
        self.keys.borrow().entries.values().map(len).sum()
    }

    /// The content of a row that has not expired.
    pub(super) fn row(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.keys.borrow_mut().live(key).map(|entry| match &entry.content {
            Content::Bytes(bytes) => bytes.clone(),
            Content::List => panic!("a list is where a row should be"),
        })
    }

    /// When the row expires, in milliseconds.
    pub(super) fn expiry(&self, key: &[u8]) -> Option<u64> {
        self.keys.borrow_mut().live(key)?.expiry
    }

    pub(super) fn put(&self, key: &[u8], content: Content) {
        let entry = Entry { content, expiry: Some(u64::MAX) };
        self.keys.borrow_mut().entries.insert(key.to_vec(), entry);
    }

    pub(super) fn clear(&self) {
        self.keys.borrow_mut().entries.clear();
    }
}

impl Keys {
    fn live(&mut self, key: &[u8]) -> Option<&mut Entry> {
        let now = self.now / 1_000;
        // As in Redis: in the millisecond of its expiry a key still exists.
        if self.entries.get(key)?.expiry.is_some_and(|expiry| now > expiry) {
            self.entries.remove(key);
        }
        self.entries.get_mut(key)
    }

    fn bytes(&mut self, key: &[u8]) -> Result<Option<&mut Vec<u8>>, String> {
        match self.live(key) {
            None => Ok(None),
            Some(Entry { content: Content::Bytes(bytes), .. }) => Ok(Some(bytes)),
            Some(_) => {
                Err("WRONGTYPE Operation against a key holding the wrong kind of value".into())
            }
        }
    }

    fn run(&mut self, words: Vec<Vec<u8>>) -> Result<Reply, String> {
        self.commands += 1;
        self.moved += words.iter().map(Vec::len).sum::<usize>();
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let reply = match words.as_slice() {
            [b"TIME"] => {
                let (seconds, micros) = (self.now / 1_000_000, self.now % 1_000_000);
                Reply::Time(seconds.to_string(), micros.to_string())
            }
            [b"GET", key] => self.bytes(key)?.map_or(Reply::Nil, |row| Reply::Bytes(row.clone())),
            [b"MGET", keys @ ..] => {
                // For this command, a value that is not a string is nil.
                let rows = keys.iter().map(|key| self.bytes(key).ok().flatten().cloned());
                Reply::Many(rows.collect())
            }
            [b"STRLEN", key] => Reply::Number(self.bytes(key)?.map_or(0, |row| row.len())),
            [b"GETRANGE", key, from, to] => {
                let (from, to) = (number(from) as usize, number(to) as usize);
                let row = self.bytes(key)?.map(|row| &**row).unwrap_or_default();
                let range = row.get(from.min(row.len())..(to + 1).min(row.len()));
                Reply::Bytes(range.unwrap_or_default().to_vec())
            }
            [b"SET", key, value, b"PX", expiry] => {
                self.set(key, value, number(expiry));
                Reply::Okay
            }
            [b"SETRANGE", key, at, value] => {
                Reply::Number(self.set_range(key, number(at), value)?)
            }
            [b"PEXPIRE", key, expiry] => {
                let expiry = self.expiry_in(number(expiry));
                self.written.insert(key.to_vec());
                self.timed.insert(key.to_vec());
                let entry = self.live(key).expect("a row expires before it is written");
                entry.expiry = Some(expiry);
                Reply::Number(1)
            }
            [b"PTTL", key] => {
                let now = self.now / 1_000;
                let left = |entry: &mut Entry| entry.expiry.map(|expiry| expiry - now);
                Reply::Number(self.live(key).and_then(left).unwrap_or_default() as usize)
            }
            [b"DEL", key] => {
                self.written.insert(key.to_vec());
                Reply::Number(usize::from(self.entries.remove(*key).is_some()))
            }
            _ => return Err(format!("no such command: {words:?}")),
        };
        if let Reply::Bytes(bytes) = &reply {
            self.moved += bytes.len();
        }
        Ok(reply)
    }

    fn expiry_in(&self, millis: i64) -> u64 {
        assert!(millis > 0, "an expiry of {millis} ms");
        self.now / 1_000 + millis as u64
    }

    fn set(&mut self, key: &[u8], value: &[u8], expiry: i64) {
        let expiry = Some(self.expiry_in(expiry));
        self.written.insert(key.to_vec());
        self.timed.insert(key.to_vec());
        let content = Content::Bytes(value.to_vec());
        self.entries.insert(key.to_vec(), Entry { content, expiry });
    }

    fn set_range(&mut self, key: &[u8], at: i64, value: &[u8]) -> Result<usize, String> {
        self.written.insert(key.to_vec());
        if self.bytes(key)?.is_none() {
            let content = Content::Bytes(Vec::new());
            self.entries.insert(key.to_vec(), Entry { content, expiry: None });
        }
        let row = self.bytes(key)?.expect("it was just written");
        let at = at as usize;
        row.resize(row.len().max(at + value.len()), 0);
        row[at..at + value.len()].copy_from_slice(value);
        Ok(row.len())
    }

    fn assert_every_row_expires(&self) {
        for key in &self.written {
            if let Some(entry) = self.entries.get(key) {
                assert!(entry.expiry.is_some(), "a row without an expiry");
            }
        }
    }
}
