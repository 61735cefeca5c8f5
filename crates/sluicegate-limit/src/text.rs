//! Limits as text: parsing and printing.
//!
//! ```text
//! limit   = [shape] rate *option
//! shape   = "leaky" | "fixed" | "log" | "sliding"            (none: token bucket)
//! rate    = count ("/" | "per") time | "concurrent" count
//! time    = [number] unit                                     100ms, 2 hours, minute
//! option  = "burst" n | "stepped" | "queue" n | "delay-after" n | "from-first"
//!         | "resolution" time | "count-refused" | "min-gap" time | "soft" n | "over" n "%"
//!         | "ban" time ["after" n "in" time] | "carried" | "shadow"
//!         | "when-full" ("admit" | "refuse" | "together") | "named" word | "named" '"' text '"'
//! ```
//!
//! Each option is there once at most. Tokens may be in upper or lower case. The case of names is kept. A month has 30 days and a year has 365.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use crate::error::LimitError;
use crate::limit::{AlgorithmSpec, Limit};
use crate::when_full::WhenFull;

/// The units that are printed, largest first; microseconds divide everything.
const UNITS: [(&str, u64); 7] = [
    ("week", 604_800_000_000),
    ("day", 86_400_000_000),
    ("hour", 3_600_000_000),
    ("minute", 60_000_000),
    ("second", 1_000_000),
    ("millisecond", 1_000),
    ("microsecond", 1),
];

/// Thirty days, as in Envoy's rate limit service.
const MONTH: u64 = 30 * 86_400_000_000;

/// 365 days, as in Envoy's rate limit service.
const YEAR: u64 = 365 * 86_400_000_000;

/// Prints text that [`FromStr`](str::parse) reads.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.spec {
            AlgorithmSpec::LeakyBucket { .. } => "leaky ",
            AlgorithmSpec::FixedWindow { .. } => "fixed ",
            AlgorithmSpec::SlidingLog { .. } => "log ",
            AlgorithmSpec::SlidingWindow => "sliding ",
            AlgorithmSpec::TokenBucket { .. }
            | AlgorithmSpec::SteppedBucket { .. }
            | AlgorithmSpec::Concurrent => "",
        })?;
        self.write_rate(f)?;
        match self.spec {
            AlgorithmSpec::TokenBucket { burst } if burst != self.count => {
                write!(f, " burst {burst}")?;
            }
            AlgorithmSpec::SteppedBucket { burst } => write!(f, " stepped burst {burst}")?,
            AlgorithmSpec::LeakyBucket { queue, delay_after } => {
                if queue > 0 {
                    write!(f, " queue {queue}")?;
                }
                if delay_after > 0 {
                    write!(f, " delay-after {delay_after}")?;
                }
            }
            AlgorithmSpec::FixedWindow { from_first: true } => f.write_str(" from-first")?,
            AlgorithmSpec::SlidingLog { resolution } if resolution > 1 => {
                write!(f, " resolution {}", Time(resolution))?;
            }
            AlgorithmSpec::TokenBucket { .. }
            | AlgorithmSpec::FixedWindow { .. }
            | AlgorithmSpec::SlidingLog { .. }
            | AlgorithmSpec::SlidingWindow
            | AlgorithmSpec::Concurrent => {}
        }
        if self.count_refused {
            f.write_str(" count-refused")?;
        }
        if self.gap > 0 {
            write!(f, " min-gap {}", Time(self.gap))?;
        }
        if let Some(soft) = self.soft {
            write!(f, " soft {soft}")?;
        }
        if self.ban > 0 {
            write!(f, " ban {}", Time(self.ban))?;
        }
        if self.after > 0 {
            write!(f, " after {} in {}", self.after, Time(self.within))?;
        }
        if let Some(name) = self.name.as_str() {
            write!(f, " named {name:?}")?;
        }
        if self.carried {
            f.write_str(" carried")?;
        }
        if self.shadow {
            f.write_str(" shadow")?;
        }
        self.when_full.map_or(Ok(()), |answer| write!(f, " when-full {answer}"))
    }
}

/// A piece of a limit's name.
#[derive(Debug, Clone, Copy)]
pub enum NamePiece<'a> {
    /// Text as it is.
    Text(&'a str),
    /// A number in digits.
    Number(u64),
}

impl Limit {
    /// The rate alone, which is also the name of a limit that has none.
    pub(crate) fn write_rate(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut written = Ok(());
        self.each_rate_piece(&mut |piece| {
            written = written.and_then(|()| match piece {
                NamePiece::Text(text) => f.write_str(text),
                NamePiece::Number(number) => write!(f, "{number}"),
            });
        });
        written
    }

    /// The pieces of the rate.
    pub(crate) fn each_rate_piece(&self, each: &mut impl FnMut(NamePiece<'_>)) {
        use NamePiece::{Number, Text};

        if let AlgorithmSpec::Concurrent = self.spec {
            [Text("concurrent "), Number(self.count)].into_iter().for_each(each);
            return;
        }
        each(Number(self.count));
        match largest_unit(self.period) {
            (unit, 1) => [Text("/"), Text(unit)].into_iter().for_each(each),
            (unit, number) => {
                [Text(" per "), Number(number), Text(" "), Text(unit), Text("s")]
                    .into_iter()
                    .for_each(each);
            }
        }
    }
}

impl Limit {
    /// The default name of a limit among others on the same key: its period in words, such as `minute` or
    /// `30 days`, or `concurrent`.
    pub fn period_name(&self) -> String {
        match (self.spec, largest_unit(self.period)) {
            (AlgorithmSpec::Concurrent, _) => "concurrent".into(),
            (_, (unit, 1)) => unit.into(),
            _ => Time(self.period).to_string(),
        }
    }
}

struct Time(u64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, number) = largest_unit(self.0);
        write!(f, "{number} {unit}{}", if number == 1 { "" } else { "s" })
    }
}

fn largest_unit(micros: u64) -> (&'static str, u64) {
    UNITS
        .into_iter()
        .find(|(_, unit)| micros % unit == 0)
        .map_or(("microsecond", micros), |(name, unit)| (name, micros / unit))
}

impl FromStr for Limit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        Self::parse_with_options(text).map(|(limit, _)| limit)
    }
}

impl Limit {
    /// Like `parse`, with the names of the options in the text, so that a table around it can refuse to say one again.
    #[doc(hidden)]
    pub fn parse_with_options(text: &str) -> Result<(Self, Vec<String>), LimitError> {
        let text = text.trim();
        parse(&mut Tokens(text)).map_err(|error| error.in_text(text))
    }
}

fn parse(tokens: &mut Tokens<'_>) -> Result<(Limit, Vec<String>), LimitError> {
    let shape = tokens.shape()?;
    let mut limit = if shape == "concurrent" {
        Limit::try_concurrent(tokens.number()?)?
    } else {
        let count = tokens.number()?;
        match tokens.word()?.as_str() {
            "/" | "per" => {}
            "," => return Err(LimitError::new(COMMA)),
            _ => return Err(LimitError::new("after the count comes `/` or `per`, and a time")),
        }
        let period = tokens.time()?;
        match shape {
            "leaky" => Limit::try_leaky_bucket(count, period)?,
            "fixed" => Limit::try_fixed_window(count, period)?,
            "log" => Limit::try_sliding_log(count, period)?,
            "sliding" => Limit::try_sliding_window(count, period)?,
            // Said of a bucket at once: one that is refilled continuously may not stay exact.
            _ if tokens.clone().next().as_deref() == Some("stepped") => {
                Limit::make(AlgorithmSpec::SteppedBucket { burst: count }, count, period)?
            }
            _ => Limit::try_per(count, period)?,
        }
    };
    // Both are about the whole limit: the burst and the soft limit, or the name, may come after them.
    let (mut over, mut carried) = (None, false);
    let mut options = Vec::<String>::new();
    while let Some(option) = tokens.next() {
        if options.contains(&option) {
            return Err(LimitError::new(
                "an option is there twice: which of the two counts is not clear",
            ));
        }
        options.push(option.clone());
        limit = match option.as_str() {
            "burst" => limit.try_burst(tokens.number()?)?,
            "stepped" => limit.try_refill(limit.count, Duration::from_micros(limit.period))?,
            "queue" => limit.try_queue(tokens.number()?)?,
            "delay-after" => limit.try_delay_after(tokens.number()?)?,
            "from-first" => limit.try_from_first()?,
            "resolution" => limit.try_resolution(tokens.time()?)?,
            "count-refused" => limit.try_count_refused()?,
            "min-gap" => limit.try_min_gap(tokens.time()?)?,
            "soft" => limit.try_soft(tokens.number()?)?,
            "over" => {
                over = Some(tokens.percent()?);
                limit
            }
            "ban" => tokens.ban(limit)?,
            "shadow" => limit.try_shadow()?,
            "when-full" => limit.when_full(tokens.when_full()?),
            "carried" => {
                carried = true;
                limit
            }
            "named" => {
                let name = tokens.name()?;
                limit.try_named(&name)?
            }
            "," => return Err(LimitError::new(COMMA)),
            ";" => return Err(LimitError::new(SEMICOLON)),
            _ => {
                return Err(LimitError::new(
                    "an option is not known: use burst, stepped, queue, delay-after, from-first, \
                     resolution, count-refused, min-gap, soft, over, ban, carried, shadow, \
                     when-full or named",
                ));
            }
        };
    }
    if let Some(percent) = over {
        limit = limit.try_over_percent(percent)?;
    }
    // About the whole limit, too: the resolution comes after the count.
    limit.check_length()?;
    let limit = if carried { limit.try_carried()? } else { limit };
    Ok((limit, options))
}

/// The error for a separator of limits in the text of one limit.
const SEMICOLON: &str = "a `;` begins another limit: read several limits as `Limits`";

/// The error for a comma, whether it separates limits or the digits of a number.
const COMMA: &str = "a comma has no meaning here: separate limits by `;`, and write 10000 or 10_000 for a large number";

/// The rest of the text; a number, a word and a `/` need no space between them. Tokens are read in lower case.
#[derive(Clone)]
struct Tokens<'a>(&'a str);

impl Tokens<'_> {
    fn shape(&mut self) -> Result<&'static str, LimitError> {
        let rest = self.0.trim_start();
        if rest.starts_with(|char: char| char.is_ascii_digit()) {
            return Ok("");
        }
        let word = self.next().ok_or_else(|| LimitError::new("there is no limit"))?;
        let known = ["leaky", "fixed", "log", "sliding", "concurrent"];
        match (known.into_iter().find(|shape| *shape == word), word.as_str()) {
            (Some(shape), _) => Ok(shape),
            (None, "token") => Ok(""),
            (None, "-") => Err(LimitError::new("the count is negative")),
            (None, ",") => Err(LimitError::new(COMMA)),
            (None, _) => Err(LimitError::new(
                "the algorithm is not known: use leaky, fixed, log, sliding or concurrent, or none for \
                 a token bucket",
            )),
        }
    }

    fn word(&mut self) -> Result<String, LimitError> {
        self.next().ok_or_else(|| LimitError::new("the text ends too soon"))
    }

    /// Digits, with `_` between them as in Rust.
    fn number(&mut self) -> Result<u64, LimitError> {
        let word = self.word()?;
        let digits = word.replace('_', "");
        if !word.starts_with(|char: char| char.is_ascii_digit()) {
            return Err(LimitError::new("a whole number is missing"));
        }
        digits.parse().map_err(|_| LimitError::new("a number is too large"))
    }

    fn time(&mut self) -> Result<Duration, LimitError> {
        let numbered = self.0.trim_start().starts_with(|char: char| char.is_ascii_digit());
        let number = if numbered { self.number()? } else { 1 };
        let unit = match self.word()?.as_str() {
            "us" | "microsecond" | "microseconds" => 1,
            "ms" | "millisecond" | "milliseconds" => 1_000,
            "s" | "sec" | "second" | "seconds" => 1_000_000,
            "m" | "min" | "minute" | "minutes" => 60_000_000,
            "h" | "hour" | "hours" => 3_600_000_000,
            "d" | "day" | "days" => 86_400_000_000,
            "w" | "week" | "weeks" => 604_800_000_000,
            "month" | "months" => MONTH,
            "y" | "year" | "years" => YEAR,
            _ => {
                return Err(LimitError::new(
                    "the unit of time is not known: use us, ms, s, min, h, d, w, month or year, or \
                     their names",
                ));
            }
        };
        let micros = number.checked_mul(unit);
        micros.map(Duration::from_micros).ok_or_else(|| LimitError::new("a time is too long"))
    }

    fn percent(&mut self) -> Result<u64, LimitError> {
        let percent = self.number()?;
        match self.word()?.as_str() {
            "%" => Ok(percent),
            _ => Err(LimitError::new("after what is over the limit comes `%`: it is in percent")),
        }
    }

    /// The length of a ban, and after how many refusals it begins, if that is given.
    fn ban(&mut self, limit: Limit) -> Result<Limit, LimitError> {
        let limit = limit.try_ban(self.time()?)?;
        if self.clone().next().as_deref() != Some("after") {
            return Ok(limit);
        }
        self.next();
        let refusals = self.number()?;
        if self.word()? != "in" {
            return Err(LimitError::new(
                "after the refusals comes `in`, and the time they count in",
            ));
        }
        limit.try_ban_after(refusals, self.time()?)
    }

    fn when_full(&mut self) -> Result<WhenFull, LimitError> {
        let answer = WhenFull::of_word(&self.word()?);
        answer.ok_or_else(|| LimitError::new("after `when-full` comes admit, refuse or together"))
    }

    /// A bare word, or text in double quotes with `\"` and `\\` escaped.
    fn name(&mut self) -> Result<String, LimitError> {
        let rest = self.0.trim_start();
        let Some(quoted) = rest.strip_prefix('"') else {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            self.0 = &rest[end..];
            return Ok(rest[..end].to_owned());
        };
        let mut name = String::new();
        let mut chars = quoted.char_indices();
        while let Some((at, char)) = chars.next() {
            match char {
                '"' => {
                    self.0 = &quoted[at + 1..];
                    return Ok(name);
                }
                '\\' => name.extend(chars.next().map(|(_, escaped)| escaped)),
                char => name.push(char),
            }
        }
        Err(LimitError::new("the name's closing quote is missing"))
    }
}

impl Iterator for Tokens<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let rest = self.0.trim_start();
        let first = rest.chars().next()?;
        let end = |part: fn(char) -> bool| rest.find(|char| !part(char)).unwrap_or(rest.len());
        let length = if first.is_ascii_digit() {
            end(|char| char.is_ascii_digit() || char == '_')
        } else if first.is_ascii_alphabetic() {
            end(|char| char.is_ascii_alphanumeric() || char == '-')
        } else {
            first.len_utf8()
        };
        let (word, rest) = rest.split_at(length);
        self.0 = rest;
        Some(word.to_ascii_lowercase())
    }
}
