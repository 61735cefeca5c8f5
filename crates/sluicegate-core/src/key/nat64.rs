use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::network::{Network, Problem};
use crate::key::network::NetworkError;

/// A prefix behind which a translator embeds IPv4 addresses (RFC 6052).
#[derive(Debug, Clone, Copy)]
pub(super) struct Translator {
    network: Network,
    bits: u8,
}

impl Translator {
    pub(super) fn parse(text: &str) -> Result<Self, NetworkError> {
        let network =
            Network::parse_any(text).map_err(|problem| NetworkError::new(text, problem))?;
        match network.prefix_v6() {
            // In a prefix of 96 bits, the eight that must be zero belong to the prefix.
            Some((base, bits))
                if LENGTHS.contains(&bits) && (bits < 96 || base & RESERVED == 0) =>
            {
                Ok(Self { network, bits })
            }
            _ => Err(NetworkError::new(text, Problem::NoTranslator)),
        }
    }

    /// The IPv4 address embedded in `address`, if `address` has this prefix.
    pub(super) fn embedded(self, address: Ipv6Addr) -> Option<Ipv4Addr> {
        let bits = address.to_bits();
        if bits & RESERVED != 0 || !self.network.contains(IpAddr::V6(address)) {
            return None;
        }
        // Without the reserved bits, the IPv4 address follows the prefix in one piece.
        let (above, below) = (bits >> 64, bits & (RESERVED_BELOW - 1));
        let joined = above << 56 | below;
        let behind = if self.bits > 64 { self.bits - 8 } else { self.bits };
        u32::try_from((joined >> (120 - 32 - u32::from(behind))) & u128::from(u32::MAX))
            .ok()
            .map(Ipv4Addr::from_bits)
    }
}

/// The lengths that RFC 6052 allows.
const LENGTHS: [u8; 6] = [32, 40, 48, 56, 64, 96];

/// Bits 64 to 71 of an address are always zero, and not part of the IPv4 address.
const RESERVED: u128 = 0xff << 56;

/// Above the bits that follow the reserved ones.
const RESERVED_BELOW: u128 = 1 << 56;

#[cfg(test)]
mod tests {
    use super::*;

    fn embedded(prefix: &str, address: &str) -> Option<String> {
        let translator = Translator::parse(prefix).unwrap();
        translator.embedded(address.parse().unwrap()).map(|v4| v4.to_string())
    }

    /// The table of RFC 6052, section 2.4.
    #[test]
    fn every_length_of_a_prefix_holds_the_address_of_the_standard() {
        for (prefix, address) in [
            ("2001:db8::/32", "2001:db8:c000:221::"),
            ("2001:db8:100::/40", "2001:db8:1c0:2:21::"),
            ("2001:db8:122::/48", "2001:db8:122:c000:2:2100::"),
            ("2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"),
            ("2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100::"),
            ("2001:db8:122:344::/96", "2001:db8:122:344::192.0.2.33"),
            ("64:ff9b::/96", "64:ff9b::192.0.2.33"),
            ("64:ff9b:1::/48", "64:ff9b:1:c000:2:2100::"),
        ] {
            assert_eq!(embedded(prefix, address).as_deref(), Some("192.0.2.33"), "{prefix}");
        }
    }

    #[test]
    fn what_no_translator_made_is_itself() {
        assert_eq!(embedded("64:ff9b::/96", "2001:db8::1"), None);
        assert_eq!(embedded("64:ff9b::/96", "64:ff9b:0:1::192.0.2.33"), None);
        assert_eq!(embedded("64:ff9b:1::/48", "64:ff9b:1:c000:102:2100::"), None, "reserved bits");
    }

    #[test]
    fn what_is_no_prefix_of_a_translator_is_refused() {
        for text in
            ["64:ff9b::/95", "64:ff9b::", "192.0.2.0/24", "::ffff:0:0/96", "2001:db8:0:0:100::/96"]
        {
            let error = Translator::parse(text).unwrap_err();
            assert!(error.to_string().contains("no prefix of a translator"), "{error}");
        }
        assert!(Translator::parse("64:ff9b::1/96").unwrap_err().to_string().contains("beyond"));
    }
}
