//! Formats of lines: those of nginx, Apache and Envoy, by the text that their configuration has.

use memchr::memchr;

use super::field::{Draft, Field, Headers};

/// A line of fields with fixed text between them.
#[derive(Debug, Clone)]
pub(super) struct Template {
    /// The text before the first field.
    start: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone)]
struct Part {
    field: Field,
    /// The text behind the field. Empty at the end of the line.
    end: String,
    /// The text behind the next field, if that is a time in brackets.
    behind_time: Option<String>,
}

/// A format string, and what it says of times.
#[derive(Debug, Clone)]
pub(super) struct Compiled {
    pub(super) template: Template,
    /// Whether the time is that of the end of the answer.
    pub(super) is_end: bool,
    /// How times are written, if not as everywhere.
    pub(super) pattern: Option<String>,
    /// Whether the zone of times is a field of its own.
    pub(super) has_zone: bool,
}

/// Text, or a field.
enum Piece {
    Text(String),
    Field(Field),
}

/// Which server a format string is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Nginx,
    Apache,
    Envoy,
}

/// Reads a format string of nginx, Apache or Envoy.
///
/// # Errors
///
/// A sentence that says what is wrong.
pub(super) fn compile(format: &str, headers: &mut Headers) -> Result<Compiled, String> {
    let dialect = if format.contains('$') {
        Dialect::Nginx
    } else if format.contains("%START_TIME") || format.contains("%REQ(") {
        Dialect::Envoy
    } else {
        Dialect::Apache
    };
    let unescaped;
    let format = if dialect == Dialect::Nginx {
        format
    } else {
        unescaped = without_escapes(format);
        &unescaped
    };
    let mut apache = Apache { pattern: None, is_end: false, has_zone: false };
    let mut pieces = Vec::new();
    let mut rest = format;
    while !rest.is_empty() {
        let sign = if dialect == Dialect::Nginx { '$' } else { '%' };
        let at = rest.find(sign).unwrap_or(rest.len());
        let (text, behind) = rest.split_at(at);
        if !text.is_empty() {
            pieces.push(Piece::Text(text.to_owned()));
        }
        rest = behind;
        if let Some(behind) = rest.strip_prefix(sign) {
            rest = match dialect {
                Dialect::Nginx => nginx(behind, headers, &mut pieces)?,
                Dialect::Apache => apache.field(behind, headers, &mut pieces)?,
                Dialect::Envoy => envoy(behind, headers, &mut pieces)?,
            };
        }
    }
    let has = |wanted: &[Field]| {
        pieces.iter().any(|piece| matches!(piece, Piece::Field(field) if wanted.contains(field)))
    };
    if !has(&[Field::Time, Field::Start]) {
        return Err(format!(
            "--format: `{format}` has no time, such as `$time_local`, `%t` or `%START_TIME%`"
        ));
    }
    if !has(&[Field::Request, Field::Target, Field::Rewritten]) {
        return Err(format!(
            "--format: `{format}` has no path, such as `$request`, `%r` or `%REQ(:PATH)%`"
        ));
    }
    Ok(Compiled {
        template: Template::new(pieces, format)?,
        is_end: dialect == Dialect::Nginx || apache.is_end,
        pattern: apache.pattern,
        has_zone: apache.has_zone,
    })
}

/// The text that the configuration of Apache or Envoy has between quotes, as the server reads it, without the line break at its
/// end.
fn without_escapes(format: &str) -> String {
    let (mut text, mut chars) = (String::with_capacity(format.len()), format.chars());
    while let Some(char) = chars.next() {
        let escaped = (char == '\\').then(|| chars.clone().next()).flatten();
        let meant = match escaped {
            Some(char @ ('"' | '\\')) => char,
            Some('t') => '\t',
            Some('n') => '\n',
            _ => {
                text.push(char);
                continue;
            }
        };
        chars.next();
        text.push(meant);
    }
    text.truncate(text.trim_end_matches('\n').len());
    text
}

impl Template {
    fn new(pieces: Vec<Piece>, format: &str) -> Result<Self, String> {
        let (mut start, mut parts) = (String::new(), Vec::<Part>::new());
        for piece in pieces {
            match (piece, parts.last_mut()) {
                (Piece::Text(text), None) => start.push_str(&text),
                (Piece::Text(text), Some(part)) => part.end.push_str(&text),
                (Piece::Field(_), Some(part)) if part.end.is_empty() => {
                    return Err(format!(
                        "--format: `{format}` has two fields without a character between them, so nothing tells where the first one ends"
                    ));
                }
                (Piece::Field(field), _) => {
                    parts.push(Part { field, end: String::new(), behind_time: None });
                }
            }
        }
        for at in 1..parts.len() {
            let Part { field, end, .. } = &parts[at];
            if field.is_time() && parts[at - 1].end == " [" && end.starts_with(']') {
                parts[at - 1].behind_time = Some(end.clone());
            }
        }
        Ok(Self { start, parts })
    }

    /// Reads a line. What stands behind the last text of the format is ignored: servers append fields.
    #[inline]
    pub(super) fn read(&self, line: &str, draft: &mut Draft<'_>) -> Option<()> {
        let mut rest = line.strip_prefix(&*self.start)?;
        for Part { field, end, behind_time } in &self.parts {
            let at = find(rest, end, *field, behind_time.as_deref())?;
            draft.text(*field, &rest[..at]);
            rest = &rest[at + end.len()..];
        }
        Some(())
    }

    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }
}

/// Where the text behind a field begins. A quote behind a backslash is a part of the field. Envoy writes quotes as clients
/// send them, so a request ends behind its version, if it has one. nginx writes the names of users as clients send them, so a
/// field before a time in brackets ends where a time follows, with the text `behind_time` behind it.
#[inline]
fn find(text: &str, end: &str, field: Field, behind_time: Option<&str>) -> Option<usize> {
    let Some(&first) = end.as_bytes().first() else { return Some(text.len()) };
    let bytes = text.as_bytes();
    let (mut from, mut found) = (0, None);
    while let Some(at) = memchr(first, &bytes[from..]) {
        let at = from + at;
        let is_part = first == b'"' && is_escaped(&bytes[..at]);
        // The text of a field may have the first character of what ends it. The rest has a byte or two, for which a call of
        // `memcmp` takes longer than the search.
        let behind = bytes.get(at + 1..at + end.len());
        if !is_part && behind.is_some_and(|behind| behind.iter().eq(&end.as_bytes()[1..])) {
            let is_end = match behind_time {
                _ if field == Field::Request => has_version(&bytes[..at]),
                Some(next) => is_time(&bytes[at + end.len()..], next),
                None => true,
            };
            if is_end {
                return Some(at);
            }
            found = found.or(Some(at));
        }
        from = at + 1;
    }
    found
}

/// Whether a line of a request ends with a version such as `HTTP/1.1` or `HTTP/2`.
fn has_version(line: &[u8]) -> bool {
    let last = &line[line.len().saturating_sub(9)..];
    last.ends_with(b" HTTP/2")
        || last.ends_with(b" HTTP/3")
        || last
            .strip_suffix(b"1")
            .or_else(|| last.strip_suffix(b"0"))
            .is_some_and(|last| last.starts_with(b" HTTP/"))
}

/// The longest time in brackets, in bytes, so that no line of brackets is searched to its end from each of them.
const LONGEST_TIME: usize = 64;

/// Whether a text begins with what may be a time, and `next` follows, which begins with a bracket.
fn is_time(text: &[u8], next: &str) -> bool {
    let end = memchr(b']', &text[..text.len().min(LONGEST_TIME)]);
    let end = end.filter(|end| text[*end..].starts_with(next.as_bytes()));
    end.is_some_and(|end| text[0].is_ascii_digit() && !text[..end].contains(&b'['))
}

fn is_escaped(before: &[u8]) -> bool {
    before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// `$name` or `${name}`
fn nginx<'a>(
    rest: &'a str,
    headers: &mut Headers,
    pieces: &mut Vec<Piece>,
) -> Result<&'a str, String> {
    let is_name = |char: char| char.is_ascii_alphanumeric() || char == '_';
    let (name, rest) = match rest.strip_prefix('{') {
        Some(rest) => rest.split_once('}').ok_or("--format: `${` without `}`")?,
        None => rest.split_at(rest.find(|char| !is_name(char)).unwrap_or(rest.len())),
    };
    if name.is_empty() {
        return Err("--format: `$` without the name of a variable".to_owned());
    }
    pieces.push(Piece::Field(headers.variable(name).unwrap_or(Field::Ignore)));
    Ok(rest)
}

/// What Apache's times are.
struct Apache {
    pattern: Option<String>,
    is_end: bool,
    has_zone: bool,
}

impl Apache {
    /// `%h`, `%>s` or `%{Referer}i`
    fn field<'a>(
        &mut self,
        rest: &'a str,
        headers: &mut Headers,
        pieces: &mut Vec<Piece>,
    ) -> Result<&'a str, String> {
        // Which of two requests after a redirect within the server, and for which statuses.
        let rest =
            rest.trim_start_matches(|char: char| "<>!,".contains(char) || char.is_ascii_digit());
        let (argument, rest) = match rest.strip_prefix('{') {
            Some(rest) => rest.split_once('}').ok_or("--format: `%{` without `}`")?,
            None => ("", rest),
        };
        // `%^ti` and `%^to` are trailers.
        if let Some(rest) = rest.strip_prefix("^ti").or_else(|| rest.strip_prefix("^to")) {
            pieces.push(Piece::Field(Field::Ignore));
            return Ok(rest);
        }
        let mut chars = rest.chars();
        let Some(letter) = chars.next() else {
            return Err("--format: `%` without a letter".to_owned());
        };
        let field = match letter {
            '%' => {
                pieces.push(Piece::Text("%".to_owned()));
                return Ok(chars.as_str());
            }
            't' if argument.is_empty() => {
                // `%t` has the brackets.
                pieces.extend([
                    Piece::Text("[".to_owned()),
                    Piece::Field(Field::Time),
                    Piece::Text("]".to_owned()),
                ]);
                return Ok(chars.as_str());
            }
            't' => self.time(argument, pieces)?,
            'a' if argument == "c" => Field::Connection,
            'h' | 'a' => Field::Peer,
            'r' => Field::Request,
            'm' => Field::Method,
            'U' => Field::Rewritten,
            'q' => return query(chars.as_str(), pieces),
            's' => Field::Status,
            'b' | 'B' | 'O' => Field::Bytes,
            'D' => Field::Duration(1_000),
            'T' => match argument {
                "" | "s" => Field::Duration(1_000_000_000),
                "ms" => Field::Duration(1_000_000),
                _ => Field::Duration(1_000),
            },
            'v' | 'V' => Field::ServerName,
            'i' => headers.field(argument),
            _ if letter.is_ascii_alphabetic() => Field::Ignore,
            _ => return Err(format!("--format: `%{letter}` is no field of Apache")),
        };
        pieces.push(Piece::Field(field));
        Ok(chars.as_str())
    }

    /// `%{..}t`
    fn time(&mut self, argument: &str, pieces: &[Piece]) -> Result<Field, String> {
        let pattern = match argument.split_once(':') {
            Some(("begin", pattern)) => pattern,
            Some(("end", pattern)) => {
                self.is_end = true;
                pattern
            }
            _ => argument,
        };
        let has_time = pieces.iter().any(|piece| matches!(piece, Piece::Field(Field::Time)));
        Ok(match pattern {
            "sec" | "msec" | "usec" => Field::Time,
            "msec_frac" => Field::Fraction(1_000_000),
            "usec_frac" => Field::Fraction(1_000),
            // The zone alone. Any other part would need both parts at once.
            "%z" if self.pattern.as_deref().is_some_and(lacks_zone_alone) => {
                self.has_zone = true;
                Field::Zone
            }
            _ if has_time => match &self.pattern {
                Some(first) if !has_date_and_hour(first) => {
                    return Err(format!(
                        "--format: `%{{{first}}}t` and `%{{{pattern}}}t` are parts of one time, which are not read together: log both in one, \
                         such as `%{{%Y-%m-%d %H:%M:%S}}t`"
                    ));
                }
                Some(first) if lacks_zone_alone(first) && has(pattern, "zZ") => {
                    return Err(format!(
                        "--format: `%{{{pattern}}}t` has the zone of `%{{{first}}}t`, which is read from `%{{%z}}t` alone: log that, or write `%{{zone}}e` in its place \
                         and name the zone with `--time-zone`"
                    ));
                }
                _ => Field::Ignore,
            },
            _ => {
                self.pattern = Some(pattern.to_owned());
                Field::Time
            }
        })
    }
}

/// Whether a pattern of `strftime` has one of these letters behind its signs.
fn has(pattern: &str, letters: &str) -> bool {
    let directives = pattern.split('%').skip(1).filter_map(|directive| {
        directive.trim_start_matches(['-', '_', '0', ':', '^', 'E', 'O']).chars().next()
    });
    directives.into_iter().any(|letter| letters.contains(letter))
}

/// Whether a pattern has a day and an hour.
fn has_date_and_hour(pattern: &str) -> bool {
    has(pattern, "cs") || (has(pattern, "dejDFx") && has(pattern, "HIklTRrX"))
}

/// Whether a pattern has a day and an hour, and no zone.
fn lacks_zone_alone(pattern: &str) -> bool {
    has_date_and_hour(pattern) && !has(pattern, "szZQ")
}

/// `%q` is empty, or begins with `?`, and follows the path without anything between them: both are one target.
fn query<'a>(rest: &'a str, pieces: &mut Vec<Piece>) -> Result<&'a str, String> {
    if !matches!(pieces.last(), Some(Piece::Field(Field::Rewritten))) {
        pieces.push(Piece::Field(Field::Query));
    }
    Ok(rest)
}

/// `%NAME%`, `%NAME(ARGUMENT)%` or `%NAME(ARGUMENT):LENGTH%`
fn envoy<'a>(
    rest: &'a str,
    headers: &mut Headers,
    pieces: &mut Vec<Piece>,
) -> Result<&'a str, String> {
    if let Some(rest) = rest.strip_prefix('%') {
        pieces.push(Piece::Text("%".to_owned()));
        return Ok(rest);
    }
    // The argument of a time is a pattern, which has signs of its own.
    let (name, argument, rest) = match rest.find(['(', '%']) {
        Some(at) if rest[at..].starts_with('(') => {
            let (argument, behind) = rest[at + 1..]
                .split_once(')')
                .ok_or("--format: `(` without `)` in a field of Envoy")?;
            let (_, behind) =
                behind.split_once('%').ok_or("--format: a field of Envoy without its last `%`")?;
            (&rest[..at], argument, behind)
        }
        Some(at) => (&rest[..at], "", &rest[at + 1..]),
        None => return Err("--format: a field of Envoy without its last `%`".to_owned()),
    };
    let name = name.split_once(':').map_or(name, |(name, _)| name);
    pieces.push(Piece::Field(match name {
        "START_TIME" => Field::Start,
        "DURATION" => Field::Duration(1_000_000),
        "RESPONSE_CODE" => Field::Status,
        "BYTES_SENT" => Field::Bytes,
        "DOWNSTREAM_REMOTE_ADDRESS" | "DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT" => Field::Peer,
        "DOWNSTREAM_DIRECT_REMOTE_ADDRESS" | "DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT" => {
            Field::Connection
        }
        "REQ" => match argument.to_ascii_lowercase().as_str() {
            ":method" => Field::Method,
            ":path" | "x-envoy-original-path?:path" => Field::Target,
            ":authority" => Field::Host,
            name => headers.field(name.split_once('?').map_or(name, |(name, _)| name)),
        },
        _ => Field::Ignore,
    }));
    Ok(rest)
}
