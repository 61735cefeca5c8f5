//! What the layer answers, and what it leaves alone.

#[path = "../common/mod.rs"]
mod common;

mod answers;
mod keys;
mod rejections;
mod settling;
mod stores;

use http::Request;
use sluicegate::Header;

const CLIENT: Header = Header("x-client");

/// A request without the key that the tests limit by.
fn keyless() -> Request<String> {
    Request::new(String::new())
}
