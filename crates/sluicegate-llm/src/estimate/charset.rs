/// Whether a `Content-Type` names only encodings in which names, digits and quotation marks are where this service finds
/// them. Some services decode a body by it before they read its JSON: UTF-7 or EBCDIC would hide a bound there.
pub(super) fn is_read(content_type: &[u8]) -> bool {
    let lower = content_type.to_ascii_lowercase();
    let mut rest = &lower[..];
    // Parsers differ in what is a parameter and which one of two counts, so each mention of the word counts.
    while let Some(at) = rest.windows(NAME.len()).position(|part| part == NAME) {
        rest = &rest[at + NAME.len()..];
        let begin = rest.iter().position(|byte| !b"*= \t\"'".contains(byte)).unwrap_or(rest.len());
        let value = &rest[begin..];
        let end = value.iter().position(|byte| b";, \t\"".contains(byte)).unwrap_or(value.len());
        if !is_known(&value[..end]) {
            return false;
        }
    }
    true
}

const NAME: &[u8] = b"charset";

fn is_known(charset: &[u8]) -> bool {
    // Unicode is found by the bytes themselves. The others have ASCII in all of its bytes, and nowhere else.
    const UNICODE: [&[u8]; 4] = [b"utf8", b"utf16", b"utf32", b"utf8mb4"];
    const SINGLE: [&[u8]; 7] =
        [b"iso8859", b"latin", b"windows125", b"cp125", b"koi8", b"usascii", b"ascii"];
    let mut name: Vec<u8> =
        charset.iter().copied().filter(|byte| !matches!(byte, b'-' | b'_')).collect();
    for order in [&b"le"[..], b"be"] {
        if name.starts_with(b"utf") && name.ends_with(order) {
            name.truncate(name.len() - order.len());
        }
    }
    name.is_empty()
        || UNICODE.contains(&&name[..])
        || SINGLE.iter().any(|begin| {
            let rest = name.strip_prefix(*begin);
            rest.is_some_and(|rest| {
                rest.iter().all(|byte| byte.is_ascii_digit() || *byte == b'r' || *byte == b'u')
            })
        })
}

#[cfg(test)]
mod tests {
    use super::is_read;

    #[test]
    fn encodings_that_hide_names_are_not_read() {
        for read in [
            "",
            "application/json",
            "application/json; charset=utf-8",
            "application/json;charset=\"UTF-8\"",
            "application/json; charset=UTF-16LE",
            "text/plain; Charset = ISO-8859-15",
            "text/plain; charset=us-ascii; charset=utf8",
            "text/plain; charset=windows-1252",
            "text/plain; charset=koi8-r",
            "text/plain; charset=",
        ] {
            assert!(is_read(read.as_bytes()), "{read}");
        }
        for hidden in [
            "application/json; charset=utf-7",
            "application/json; charset=UTF-7-IMAP",
            "application/json; charset = \"utf7\"",
            "application/json; charset=utf-8; charset=utf-7",
            "application/json; charset*=us-ascii''utf-7",
            "application/json; charset=IBM037",
            "application/json; charset=unicode_escape",
            "application/json; charset=shift_jis",
            "application/json; CHARSET=gb18030",
            "application/json; charset='utf-7'",
            "application/json; charset=utf-ebcdic",
        ] {
            assert!(!is_read(hidden.as_bytes()), "{hidden}");
        }
    }
}
