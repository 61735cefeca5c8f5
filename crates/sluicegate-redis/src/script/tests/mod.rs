//! The scripts compared with the Rust step, in the Lua version that Redis contains.

mod compare;
mod differential;
mod fleet;
mod holders;
mod lua_struct;
mod malformed;
mod model;
mod pick;
mod redis;
mod rows;
mod together;
mod words;
mod writes;
