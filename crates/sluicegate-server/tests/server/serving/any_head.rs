//! Heads of requests that are made of what is dear or odd, as Envoy tells of them.

use super::envoys_calls::Asked;

/// What a head is made of.
const PIECES: [&[u8]; 24] = [
    b"/",
    b"//",
    b"/..",
    b"/%2e%2e/",
    b"%2F",
    b"/login",
    b"?",
    b"&",
    b"key=",
    b"key=a&key=b",
    b"%6bey=%61",
    b"%",
    b"+",
    b"a",
    b"\n",
    b"\nx-api-key:",
    b"\nX-Api-Key: \t",
    b"\ncookie:",
    b"; key=\"b\"",
    b" ",
    b"\xff\xfe",
    b"\xf4\x8f\xbf\xbf",
    b"\xc5\xbc",
    b"\x01",
];

/// A stream of numbers that is the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

#[test]
fn no_head_of_a_request_makes_a_call_of_envoy_fail_or_take_more_steps_than_its_length_bounds() {
    let directory = tempfile::tempdir().expect("a directory");
    let asked = Asked::new(directory.path());
    // Each alone, as long as Envoy accepts it, where it hurts.
    for begin in ["", "?", "?key=", "\nx-api-key:", "\ncookie:", "\ncookie:key=", "\nuser-agent:"] {
        for (number, piece) in PIECES.into_iter().enumerate().step_by(2) {
            // Long ones take long without optimization.
            let length = if number % 6 == 2 { 60 * 1024 } else { 40 };
            let long = piece.iter().cycle().take(length).copied();
            asked.about(&begin.bytes().chain(long).collect::<Vec<_>>());
        }
    }
    // And together.
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..20 {
        let pieces = 1 << random.below(8);
        let repeated = 1 << random.below(5);
        let head = (0..pieces).flat_map(|_| PIECES[random.below(PIECES.len())].repeat(repeated));
        asked.about(&head.collect::<Vec<_>>());
    }
}
