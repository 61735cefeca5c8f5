use crate::key::{KeyBuf, KeySecret};

/// What events show of the keys of requests.
///
/// Keys hold addresses and credentials, so they are hidden by default.
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
    /// The readable key: [`KeyBuf::legible`].
    Shown,
    /// A digest that tells keys apart, and reveals nothing without the secret.
    Digest(KeySecret),
}

impl ShowKeys {
    /// What is shown of `key`; `None` for nothing.
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
