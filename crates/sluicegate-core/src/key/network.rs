use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address and the number of leading bits that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Network {
    /// Canonical, and zero after the prefix.
    base: IpAddr,
    bits: u8,
}

impl Network {
    pub(super) const fn v4(octets: [u8; 4], bits: u8) -> Self {
        let [a, b, c, d] = octets;
        Self { base: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits }
    }

    pub(super) const fn v6(segments: [u16; 8], bits: u8) -> Self {
        let [a, b, c, d, e, f, g, h] = segments;
        Self { base: IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)), bits }
    }

    /// Reads a network of trusted proxies. Refuses one that contains every address.
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        let network = Self::parse_any(text)?;
        if network.bits == 0 { Err(Problem::Everybody) } else { Ok(network) }
    }

    /// Reads `10.0.0.0/8`, or a single address as a network of one address.
    pub(crate) fn parse_any(text: &str) -> Result<Self, Problem> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let written: IpAddr = address.parse().map_err(|_| Problem::Address)?;
        let bits = match prefix {
            Some(prefix) => bits(prefix, width(written))?,
            None => width(written),
        };
        let network = cut(written, bits);
        if network != written {
            return Err(Problem::HostBits { network, bits, address: written });
        }
        // An IPv4-mapped base fixes all of the first 96 bits, otherwise it would have been cut.
        let base = written.to_canonical();
        let bits = bits - (width(written) - width(base));
        Ok(Self { base, bits })
    }

    /// The leading bits that all of its addresses share, and their number, if this is an IPv6 network.
    pub(super) fn prefix_v6(&self) -> Option<(u128, u8)> {
        match self.base {
            IpAddr::V6(base) => Some((base.to_bits(), self.bits)),
            IpAddr::V4(_) => None,
        }
    }

    /// Whether the network contains `address`, which must be canonical.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        self.base.is_ipv4() == address.is_ipv4() && cut(address, self.bits) == self.base
    }
}

/// `address` with zeros after its first `bits` bits.
fn cut(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => cut_v4(v4, bits).into(),
        IpAddr::V6(v6) => cut_v6(v6, bits).into(),
    }
}

#[inline]
pub(super) fn cut_v4(address: Ipv4Addr, bits: u8) -> Ipv4Addr {
    let mask = u32::MAX.checked_shl(32_u32.saturating_sub(bits.into())).unwrap_or(0);
    Ipv4Addr::from_bits(address.to_bits() & mask)
}

pub(super) fn cut_v6(address: Ipv6Addr, bits: u8) -> Ipv6Addr {
    let mask = u128::MAX.checked_shl(128_u32.saturating_sub(bits.into())).unwrap_or(0);
    Ipv6Addr::from_bits(address.to_bits() & mask)
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn bits(text: &str, width: u8) -> Result<u8, Problem> {
    // `u8::from_str` would also accept a sign.
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let bits = text.parse().ok().filter(|&bits| digits && bits <= width);
    bits.ok_or(Problem::Prefix { width })
}

/// What is wrong with a network as written, as the rest of a sentence that begins with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Problem {
    Address,
    Prefix { width: u8 },
    HostBits { network: IpAddr, bits: u8, address: IpAddr },
    Everybody,
    NoTranslator,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address => {
                f.write_str("is neither an address nor a network such as `10.0.0.0/8`")
            }
            Self::Prefix { width } => {
                let version = if *width == 32 { 4 } else { 6 };
                write!(
                    f,
                    "needs a prefix length from 0 to {width}: an IPv{version} address has {width} bits"
                )
            }
            Self::HostBits { network, bits, address } => write!(
                f,
                "has bits set beyond its prefix: the network is `{network}/{bits}`, the one \
                 address is `{address}`"
            ),
            Self::NoTranslator => f.write_str(
                "is no prefix of a translator: that is an IPv6 network of 32, 40, 48, 56, 64 or 96 \
                 bits, such as `64:ff9b::/96`",
            ),
            Self::Everybody => f.write_str(
                "is every address there is, so any client could choose its own: name the proxies, \
                 or count them with `Ip::hops`",
            ),
        }
    }
}

/// An entry that is neither an address nor a network. The message names the entry and the mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkError {
    entry: String,
    problem: Problem,
}

impl NetworkError {
    pub(crate) fn new(entry: &str, problem: Problem) -> Self {
        Self { entry: entry.into(), problem }
    }

    /// The invalid entry, as it was written.
    pub fn entry(&self) -> &str {
        &self.entry
    }
}

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, problem } = self;
        write!(f, "the network `{entry}` {problem}")
    }
}

impl std::error::Error for NetworkError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(network: &str, address: &str) -> bool {
        Network::parse(network).unwrap().contains(address.parse::<IpAddr>().unwrap().to_canonical())
    }

    #[test]
    fn a_network_holds_the_addresses_with_its_prefix() {
        assert!(contains("10.0.0.0/8", "10.255.0.1"));
        assert!(!contains("10.0.0.0/8", "11.0.0.0"));
        assert!(contains("192.0.2.128/25", "192.0.2.200"));
        assert!(!contains("192.0.2.128/25", "192.0.2.127"));
        assert!(contains("192.0.2.1", "192.0.2.1"));
        assert!(!contains("192.0.2.1", "192.0.2.0"));
        assert!(contains("2001:db8::/33", "2001:db8:7fff::1"));
        assert!(!contains("2001:db8::/33", "2001:db8:8000::1"));
        assert!(!contains("::1", "0.0.0.1"));
    }

    #[test]
    fn ipv4_mapped_ipv6_is_ipv4_on_both_sides() {
        assert!(contains("10.0.0.0/8", "::ffff:10.1.2.3"));
        assert!(contains("::ffff:10.0.0.0/104", "10.1.2.3"));
        assert!(!contains("::ffff:10.0.0.0/104", "11.1.2.3"));
        assert!(!contains("::/64", "::ffff:10.1.2.3"));
    }

    #[test]
    fn everybody_is_no_network_of_proxies() {
        for text in ["0.0.0.0/0", "::/0", "::ffff:0.0.0.0/96"] {
            assert_eq!(Network::parse(text), Err(Problem::Everybody), "{text}");
        }
    }

    #[test]
    fn a_prefix_that_is_too_long_is_told_how_many_bits_there_are() {
        for (text, problem) in [
            ("10.0.0.0/33", "needs a prefix length from 0 to 32: an IPv4 address has 32 bits"),
            ("10.0.0.0/300", "needs a prefix length from 0 to 32: an IPv4 address has 32 bits"),
            ("10.0.0.0/+8", "needs a prefix length from 0 to 32: an IPv4 address has 32 bits"),
            ("::/129", "needs a prefix length from 0 to 128: an IPv6 address has 128 bits"),
        ] {
            assert_eq!(Network::parse_any(text).unwrap_err().to_string(), problem, "{text}");
        }
    }

    #[test]
    fn cutting_keeps_the_leading_bits() {
        let cut = |address: &str, bits| cut(address.parse().unwrap(), bits).to_string();
        assert_eq!(cut("192.0.2.255", 24), "192.0.2.0");
        assert_eq!(cut("192.0.2.255", 32), "192.0.2.255");
        assert_eq!(cut("192.0.2.255", 0), "0.0.0.0");
        assert_eq!(cut("2001:db8:1:2:3::", 64), "2001:db8:1:2::");
        assert_eq!(cut("2001:db8::1", 128), "2001:db8::1");
        assert_eq!(cut("2001:db8::1", 0), "::");
    }
}
