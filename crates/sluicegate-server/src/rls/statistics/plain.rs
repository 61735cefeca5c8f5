//! Names of clients in names of statistics.

use sluicegate_core::adapter::step;

/// A name without the characters that divide one line from the next, and a name from its value. The dots of addresses do not
/// divide either.
pub(super) fn plain(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let length = address(rest);
        if length > 0 {
            plain.push_str(&rest[..length].replace('.', "_"));
            rest = &rest[length..];
            continue;
        }
        let divides = matches!(first, ':' | '|') || first.is_control();
        plain.push(if divides { '_' } else { first });
        rest = &rest[first.len_utf8()..];
    }
    plain
}

/// The length of what looks like an address of IPv4 at the begin of a text, or 0: four times one to three digits.
fn address(text: &str) -> usize {
    let mut length = 0;
    for part in 0..4 {
        if part > 0 {
            if !text[length..].starts_with('.') {
                return 0;
            }
            length += 1;
        }
        let behind = text[length..].bytes().inspect(|_| step(1));
        let digits = behind.take(3).take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return 0;
        }
        length += digits;
    }
    length
}

#[cfg(test)]
mod tests {
    use sluicegate_core::adapter::steps;

    use super::plain;

    #[test]
    fn a_name_takes_steps_that_its_length_bounds() {
        for piece in ["1", "111.", "1.1.1.", "1.1.1.1"] {
            let name = piece.repeat(1_000);
            let before = steps();
            plain(&name);
            let taken = steps() - before;
            assert!(taken <= 16 * name.len(), "{taken} steps for {piece}");
        }
    }

    #[test]
    fn no_name_divides_lines_and_addresses_do_not_divide_names() {
        for (name, expected) in [
            ("edge.user_alice", "edge.user_alice"),
            ("edge.remote_address_10.0.0.7", "edge.remote_address_10_0_0_7"),
            ("edge.a_b:c|d\ne", "edge.a_b_c_d_e"),
            ("edge.v_1.2.3", "edge.v_1.2.3"),
            ("1.2.3.4.5.6.7.8", "1_2_3_4.5_6_7_8"),
            ("1234.5.6.7890", "1234_5_6_7890"),
            ("ż.1.2.3.", "ż.1.2.3."),
            ("", ""),
        ] {
            assert_eq!(plain(name), expected);
        }
    }
}
