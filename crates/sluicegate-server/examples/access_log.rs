//! Writes an access log in combined format to its standard output, the same for the same numbers.
//!
//! `cargo run --release -p sluicegate-server --example access_log -- LINES CLIENTS` writes this number of lines, 400 for each
//! second. Requests come from at most `CLIENTS` addresses. A few addresses send most of the requests, by Zipf's law.

use std::env;
use std::error::Error;
use std::io::{self, BufWriter, Write as _};

use jiff::Timestamp;

/// Requests a second.
const RATE: u64 = 400;

/// When the first one comes, in seconds since the Unix epoch: 2025-11-24 16:00:00 UTC.
const BEGINS: i64 = 1_764_000_000;

const AGENTS: [&str; 4] = [
    "Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 Chrome/142.0",
    "python-requests/2.32.5",
    "curl/8.5.0",
];

fn main() -> Result<(), Box<dyn Error>> {
    let numbers: Vec<u64> = env::args().skip(1).map(|it| it.parse()).collect::<Result<_, _>>()?;
    let &[lines, clients @ (1..)] = &numbers[..] else {
        return Err(
            "expected the number of lines, and the number of clients, which is at least 1".into()
        );
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let mut random = Random(1);
    let mut time = String::new();
    for line in 0..lines {
        if line % RATE == 0 {
            let second = BEGINS + i64::try_from(line / RATE)?;
            time = Timestamp::from_second(second)?.strftime("%d/%b/%Y:%H:%M:%S +0000").to_string();
        }
        let client = random.zipf(clients).wrapping_mul(0x9E37_79B1) & 0x00FF_FFFF;
        let [_, a, b, c] = u32::try_from(client)?.to_be_bytes();
        let page = random.zipf(50_000);
        let bytes = 200 + random.below(20_000);
        let agent = AGENTS[usize::try_from(client % 4)?];
        writeln!(
            out,
            "10.{a}.{b}.{c} - - [{time}] \"GET /shop/items/{page}?from=list HTTP/1.1\" 200 {bytes} \"-\" \"{agent}\""
        )?;
    }
    Ok(out.flush()?)
}

/// A linear congruential generator with the constants of Knuth's MMIX.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(self.0) * u128::from(bound)) >> 64) as u64
    }

    /// A number below `count` with a density of about 1 ÷ n.
    #[expect(clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "a share of a count")]
    fn zipf(&mut self, count: u64) -> u64 {
        let share = self.below(1 << 53) as f64 / (1_u64 << 53) as f64;
        ((count as f64).powf(share) as u64).min(count) - 1
    }
}
