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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::testing::{Request, key, missing};
    use crate::key::{First, Path};

    fn request(claims: Claims) -> Request {
        Request::default().extension(claims)
    }

    #[test]
    fn name_and_value_are_the_key() {
        let both = request(Claims::new().with("a", "1").with("b", "1"));
        let other = request(Claims::new().with("a", "2"));
        assert_eq!(key(&Claim("a"), &both), key(&Claim(String::from("a")), &both));
        assert_ne!(key(&Claim("a"), &both), key(&Claim("b"), &both));
        assert_ne!(key(&Claim("a"), &both), key(&Claim("a"), &other));
    }

    #[test]
    fn an_absent_or_empty_claim_is_the_clients_to_mend() {
        for claims in [Claims::new(), Claims::new().with("customer", "")] {
            let missing = missing(&Claim("customer"), &request(claims));
            assert!(missing.is_client() && !missing.is_ambiguous());
            assert_eq!(missing.to_string(), "the request lacks the `customer` claim");
        }
        key(&First((Claim("customer"), Path)), &request(Claims::new()));
    }

    #[test]
    fn a_request_without_claims_is_one_with_empty_claims() {
        let [without, empty] = [Request::default(), request(Claims::new())];
        assert_eq!(missing(&Claim("customer"), &without), missing(&Claim("customer"), &empty));
        let key_of = |request| key(&First((Claim("customer"), Path)), request);
        assert_eq!(key_of(&without), key_of(&empty));
    }
}
