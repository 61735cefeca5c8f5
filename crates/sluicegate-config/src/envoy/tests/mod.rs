mod large;
mod meanings;
mod model;
mod reading;
mod written;

use super::{Descriptors, read_yaml, read_yaml_with_warnings};
use crate::document::Key;
use crate::{Environment, Policies};

/// Headers of the same name for these keys.
fn headers(keys: &[&str]) -> Descriptors {
    keys.iter()
        .fold(Descriptors::default(), |known, key| known.with(*key, Key::Header((*key).to_owned())))
}

fn policies(text: &str, descriptors: &Descriptors) -> Policies {
    let document = read_yaml(text, descriptors).expect("a valid file");
    Policies::new(&document, &Environment::new()).expect("valid policies")
}
