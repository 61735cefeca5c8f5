use std::io::Write;

use proptest::prelude::*;
use sluicegate_core::adapter::steps;
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer};

use super::{Contents, FIRST, Format, Unpacker};
use crate::estimate::tests::{gzip, long, of_bytes, zlib};
use crate::{Estimate, EstimatedTokens};

fn brotli(text: &[u8], quality: u32, window: u32) -> Vec<u8> {
    let mut packed = brotli::CompressorWriter::new(Vec::new(), 4_096, quality, window);
    packed.write_all(text).unwrap();
    packed.into_inner()
}

/// Does not say how long the text is, and so needs the whole window.
fn zstd(text: &[u8], level: i32, window: u32) -> Vec<u8> {
    let mut encoder = CCtx::create();
    encoder.set_parameter(CParameter::CompressionLevel(level)).unwrap();
    encoder.set_parameter(CParameter::WindowLog(window)).unwrap();
    let mut packed = vec![0; zstd_safe::compress_bound(text.len())];
    let mut out = OutBuffer::around(&mut packed[..]);
    let mut text = InBuffer::around(text);
    while text.pos() < text.src.len() {
        encoder.compress_stream(&mut out, &mut text).unwrap();
    }
    assert_eq!(encoder.end_stream(&mut out), Ok(0));
    let length = out.pos();
    packed.truncate(length);
    packed
}

fn of(codings: &str, bytes: &[u8], piece: usize) -> EstimatedTokens {
    let mut reader = Estimate::new().reader();
    if !codings.is_empty() {
        reader.encoding(codings.as_bytes());
    }
    bytes.chunks(piece).for_each(|piece| reader.read(piece));
    reader.finish()
}

const LONG: EstimatedTokens = EstimatedTokens::new(75_000, 50_000);

#[test]
fn brotli_is_read_if_the_header_names_it() {
    let text = long();
    for (quality, window) in [(0, 10), (1, 22), (5, 16), (9, 24)] {
        let packed = brotli(text.as_bytes(), quality, window);
        assert!(packed.len() < 200_000);
        for coding in ["br", " BR ", "identity, Br", "x-brotli", "br;q=1", "gzip, br"] {
            assert_eq!(of(coding, &packed, 1_000), LONG, "{coding} {quality} {window}");
        }
    }
    assert_eq!(of("br", &brotli(text.as_bytes(), 5, 22), 1), LONG);
}

#[test]
fn zstd_is_read_whatever_the_header_says() {
    let text = long();
    let text = text.as_bytes();
    let (first, second) = text.split_at(1_000);
    let skipped = [&b"\x53\x2a\x4d\x18\x05\0\0\0"[..], b"12345"].concat();
    for packed in [
        zstd(text, 1, 10),
        zstd(text, 3, 21),
        zstd(text, 19, 27),
        [zstd(first, 3, 20), zstd(second, 9, 10)].concat(),
        [&skipped[..], &zstd(first, 3, 20), &skipped, &zstd(second, 3, 20)].concat(),
    ] {
        assert!(packed.len() < 200_000);
        for coding in ["", "zstd", "x", "br"] {
            for piece in [1, packed.len()] {
                let estimated = of(coding, &packed, piece);
                assert_eq!((estimated.input, estimated.output), (75_000, 50_000), "{coding}");
            }
        }
    }
}

/// Codings are listed in the order in which they were applied (RFC 9110, 8.4).
#[test]
fn what_is_compressed_more_than_once_is_read() {
    let text = long();
    let text = text.as_bytes();
    let bare = |bytes: &[u8]| {
        let packed = zlib(bytes);
        packed[2..packed.len() - 4].to_vec()
    };
    for (codings, packed) in [
        ("gzip, br", brotli(&gzip(text), 5, 22)),
        ("br, gzip", gzip(&brotli(text, 5, 22))),
        ("br, zstd", zstd(&brotli(text, 5, 22), 3, 20)),
        ("zstd, deflate", bare(&zstd(text, 3, 20))),
        ("deflate,deflate", bare(&bare(text))),
        ("deflate, br, gzip", gzip(&brotli(&bare(text), 5, 22))),
        ("gzip, gzip", gzip(&gzip(text))),
    ] {
        for piece in [100, packed.len()] {
            let estimated = of(codings, &packed, piece);
            assert_eq!(estimated.input, 75_000, "{codings}");
            // Bytes of one format that are read as text may name a bound by chance.
            assert!((50_000..=500_000).contains(&estimated.output), "{codings}: {estimated:?}");
        }
    }
}

/// A client writes what its service reads by the header, so that it begins like something else.
#[test]
fn what_begins_like_another_format_is_read_by_the_header_too() {
    let text = long();
    let packed = zlib(text.as_bytes());
    // An empty block that is stored begins like zlib: 0x78 0x9c, and three bits of it count.
    let block = [&[0x78, 0x9c, 0x00, 0x63, 0xff][..], &[b' '; 0x9c]].concat();
    let bare = [&block, &packed[2..packed.len() - 4]].concat();
    assert_eq!(of("deflate", &bare, 1_000), LONG);
    // In brotli, a window of 2²⁴ bytes and a last block of 0xe08c bytes begin with the first two bytes of gzip.
    let mut text = br#"{"max_tokens": 50000, "prompt": ""#.to_vec();
    text.extend((0..0xf000).map(|at: u64| b'a' + (at * at % 23) as u8));
    text.truncate(0xe08c - 2);
    text.extend_from_slice(b"\"}");
    let packed = brotli(&text, 5, 24);
    assert_eq!(packed[..2], [0x1f, 0x8b]);
    assert_eq!(of("br", &packed, 1_000), EstimatedTokens::new(14_363, 50_000));
}

#[test]
fn gzip_is_read_whatever_else_is_in_its_header() {
    let text = long();
    let plain = gzip(text.as_bytes());
    let data = &plain[10..];
    let header = |flags: u8, fields: &[u8]| {
        [&[0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 255][..], fields, data].concat()
    };
    let (first, second) = text.as_bytes().split_at(1_000);
    let zeros = [gzip(first), vec![0; 5], gzip(second), vec![0; 9]].concat();
    let mut wrong_check = plain.clone();
    let length = wrong_check.len();
    wrong_check[length - 8..].fill(7);
    for packed in [
        // A check of the header that is wrong, and bits that mean nothing.
        header(2, b"no"),
        header(0xe0, b""),
        header(4, b"\0\0"),
        header(0x1f, b"\x03\0abcname\0a comment\0no"),
        zeros,
        wrong_check,
    ] {
        for piece in [1, packed.len()] {
            assert_eq!(of("gzip", &packed, piece), LONG);
        }
    }
}

#[test]
fn a_body_that_was_packed_to_be_work_costs_what_it_could_be_in_every_format() {
    for spaces in [300_000, 3_000_000, 9_000_000] {
        let mut text = vec![b' '; spaces];
        text.extend_from_slice(br#"{"prompt": "a", "max_tokens": 1500000}"#);
        let (large, fast) = (brotli(&text, 5, 24), brotli(&text, 1, 18));
        for (codings, packed) in [
            ("br", large),
            ("br", fast),
            ("zstd", zstd(&text, 3, 21)),
            ("zstd", zstd(&text, 3, 27)),
            ("gzip, gzip", gzip(&gzip(&text))),
            ("gzip, br", brotli(&gzip(&text), 5, 22)),
        ] {
            for piece in [1, packed.len()] {
                let before = steps();
                let estimated = of(codings, &packed, piece);
                let unpacked = steps() - before;
                assert!(unpacked <= (1 << 17) + 32 * packed.len(), "{unpacked}: {codings}");
                assert!(estimated.output >= 1_500_000, "{estimated:?}: {codings} {spaces}");
            }
        }
    }
}

/// Each takes microseconds to begin.
#[test]
fn a_body_of_very_many_parts_is_not_all_unpacked() {
    let members = gzip(b"").repeat(2_000);
    assert!(of("", &members, 1_000).all >= 2_000_000);
    // A log that is compressed as it is written has about this many.
    let lines = (0..500).map(|line| format!("\"{}\", ", line * 7_919 % 1_009).repeat(9));
    let members: Vec<u8> = lines.flat_map(|line| gzip(line.as_bytes())).collect();
    assert!((4_000..20_000).contains(&of("", &members[..members.len() / 20], 1_000).all));
}

/// Each takes microseconds, and makes nothing or a byte.
#[test]
fn a_body_of_very_many_blocks_is_not_all_unpacked() {
    let parts = |begin: &[(u32, usize)], part: &[(u32, usize)], end: &[(u32, usize)]| {
        let of = |count| bits(&[begin, &part.repeat(count), end].concat());
        (of(5), of(2_000))
    };
    let (stored, fixed) = ((0, 8), (2, 10));
    let lengths = [(0, 16), (0xffff, 16)];
    let header = [(0x8b1f, 16), (8, 32), (0, 32)];
    let frame = [(0xfd2f_b528, 32), (0x5000, 16)];
    // A window of 2¹⁶ bytes, and 256 types of literals with two codes for them: one byte each.
    let block = [
        [(0, 20), (0x7ff, 11), (1, 13), (0x191, 9), (0, 24), (0, 8)].to_vec(),
        vec![(0, 32); 16],
        [(1, 4), (0, 1), (1, 4), (1, 1), (1, 1), (0, 1), (1, 4), (65, 8), (1, 4), (65, 8)].to_vec(),
        [(1, 4), (8, 10), (1, 4), (0, 6)].to_vec(),
    ]
    .concat();
    for (codings, (few, many), price) in [
        ("gzip", parts(&header, &[fixed], &[(3, 10), (0, 64)]), 512),
        ("gzip", parts(&header, &[&[stored][..], &lengths].concat(), &[(3, 10), (0, 64)]), 512),
        ("deflate", parts(&[], &[fixed], &[(3, 10)]), 512),
        ("zstd", parts(&frame, &[(0, 24)], &[(1, 24)]), 512),
        ("zstd", parts(&[], &[&frame[..], &[(1, 24)]].concat(), &[]), 512),
        ("br", parts(&[(0, 1)], &block, &[(3, 2)]), 64 * 256),
    ] {
        let before = steps();
        assert_eq!(of(codings, &few, 1_000).all, 4_000, "{codings}");
        assert!(steps() - before >= 5 * price, "{codings}: {}", steps() - before);
        let nested = gzip(&many);
        assert!(nested.len() < 4_000);
        for (codings, packed) in [(codings.to_owned(), many), (format!("{codings}, gzip"), nested)]
        {
            for piece in [1_000, packed.len()] {
                let before = steps();
                let estimated = of(&codings, &packed, piece);
                let paid = steps() - before;
                assert!(paid <= (1 << 17) + 32 * packed.len(), "{paid}: {codings}");
                assert!(estimated.all >= 2_000_000, "{estimated:?}: {codings}");
            }
        }
    }
}

/// The bytes with these numbers in as many bits, the lowest first.
fn bits(fields: &[(u32, usize)]) -> Vec<u8> {
    let bits =
        |&(number, length): &(u32, usize)| (0..length).map(move |at| number >> at.min(31) & 1);
    let bits: Vec<u32> = fields.iter().flat_map(bits).collect();
    let byte = |bits: &[u32]| bits.iter().rev().fold(0, |byte, bit| byte << 1 | *bit as u8);
    bits.chunks(8).map(byte).collect()
}

/// What is stored in blocks of deflate may be brotli too, on each level.
#[test]
fn what_is_kept_of_a_body_is_bounded_by_what_was_sent() {
    let stored = |bytes: &[u8]| -> Vec<u8> {
        let blocks = bytes.chunks(4_095).flat_map(|block| {
            let length = block.len() as u16;
            [&[0][..], &length.to_le_bytes(), &(!length).to_le_bytes(), block].concat()
        });
        blocks.collect()
    };
    let body = stored(&stored(&stored(&[b'a'; 1_000_000])));
    let mut reader = Estimate::new().reader();
    reader.encoding(b"deflate, br, br");
    let mut most = 0;
    for piece in body.chunks(1_000) {
        reader.read(piece);
        let kept = kept(&reader.contents);
        assert!(
            4 * kept <= 5 * (FIRST + 2 * reader.budget.sent),
            "{kept} of {}",
            reader.budget.sent
        );
        most = most.max(kept);
    }
    assert!(most > body.len());
    assert!(reader.finish().all >= 2_000_000);
}

fn kept(contents: &Contents) -> usize {
    let of = |unpacker: &Unpacker| match &unpacker.format {
        Format::Inflate(_) => kept(&unpacker.contents),
        Format::Brotli(packed) | Format::Zstd(packed) => packed.capacity(),
    };
    contents.unpackers.iter().map(of).sum()
}

/// Other services may have the dictionary, or room for the window.
#[test]
fn zstd_that_only_other_services_can_read_costs_the_most() {
    let text = long();
    let mut packed = zstd(text.as_bytes(), 3, 20);
    // Behind the magic number: no dictionary and a window of 2²⁰ bytes.
    assert_eq!(packed[4..6], [0, 80]);
    packed[5] = 0xf8;
    assert!(of_bytes(&packed, 7).all >= 2_000_000);
    packed[5] = 80;
    packed[4] |= 1;
    packed.insert(6, 77);
    assert!(of_bytes(&packed, 7).all >= 2_000_000);
    // What is cut off is read as far as it is there.
    let cut = &zstd(text.as_bytes(), 3, 20)[..10_000];
    assert!((4_000..200_000).contains(&of_bytes(cut, 7).all));
}

/// The header may say what the body is not.
#[test]
fn a_body_that_is_no_brotli_is_read_as_it_is() {
    let text = br#"{"prompt": "four", "max_tokens": 5000}"#;
    assert_eq!(of("br", text, 7), EstimatedTokens { input: 4_000, output: 5_000, all: 5_001 });
}

fn texts() -> impl Strategy<Value = Vec<u8>> {
    let words = prop::collection::vec("[a-z ]{1,12}|[0-9]{3}|\\PC", 1..200);
    (words, 1..40_usize, 1..100_000_u64).prop_map(|(words, times, output)| {
        let text = words.concat().repeat(times).replace(['"', '\\'], "").replace('\u{7f}', "");
        format!("{{\"prompt\": \"{text}\", \"max_tokens\": {output}}}").into_bytes()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn what_is_compressed_costs_what_it_is(
        text in texts(), level in 1..20_i32, quality in 0..=9_u32, window in 10..=24_u32, piece in 1..5_000_usize,
    ) {
        let expected = of("", &text, text.len());
        let expected = expected.max(EstimatedTokens::new(0, 0));
        let read = |codings: &str, packed: Vec<u8>| of(codings, &packed, piece);
        for estimated in [
            read("br", brotli(&text, quality, window)),
            read("zstd", zstd(&text, level, window)),
            read("gzip", gzip(&text)),
        ] {
            prop_assert_eq!(estimated.output, expected.output.max(4_000));
            prop_assert_eq!(estimated.input, expected.input.max(4_000));
        }
    }

    #[test]
    fn no_bytes_make_the_unpacking_fail(
        begin in prop::sample::select(vec![&b"\x28\xb5\x2f\xfd"[..], b"\x1f\x8b\x08", b"\x78\x9c", b"\x1b", b""]),
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        piece in 1..100_usize,
    ) {
        let bytes = [begin, &bytes].concat();
        let before = steps();
        let estimated = of("deflate, br", &bytes, piece);
        let unpacked = steps() - before;
        prop_assert!(unpacked <= (1 << 17) + 32 * bytes.len());
        prop_assert!(bytes.is_empty() || estimated.all >= 4_000);
    }
}
