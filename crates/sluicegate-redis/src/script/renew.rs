//! Places of this process in limits of concurrency, renewed.

use super::call::Call;
use super::caller::Caller;
use super::pack::Packed;
use super::reply::{Bytes, Malformed};
use super::source::RENEW;

impl Call<'_> {
    /// Renews what the caller holds in the rows of these `keys`. Where it has not taken any since its turn, no
    /// more remains than is `known`, in the same order. What is answered is [`lost`].
    pub(crate) fn renew(
        keys: Vec<Vec<u8>>,
        known: impl IntoIterator<Item = u64>,
        by: Caller,
    ) -> Self {
        let mut packed = Packed::new(4 + keys.len());
        packed.now(by.now).numbers([by.holder, by.lease, by.turn]);
        known.into_iter().for_each(|count| {
            packed.number(count);
        });
        Self { script: &RENEW, rows: &[], more_keys: keys, args: packed.0 }
    }
}

/// In how many rows nothing was found that could be renewed, though it was to be there.
pub(crate) fn lost(reply: &[u8]) -> Result<u64, Malformed> {
    let mut bytes = Bytes(reply);
    let lost = bytes.integer()?;
    bytes.end()?;
    Ok(lost)
}
