//! A Redis whose time is told to it: the shipped scripts, run by the same Lua that Redis runs them by.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use mlua::{Function, Lua, MultiValue, Table, Value as LuaValue};
use redis::{Arg, Cmd, Value};

use crate::script::{self, Script};

#[derive(Default)]
struct Memory {
    /// Microseconds since the epoch.
    now: u64,
    /// What is kept, and until when, in milliseconds.
    keys: HashMap<Vec<u8>, (Vec<u8>, u64)>,
}

pub(super) struct Server {
    lua: Lua,
    memory: Rc<RefCell<Memory>>,
    scripts: Vec<(Vec<u8>, Function)>,
}

impl Server {
    /// With scripts in which something is written otherwise.
    pub(super) fn new(change: impl Fn(&str) -> String) -> Self {
        let (lua, memory) = (Lua::new(), Rc::new(RefCell::new(Memory::default())));
        let redis = lua.create_table().unwrap();
        let own = memory.clone();
        let call = lua.create_function(move |lua, arguments: MultiValue| {
            own.borrow_mut().call(lua, arguments)
        });
        redis.set("call", call.unwrap()).unwrap();
        lua.globals().set("redis", redis).unwrap();
        // Redis lets no script make globals, so that one that forgets a `local` fails here, too.
        let guard =
            "setmetatable(_G, {__newindex = function(_, name) error('global ' .. name) end})";
        for name in ["KEYS", "ARGV"] {
            lua.globals().set(name, lua.create_table().unwrap()).unwrap();
        }
        lua.load(guard).exec().unwrap();
        let load = |script: &&Script| {
            let function = lua.load(change(script.text())).into_function().unwrap();
            (script.hash().as_bytes().to_vec(), function)
        };
        let scripts = script::all().iter().map(load).collect();
        Self { lua, memory, scripts }
    }

    /// Runs a call at this moment, in microseconds.
    pub(super) fn run(&self, now: u64, call: &Cmd) -> Value {
        self.memory.borrow_mut().now = now;
        let parts: Vec<&[u8]> = call
            .args_iter()
            .map(|part| match part {
                Arg::Simple(bytes) => bytes,
                _ => panic!("an argument"),
            })
            .collect();
        let [b"EVALSHA", hash, count, rest @ ..] = parts.as_slice() else { panic!("a script") };
        let count: usize = std::str::from_utf8(count).unwrap().parse().unwrap();
        let (keys, arguments) = rest.split_at(count);
        for (name, values) in [("KEYS", keys), ("ARGV", arguments)] {
            let values = values.iter().map(|bytes| self.lua.create_string(bytes).unwrap());
            let table = self.lua.create_sequence_from(values).unwrap();
            self.lua.globals().raw_set(name, table).unwrap();
        }
        let (_, function) = self.scripts.iter().find(|(own, _)| own == hash).unwrap();
        value(function.call::<LuaValue>(()).unwrap())
    }
}

impl Memory {
    fn get(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        if self.keys.get(key).is_some_and(|&(_, until)| until * 1000 <= self.now) {
            self.keys.remove(key);
        }
        self.keys.get(key).map(|(value, _)| value.clone())
    }

    fn call(&mut self, lua: &Lua, arguments: MultiValue) -> mlua::Result<LuaValue> {
        let texts: Vec<Vec<u8>> = arguments.iter().map(text).collect();
        let texts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
        let string = |bytes: &[u8]| lua.create_string(bytes).map(LuaValue::String);
        match texts.as_slice() {
            [b"TIME"] => {
                let parts =
                    [self.now / 1_000_000, self.now % 1_000_000].map(|part| part.to_string());
                lua.create_sequence_from(parts).map(LuaValue::Table)
            }
            [b"GET", key] => match self.get(key) {
                Some(value) => string(&value),
                None => Ok(LuaValue::Boolean(false)),
            },
            [b"SET", key, value, b"PXAT", until] => {
                let until = std::str::from_utf8(until).unwrap().parse().unwrap();
                self.keys.insert(key.to_vec(), (value.to_vec(), until));
                string(b"OK")
            }
            [b"DEL", key] => Ok(LuaValue::Integer(self.keys.remove(*key).is_some().into())),
            other => panic!("{other:?} is not known here"),
        }
    }
}

fn text(value: &LuaValue) -> Vec<u8> {
    match value {
        LuaValue::String(string) => string.as_bytes().to_vec(),
        LuaValue::Integer(number) => number.to_string().into_bytes(),
        LuaValue::Number(number) => panic!("{number} is not written out"),
        other => panic!("{other:?}"),
    }
}

/// What Redis makes of what a script returns.
fn value(lua: LuaValue) -> Value {
    match lua {
        LuaValue::Nil | LuaValue::Boolean(false) => Value::Nil,
        LuaValue::Integer(number) => Value::Int(number),
        LuaValue::String(string) => Value::BulkString(string.as_bytes().to_vec()),
        LuaValue::Table(table) => Value::Array(array(&table)),
        other => panic!("{other:?}"),
    }
}

fn array(table: &Table) -> Vec<Value> {
    table.sequence_values::<LuaValue>().map(|one| value(one.unwrap())).collect()
}
