use std::convert::Infallible;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use super::network::{Network, Problem};

/// The trusted proxies: addresses and networks (CIDR) whose forwarding headers are believed.
///
/// Made from a list of texts, or from one text with commas, as in configuration. An empty list is allowed and trusts
/// no proxy. A network that contains every address is refused.
///
/// ```
/// use sluicegate::key::Proxies;
///
/// let proxies = Proxies::try_from(["10.0.0.0/8", "2001:db8::1"])?;
/// assert!(proxies.contains("10.1.2.3".parse().unwrap()));
/// assert_eq!(proxies, "10.0.0.0/8, 2001:db8::1".parse()?);
///
/// let wrong = Proxies::try_from(["10.0.0.1/8"]).unwrap_err();
/// assert_eq!(
///     wrong.to_string(),
///     "the trusted proxy `10.0.0.1/8` has bits set beyond its prefix: \
///      the network is `10.0.0.0/8`, the one address is `10.0.0.1`",
/// );
/// # Ok::<(), sluicegate::key::ProxiesError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxies {
    networks: Arc<[Network]>,
}

impl Proxies {
    /// Addresses that the Internet does not route: loopback (`127.0.0.0/8`, `::1`), RFC 1918 (`10.0.0.0/8`,
    /// `172.16.0.0/12`, `192.168.0.0/16`) and unique local IPv6 (`fc00::/7`).
    ///
    /// Use it only if nothing but proxies has such an address. Clients in the same private network, or containers
    /// next to this one, would be trusted too: they could choose their own key.
    pub fn private() -> Self {
        let networks = [
            LOOPBACK[0],
            LOOPBACK[1],
            Network::v4([10, 0, 0, 0], 8),
            Network::v4([172, 16, 0, 0], 12),
            Network::v4([192, 168, 0, 0], 16),
            Network::v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7),
        ];
        Self { networks: networks.into() }
    }

    /// This host: `127.0.0.0/8` and `::1`. Every program on it is trusted.
    pub fn loopback() -> Self {
        Self { networks: LOOPBACK.into() }
    }

    /// Whether `address` belongs to one of the proxies. An IPv4-mapped IPv6 address is read as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks.iter().any(|network| network.contains(address))
    }

    /// Whether no proxy is trusted.
    pub fn is_empty(&self) -> bool {
        self.networks.is_empty()
    }

    fn parse<S: AsRef<str>>(entries: impl IntoIterator<Item = S>) -> Result<Self, ProxiesError> {
        let parse = |entry: S| {
            let entry = entry.as_ref().trim();
            Network::parse(entry).map_err(|problem| ProxiesError { entry: entry.into(), problem })
        };
        Ok(Self { networks: entries.into_iter().map(parse).collect::<Result<_, _>>()? })
    }
}

const LOOPBACK: [Network; 2] =
    [Network::v4([127, 0, 0, 0], 8), Network::v6([0, 0, 0, 0, 0, 0, 0, 1], 128)];

impl<S: AsRef<str>, const N: usize> TryFrom<[S; N]> for Proxies {
    type Error = ProxiesError;

    fn try_from(entries: [S; N]) -> Result<Self, ProxiesError> {
        Self::parse(entries)
    }
}

impl<S: AsRef<str>> TryFrom<&[S]> for Proxies {
    type Error = ProxiesError;

    fn try_from(entries: &[S]) -> Result<Self, ProxiesError> {
        Self::parse(entries)
    }
}

impl<S: AsRef<str>> TryFrom<Vec<S>> for Proxies {
    type Error = ProxiesError;

    fn try_from(entries: Vec<S>) -> Result<Self, ProxiesError> {
        Self::parse(entries)
    }
}

impl<S: AsRef<str>> TryFrom<&Vec<S>> for Proxies {
    type Error = ProxiesError;

    fn try_from(entries: &Vec<S>) -> Result<Self, ProxiesError> {
        Self::parse(entries)
    }
}

/// Entries are separated by commas; an empty text is an empty list.
impl TryFrom<&str> for Proxies {
    type Error = ProxiesError;

    fn try_from(text: &str) -> Result<Self, ProxiesError> {
        text.parse()
    }
}

/// Entries are separated by commas; an empty text is an empty list.
impl FromStr for Proxies {
    type Err = ProxiesError;

    fn from_str(text: &str) -> Result<Self, ProxiesError> {
        if text.trim().is_empty() {
            return Self::parse::<&str>([]);
        }
        Self::parse(text.split(','))
    }
}

/// An entry that is neither an address nor a network. The message names the entry and the mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxiesError {
    entry: String,
    problem: Problem,
}

impl ProxiesError {
    /// The invalid entry, as it was written.
    pub fn entry(&self) -> &str {
        &self.entry
    }
}

impl fmt::Display for ProxiesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, problem } = self;
        write!(f, "the trusted proxy `{entry}` {problem}")
    }
}

impl std::error::Error for ProxiesError {}

/// A list that is already parsed cannot be wrong.
impl From<Infallible> for ProxiesError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        text.parse::<Proxies>().unwrap_err().to_string()
    }

    #[test]
    fn every_kind_of_list_is_the_same_list() {
        let list = Proxies::try_from(["10.0.0.0/8", "::1"]).unwrap();
        let owned = vec!["10.0.0.0/8".to_owned(), "::1".to_owned()];
        assert_eq!(Proxies::try_from(&owned[..]).unwrap(), list);
        assert_eq!(Proxies::try_from(&owned).unwrap(), list);
        assert_eq!(Proxies::try_from(owned).unwrap(), list);
        assert_eq!(Proxies::try_from(" 10.0.0.0/8 ,::1 ").unwrap(), list);
    }

    #[test]
    fn an_empty_list_trusts_nobody() {
        assert!(!Proxies::try_from(" ").unwrap().contains([127, 0, 0, 1].into()));
    }

    #[test]
    fn a_wrong_entry_is_named_with_what_is_wrong() {
        assert_eq!(
            error("::1, 10.0.0/8"),
            "the trusted proxy `10.0.0/8` is neither an address nor a network such as `10.0.0.0/8`"
        );
        assert!(error("10.0.0.0/8,").contains("`` is neither"));
        for text in ["10.0.0.0/33", "10.0.0.0/", "10.0.0.0/+8", "10.0.0.0/-1", "10.0.0.0/256"] {
            assert!(error(text).ends_with("0 to 32: an IPv4 address has 32 bits"), "{text}");
        }
        assert!(error("::/129").ends_with("0 to 128: an IPv6 address has 128 bits"));
        assert!(error("2001:db8::1/64").contains("the network is `2001:db8::/64`"));
        assert!(error("0.0.0.0/0").contains("every address"));
        assert_eq!("proxy".parse::<Proxies>().unwrap_err().entry(), "proxy");
    }

    #[test]
    fn private_is_what_the_internet_does_not_route() {
        let private = Proxies::private();
        for inside in ["127.0.0.1", "::1", "10.9.9.9", "172.31.0.1", "192.168.1.1", "fd00::1"] {
            assert!(private.contains(inside.parse().unwrap()), "{inside}");
        }
        for outside in ["128.0.0.1", "::2", "172.32.0.1", "192.169.0.1", "fe80::1", "8.8.8.8"] {
            assert!(!private.contains(outside.parse().unwrap()), "{outside}");
        }
    }
}
