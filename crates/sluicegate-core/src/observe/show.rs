use crate::key::{KeyBuf, KeySecret};

/// What events show of the keys of requests.
///
/// Keys hold addresses and credentials, so they are hidden where nothing else is said.
///
/// ```
/// use sluicegate::key::KeySecret;
/// use sluicegate::observe::ShowKeys;
///
/// // Tells clients apart without saying who they are.
/// let show = ShowKeys::Digest(KeySecret::new(b"a secret of this service"));
/// # let _ = show;
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum ShowKeys {
    /// Nothing. The default.
    #[default]
    Hidden,
    /// Who it is: [`KeyBuf::legible`].
    Shown,
    /// A digest that tells keys apart, and nothing else to whoever does not know the secret.
    Digest(KeySecret),
}

impl ShowKeys {
    /// What is shown of `key`; `None` where that is nothing.
    pub fn show(&self, key: &KeyBuf) -> Option<String> {
        match self {
            Self::Hidden => None,
            Self::Shown => Some(key.legible()),
            Self::Digest(secret) => {
                let mut text = String::new();
                secret.print(key, &mut text);
                Some(text)
            }
        }
    }
}
