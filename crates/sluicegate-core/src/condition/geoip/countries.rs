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
pub(crate) fn is_country(code: &str) -> bool {
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
