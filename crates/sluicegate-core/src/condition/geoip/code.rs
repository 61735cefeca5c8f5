/// The length of the longest code, such as `US-CAL`.
const LONGEST: usize = 6;

/// The code of a country (`DE`, ISO 3166-1) or of a region (`US-CA`, ISO 3166-2), stored inline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code {
    text: [u8; LONGEST],
    len: u8,
}

impl Code {
    /// Accepts any two upper-case letters, even if no country has that code.
    pub(crate) fn of_country(text: &str) -> Option<Self> {
        let sound = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_uppercase());
        sound.then(|| Self::joined(&[text.as_bytes()]))
    }

    /// Accepts the code of a country and one to three upper-case letters or digits for its part.
    pub(crate) fn of_region(country: &str, part: &str) -> Option<Self> {
        let letter = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
        let sound = (1..=3).contains(&part.len()) && part.bytes().all(letter);
        Self::of_country(country).filter(|_| sound)?;
        Some(Self::joined(&[country.as_bytes(), b"-", part.as_bytes()]))
    }

    /// Accepts the code of an existing country only.
    pub(crate) fn parse_country(text: &str) -> Option<Self> {
        Self::of_country(text).filter(|_| is_country(text))
    }

    /// Accepts the code of a region in an existing country only.
    pub(crate) fn parse_region(text: &str) -> Option<Self> {
        let (country, part) = text.split_once('-')?;
        Self::parse_country(country)?;
        Self::of_region(country, part)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.text.get(..self.len.into()).unwrap_or_default()
    }

    fn joined(parts: &[&[u8]]) -> Self {
        let mut text = [0; LONGEST];
        let bytes = parts.iter().copied().flatten();
        let len = text.iter_mut().zip(bytes).map(|(slot, byte)| *slot = *byte).count();
        Self { text, len: len as u8 }
    }
}

/// The ISO 3166-1 codes of countries and territories, in order. A code that does not exist, such as `UK` for
/// `GB`, is an error when a rule is made, instead of a condition that never holds.
const COUNTRIES: &str = "\
    AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ \
    BR BS BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM \
    DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS \
    GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN \
    KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ \
    MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM \
    PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV \
    SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI \
    VN VU WF WS YE YT ZA ZM ZW";

/// Whether `code` is a country, or one of the codes that the standard reserves for private use. Databases
/// use `XK` of those for Kosovo.
fn is_country(code: &str) -> bool {
    let own_use = match code.as_bytes() {
        b"AA" | b"ZZ" => true,
        [b'Q', second] => (b'M'..=b'Z').contains(second),
        [b'X', second] => second.is_ascii_uppercase(),
        _ => false,
    };
    own_use || COUNTRIES.split(' ').any(|country| country == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_countries_are_two_capital_letters_that_a_country_has() {
        assert_eq!(Code::parse_country("DE").unwrap().as_bytes(), b"DE");
        for text in ["", "D", "de", "DEU", "D1", "ÄÖ", "UK", "EU", "DE-BE"] {
            assert_eq!(Code::parse_country(text), None, "{text}");
        }
    }

    #[test]
    fn codes_of_regions_are_a_countrys_and_up_to_three_letters_or_digits() {
        for text in ["US-CA", "GB-ENG", "FR-75", "MC-X"] {
            assert_eq!(Code::parse_region(text).unwrap().as_bytes(), text.as_bytes());
        }
        for text in ["", "US", "US-", "US-ca", "US-CALI", "-CA", "UK-ENG", "US_CA", "US-C-A"] {
            assert_eq!(Code::parse_region(text), None, "{text}");
        }
    }

    #[test]
    fn a_database_may_know_a_country_that_the_list_does_not() {
        assert!(Code::of_country("UK").is_some());
        assert_ne!(Code::of_country("US"), Code::of_region("US", "CA"));
        assert_eq!(Code::of_country("usa"), None);
    }

    #[test]
    fn the_list_is_whole_and_in_order() {
        let countries: Vec<_> = COUNTRIES.split(' ').collect();
        assert_eq!(countries.len(), 249);
        assert!(countries.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(countries.iter().all(|code| code.len() == 2));
    }

    #[test]
    fn what_is_left_to_own_use_may_be_a_country() {
        assert!(["XK", "QM", "QZ", "AA", "ZZ", "DE"].into_iter().all(is_country));
        assert!(!["UK", "EU", "QL", "EL", "", "D"].into_iter().any(is_country));
    }
}
