//! An Item of RFC 9651 with its parameters, as section 4.2.3 reads it.

/// A bare item, as far as its value matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Bare {
    Integer(i64),
    String(String),
    /// A Decimal, Token, Byte Sequence, Boolean, Date or Display String.
    Other,
}

/// The item and its parameters in order. If a parameter appears twice, the last one counts.
pub(super) fn item(text: &str) -> Option<(Bare, Vec<(&str, Bare)>)> {
    let (bare, mut rest) = bare(text.trim_matches(' '))?;
    let mut parameters = Vec::new();
    while let Some(parameter) = rest.strip_prefix(';') {
        let parameter = parameter.trim_start_matches(' ');
        let (key, after) = key(parameter)?;
        let (value, after) = match after.strip_prefix('=') {
            Some(value) => self::bare(value)?,
            None => (Bare::Other, after),
        };
        parameters.push((key, value));
        rest = after;
    }
    rest.is_empty().then_some((bare, parameters))
}

fn key(text: &str) -> Option<(&str, &str)> {
    let is_first = |byte: u8| byte.is_ascii_lowercase() || byte == b'*';
    let is_next = |byte: u8| is_first(byte) || byte.is_ascii_digit() || b"_-.".contains(&byte);
    text.bytes().next().filter(|first| is_first(*first))?;
    Some(split(text, is_next))
}

fn bare(text: &str) -> Option<(Bare, &str)> {
    match text.bytes().next()? {
        b'"' => string(&text[1..]),
        b'-' | b'0'..=b'9' => number(text),
        b'?' => other(text[1..].strip_prefix(['0', '1'])?),
        b'@' => match number(&text[1..])? {
            (Bare::Integer(_), rest) => other(rest),
            _ => None,
        },
        b':' => {
            let (bytes, rest) = text[1..].split_once(':')?;
            let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
            other(rest).filter(|_| bytes.bytes().all(is_base64))
        }
        b'%' => {
            let (text, rest) = text[1..].strip_prefix('"')?.split_once('"')?;
            other(rest).filter(|_| text.bytes().all(|byte| matches!(byte, b' '..=b'~')))
        }
        b'*' | b'A'..=b'Z' | b'a'..=b'z' => {
            let is_token =
                |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte);
            other(split(text, is_token).1)
        }
        _ => None,
    }
}

fn string(text: &str) -> Option<(Bare, &str)> {
    let mut string = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((Bare::String(string), &text[at + 1..])),
            '\\' => {
                let (_, escaped) = letters.next().filter(|(_, next)| matches!(next, '"' | '\\'))?;
                string.push(escaped);
            }
            ' '..='~' => string.push(letter),
            _ => return None,
        }
    }
    None
}

/// At most 15 digits, or 12 before a point and 3 after it.
fn number(text: &str) -> Option<(Bare, &str)> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, rest) = split(digits, |byte| byte.is_ascii_digit());
    if let Some(fraction) = rest.strip_prefix('.') {
        let (fraction, rest) = split(fraction, |byte| byte.is_ascii_digit());
        let is_decimal = (1..=12).contains(&whole.len()) && (1..=3).contains(&fraction.len());
        return other(rest).filter(|_| is_decimal);
    }
    let sign = if digits.len() < text.len() { -1 } else { 1 };
    let number = whole.parse::<i64>().ok().filter(|_| whole.len() <= 15)?;
    Some((Bare::Integer(sign * number), rest))
}

#[expect(clippy::unnecessary_wraps, reason = "it ends the readers above")]
fn other(rest: &str) -> Option<(Bare, &str)> {
    Some((Bare::Other, rest))
}

fn split(text: &str, belongs: impl Fn(u8) -> bool) -> (&str, &str) {
    let end = text.bytes().position(|byte| !belongs(byte)).unwrap_or(text.len());
    text.split_at(end)
}
