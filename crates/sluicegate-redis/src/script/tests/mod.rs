//! The scripts beside the Rust step, in the Lua that is inside of Redis.

mod compare;
mod differential;
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
