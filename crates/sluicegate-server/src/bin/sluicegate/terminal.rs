//! Text for a terminal, or for a program that reads it through a pipe.

use std::io::{self, Write as _};

/// Writes to standard output. A reader that has seen enough, such as `head`, is not an error.
pub(crate) fn print(text: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Text without characters that move the cursor, change the order of characters or cannot be seen. Terminals obey them,
/// and the keys are chosen by clients.
pub(crate) fn escaped(text: &str) -> String {
    // Quotes are harmless.
    escaped_except(&['"', '\''], text)
}

/// Several lines of text that quote a file, without what a terminal would obey.
pub(crate) fn readable(text: &str) -> String {
    escaped_except(&['"', '\'', '\\', '\n'], text)
}

/// A share from 0 to 1 in percent, with as many digits as people read.
pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        ..0.01 => "less than 0.01 %".to_owned(),
        percent @ ..1.0 => format!("{percent:.2} %"),
        percent => format!("{percent:.1} %"),
    }
}

/// The margin of error of a share in a sample of this size, with a certainty of 95 %. It is 1.96 times the standard deviation of a
/// share of one half, which is the largest.
pub(crate) fn margin(sample: usize) -> String {
    percent(0.98 / (sample as f64).sqrt())
}

/// A number with a comma between thousands.
pub(crate) fn grouped(number: f64) -> String {
    // The sum of nothing is -0.
    with_commas(&format!("{:.0}", number + 0.0))
}

/// Digits with commas between thousands.
pub(crate) fn with_commas(digits: &str) -> String {
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A span of time, in the unit that fits.
pub(crate) fn span(seconds: f64) -> String {
    let (unit, length) = match seconds {
        ..1.0 => return format!("{:.0} ms", seconds * 1_000.0),
        ..120.0 => ("seconds", 1.0),
        ..7_000.0 => ("minutes", 60.0),
        ..172_800.0 => ("hours", 3_600.0),
        _ => ("days", 86_400.0),
    };
    format!("{:.1} {unit}", seconds / length)
}

fn escaped_except(kept: &[char], text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for piece in text.split_inclusive(kept) {
        let last = piece.chars().next_back().filter(|last| kept.contains(last));
        let body = &piece[..piece.len() - usize::from(last.is_some())];
        escaped.extend(body.escape_debug());
        escaped.extend(last);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        for (text, expected) in [
            ("\u{1b}]0;owned\u{7}", r"\u{1b}]0;owned\u{7}"),
            ("a\r\nb\tc", r"a\r\nb\tc"),
            ("\u{9b}2J", r"\u{9b}2J"),
            ("a\u{202e}b\u{2066}c\u{200f}d\u{61c}", r"a\u{202e}b\u{2066}c\u{200f}d\u{61c}"),
            ("zero\u{200b}width\u{2028}", r"zero\u{200b}width\u{2028}"),
            (r"back\slash", r"back\\slash"),
            ("it's \"é\" 日本", "it's \"é\" 日本"),
        ] {
            assert_eq!(escaped(text), expected);
        }
    }

    #[test]
    fn lines_and_backslashes_of_a_file_stay_as_they_are() {
        let text = "a.toml:1:1: `\\d+` is \"not\" 日本\nnext";
        assert_eq!(readable(text), text);
        assert_eq!(readable("\u{1b}[2J\r\n\u{202e}"), "\\u{1b}[2J\\r\n\\u{202e}");
    }
}
