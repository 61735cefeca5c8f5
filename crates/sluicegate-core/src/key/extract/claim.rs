use crate::key::{Claims, Key, KeyBuf, Missing, Text, View, tag};

/// A claim that the application's authentication made about the request, by name: see [`Claims`].
///
/// Prefer this key for customers, since a client cannot make it up. If the claim is absent or empty, or the request has no
/// `Claims` at all, the client is unknown or has to sign in: the answer is 400. [`Tiers`](crate::Tiers) treat such a
/// request as one from an unknown client, [`First`](super::First) goes on to its next key, and conditions on claims do
/// not hold.
///
/// ```
/// use sluicegate::{Claim, First, Ip, Limit};
///
/// // Customers by their name, strangers by address.
/// let rule = Limit::per_minute(100).by(First((Claim("customer"), Ip::peer())));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Claim<N = &'static str>(pub N);

impl<V: View, N: AsRef<str>> Key<V> for Claim<N> {
    fn write(&self, view: &V, key: &mut KeyBuf) -> Result<(), Missing> {
        self.read(view, |value| {
            key.push(&[tag::CLAIM]);
            key.push(self.0.as_ref().as_bytes());
            key.push(value.as_bytes());
        })
    }
}

impl<V: View, N: AsRef<str>> Text<V> for Claim<N> {
    fn read<O>(&self, view: &V, read: impl FnOnce(&str) -> O) -> Result<O, Missing> {
        let name = self.0.as_ref();
        let claim = view.extension(|claims: &Claims| {
            claims.get(name).filter(|value| !value.is_empty()).map(read)
        });
        claim.flatten().ok_or_else(|| Missing::client_named(name, "claim"))
    }
}
