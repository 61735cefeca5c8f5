//! Names of rules. They are made from the way to the limit and identify rows of a store, so the same way has the
//! same name in every version of a file.

use super::ways::Step;

/// The longest name of a limit, in bytes.
const LONGEST: usize = 31;

/// The name of a limit: the way to it, as in the statistics of the service, `key_value.key`. If that is too long or
/// not valid in a header field, its beginning and a digest.
pub(crate) fn name(steps: &[Step<'_>]) -> String {
    let spelled = spelled(steps);
    let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    if spelled.len() <= LONGEST && spelled.bytes().all(plain) {
        return spelled;
    }
    digested(steps)
}

/// A name that no other way has.
pub(crate) fn digested(steps: &[Step<'_>]) -> String {
    let digest = fnv(&identity("", steps));
    let kept = |char: &char| char.is_ascii_alphanumeric() || "._-/".contains(*char);
    let spelled = spelled(steps);
    let beginning: String = spelled.chars().filter(kept).take(LONGEST - 9).collect();
    format!("{beginning}~{digest:08x}")
}

fn spelled(steps: &[Step<'_>]) -> String {
    let entries = steps.iter().map(|step| match step.entry.value.text() {
        None => step.entry.key.clone(),
        Some(value) => format!("{}_{value}", step.entry.key),
    });
    entries.collect::<Vec<_>>().join(".")
}

/// Identifies a limit in a store: its domain and the way to it, quoted.
pub(super) fn identity(domain: &str, steps: &[Step<'_>]) -> String {
    let mut identity = format!("{domain:?}");
    for step in steps {
        identity.push_str(&match step.entry.value.text() {
            None => format!(" {:?}", step.entry.key),
            Some(value) => format!(" {:?}={value:?}", step.entry.key),
        });
    }
    identity
}

/// FNV-1a: the same in every process and every version.
fn fnv(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
