use super::countries::is_country;

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
}
