mod hostile;

use std::io::Write;

use super::*;
use sluicegate_core::adapter::steps;

fn of(estimate: Estimate, text: &str) -> EstimatedTokens {
    let mut reader = estimate.reader();
    reader.read(text.as_bytes());
    reader.finish()
}

fn output(text: &str) -> u64 {
    of(Estimate::new(), text).output
}

fn input(text: &str) -> u64 {
    of(Estimate::new(), text).input
}

#[test]
fn the_output_is_what_the_request_allows() {
    for name in ["max_tokens", "max_completion_tokens", "max_output_tokens"] {
        assert_eq!(output(&format!("{{\"{name}\": 50}}")), 50, "{name}");
        assert_eq!(output(&format!("{{\"{name}\": 50, \"n\": 3}}")), 150, "{name}");
    }
    assert_eq!(output("{}"), 1_000);
    assert_eq!(output(r#"{"max_tokens": null, "n": 2}"#), 2_000);
    assert_eq!(output(r#"{"prompt": "x", "max_tokens": 5, "best_of": 4, "n": 2}"#), 20);
}

#[test]
fn only_the_fields_of_the_request_itself_bound_its_output() {
    let nested = r#"{"metadata": {"max_tokens": 1}, "messages": [{"max_tokens": 1}]}"#;
    assert_eq!(output(nested), 1_000);
}

#[test]
fn of_two_bounds_the_larger_counts() {
    assert_eq!(output(r#"{"max_tokens": 1, "max_tokens": 9000}"#), 9_000);
    assert_eq!(output(r#"{"max_tokens": 9000, "max\u005ftokens": 1}"#), 9_000);
    assert_eq!(output(r#"{"max_tokens": 1, "max_completion_tokens": 9000}"#), 9_000);
}

#[test]
fn bounds_that_cannot_be_are_not_believed() {
    assert_eq!(output(r#"{"max_tokens": -5}"#), 1_000);
    assert_eq!(output(r#"{"max_tokens": 1000000000000000000}"#), 1_000_000_000_000_000_000);
    assert_eq!(of(Estimate::new(), r#"{"max_tokens": 1e40, "n": 9}"#).all, u64::MAX);
}

/// Some services turn text into a number, and others ignore it.
#[test]
fn a_bound_that_is_written_as_text_lowers_nothing() {
    assert_eq!(output(r#"{"max_tokens": "5"}"#), 1_000);
    assert_eq!(output(r#"{"max_tokens": " 9000"}"#), 9_000);
    assert_eq!(output(r#"{"max_tokens": 5, "max_tokens": "6"}"#), 1_000);
    assert_eq!(output(r#"{"max_tokens": 50, "n": "3"}"#), 150);
    assert_eq!(output(r#"{"max_tokens": "many"}"#), 1_000);
}

#[test]
fn text_counts_a_token_for_each_four_bytes() {
    assert_eq!(input(r#"{"prompt": "four"}"#), 1);
    assert_eq!(input(r#"{"prompt": "fives"}"#), 2);
    assert_eq!(input(r#"{"messages": [{"content": "日本語です"}]}"#), 4);
    assert_eq!(input(r#"{"prompt": [101, 102, 103]}"#), 3);
    assert_eq!(input(r#"{"input": [[1, 2], [3]]}"#), 3);
}

#[test]
fn images_and_recordings_count_by_their_number_and_not_by_their_length() {
    let data = "A".repeat(100_000);
    for part in [
        format!(r#"{{"image_url":{{"url":"data:image/png;base64,{data}"}}}}"#),
        r#"{"image_url":{"url":"https://example.com/a.png"}}"#.to_owned(),
        r#"{"image_url":"https://example.com/a.png"}"#.to_owned(),
        format!(r#"{{"source":{{"data":"{data}"}}}}"#),
        format!(r#"{{"file_data":"{data}"}}"#),
    ] {
        assert_eq!(input(&part), 1_600, "{}", &part[..40]);
    }
    let image = r#"{"image_url":{"url":"https://example.com/a.png","detail":"high"}}"#;
    assert_eq!(input(image), 1_601);
}

#[test]
fn media_by_reference_counts_like_media() {
    for part in [
        r#"{"messages":[{"content":[{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}]}]}"#,
        r#"{"messages":[{"content":[{"type":"document","source":{"type":"file","file_id":"file_1"}}]}]}"#,
        r#"{"messages":[{"content":[{"content":[{"source":{"type":"base64","data":"AAAA"}}]}]}]}"#,
        r#"{"messages":[{"content":[{"type":"file","file":{"file_id":"file-1"}}]}]}"#,
        r#"{"messages":[{"content":[{"input_audio":{"data":"AAAA","format":"wav"}}]}]}"#,
        r#"{"messages":[{"content":[{"video_url":{"url":"https://example.com/a.mp4"}}]}]}"#,
        r#"{"messages":[{"audio":{"id":"audio_1"}}]}"#,
        r#"{"input":[{"content":[{"type":"input_file","file_url":"https://example.com/a.pdf"}]}]}"#,
        r#"{"input":[{"content":[{"type":"input_image","file_id":"file-1"}]}]}"#,
        r#"{"input":[{"content":[{"type":"input_image","image_url":"https://example.com/ü b.png"}]}]}"#,
        r#"{"input":[{"output":[{"image_url":"https://example.com/a.png"}]}]}"#,
        r#"{"input":[{"type":"item_reference","id":"msg_1"}]}"#,
        r#"{"previous_response_id":"resp_1"}"#,
        r#"{"conversation":"conv_1"}"#,
        r#"{"conversation":{"id":"conv_1"}}"#,
        r#"{"prompt":{"id":"pmpt_1"}}"#,
        r#"{"contents":[{"parts":[{"file_data":{"mime_type":"image/png","file_uri":"gs://a/b"}}]}]}"#,
        r#"{"contents":[{"parts":[{"fileData":{"mimeType":"image/png","fileUri":"gs://a/b"}}]}]}"#,
        r#"{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}]}"#,
        r#"{"cachedContent":"cachedContents/1"}"#,
    ] {
        assert!((1_600..1_640).contains(&input(part)), "{part}: {}", input(part));
    }
    for none in [
        r#"{"previous_response_id":null}"#,
        r#"{"previous_response_id":""}"#,
        r#"{"input":[{"type":"message","id":"msg_1"}]}"#,
        r#"{"audio":{"voice":"alloy"}}"#,
    ] {
        assert!(input(none) < 10, "{none}");
    }
}

/// 360 kB of text without a space.
#[test]
fn text_without_spaces_in_a_tool_is_text() {
    let solid = "word".repeat(90_000);
    for (before, after) in [
        (r#"{"tools":[{"function":{"parameters":{"data":""#, r#""}}}]}"#),
        (
            r#"{"tools":[{"function":{"parameters":{"properties":{"image_url":{"url":""#,
            r#""}}}}}]}"#,
        ),
        (r#"{"tools":[{"input_schema":{"source":{"data":""#, r#""}}}]}"#),
        (r#"{"functions":[{"parameters":{"file_data":""#, r#""}}]}"#),
        (r#"{"messages":[{"content":[{"type":"tool_use","input":{"image_url":""#, r#""}}]}]}"#),
        (
            r#"{"messages":[{"tool_calls":[{"function":{"arguments":{"source":{"data":""#,
            r#""}}}}]}]}"#,
        ),
        (r#"{"response_format":{"json_schema":{"schema":{"file_data":""#, r#""}}}}"#),
        (r#"{"contents":[{"parts":[{"functionCall":{"args":{"file_uri":""#, r#""}}}]}]}"#),
        (r#"{"messages":[{"content":[{"data":""#, r#""}]}]}"#),
        (r#"{"messages":[{"content":[{"image_url":{"url":"data:text/plain;base64,"#, r#""}}]}]}"#),
        (r#"{"messages":[{"content":[{"source":{"media_type":"TEXT/plain","data":""#, r#""}}]}]}"#),
    ] {
        assert!(input(&format!("{before}{solid}{after}")) >= 90_000, "{before}");
    }
}

#[test]
fn text_is_not_taken_for_an_image_because_of_its_place_or_its_beginning() {
    let (words, solid) = ("a word ".repeat(1_000), "word".repeat(1_750));
    for text in [
        format!(r#"{{"messages":[{{"content":"data:image/png;base64,{solid}"}}]}}"#),
        format!(r#"{{"prompt":"data:{words}"}}"#),
        format!(r#"{{"input":["data:{solid}"]}}"#),
        format!(r#"{{"source":{{"data":"{words}"}}}}"#),
        format!(r#"{{"source":{{"data":"AAAA{}{words}"}}}}"#, "A".repeat(40)),
        format!(r#"{{"source":{{"data":"{solid}","media_type":"text/plain"}}}}"#),
        format!(r#"{{"image_url":{{"url":"https://example.com/{words}"}}}}"#),
        format!(r#"{{"image_url":{{"description":"{solid}"}}}}"#),
    ] {
        assert!(input(&text) >= 1_750, "{}: {}", &text[..60], input(&text));
    }
}

/// A model reads all of a tool, so text can hide in any part of it.
#[test]
fn names_and_numbers_in_tools_and_calls_count_as_text() {
    let long = "n".repeat(4_000);
    let many = "1234567,".repeat(500);
    for text in [
        format!(r#"{{"tools":[{{"input_schema":{{"properties":{{"{long}":{{}}}}}}}}]}}"#),
        format!(r#"{{"messages":[{{"content":[{{"input":{{"{long}":1}}}}]}}]}}"#),
        format!(r#"{{"tools":[{{"input_schema":{{"enum":[{many}1]}}}}]}}"#),
        format!(r#"{{"tools":[{{"input_schema":{{"enum":[{}1]}}}}]}}"#, "null,".repeat(1_000)),
        format!(r#"{{"tools":[{{"input_schema":{{"const":{}}}}}]}}"#, "9".repeat(4_000)),
    ] {
        assert!(input(&text) > 870, "{}: {}", &text[..60], input(&text));
    }
}

#[test]
fn a_body_that_cannot_be_read_costs_what_the_operator_says() {
    let estimate = Estimate::new().unknown(77);
    for text in
        [" ", "max_tokens=1", "{\"max_tokens\": 1", "{\"max_tokens\": 1}}", "\u{feff}", "\x1f"]
    {
        assert_eq!(of(estimate, text).all, 77, "{text}");
    }
    assert_eq!(of(estimate, ""), EstimatedTokens::new(0, 0));
}

/// Services read deeper documents, and some read a comma too many, or a form.
#[test]
fn a_body_that_only_a_service_can_read_costs_at_least_its_length_and_what_it_asks_for() {
    let text = "x".repeat(100_000);
    let deep = format!("{{\"a\": {}\"{text}\"", "[".repeat(200));
    let after = format!("{deep}{}, \"max_tokens\": 90000}}", "]".repeat(200));
    let comma = format!(" {{\"max_tokens\": 90000, \"n\": 2, \"prompt\": \"{text}\",}}");
    let both = format!(" {{\"prompt\": \"{text}\",, \"n\": 2, \"max_tokens\": 90000}}");
    let single = format!("{{'MAX_TOKENS': 9_0000, 'best_of': 2, 'prompt': '{text}'}}");
    let form = format!("max_tokens=90000&n=2&prompt={text}");
    let parts = format!(
        "--b\r\nContent-Disposition: form-data; name=\"max_tokens\"\r\n\r\n90000\r\n--b\r\n\r\n{text}"
    );
    let second =
        format!("{{\"max_tokens\": 1, \"prompt\": \"{text}\"}}\n{{\"max_tokens\": 90000}}");
    for (body, output) in [
        (deep, 77),
        (after, 90_000),
        (comma, 180_000),
        (both, 180_000),
        (single, 180_000),
        (form, 180_000),
        (parts, 90_000),
        (second, 90_000),
    ] {
        let estimated = of(Estimate::new().unknown(77), &body);
        assert!((25_000..25_200).contains(&estimated.input), "{estimated:?}");
        assert_eq!(estimated.output, output, "{}", &body[..30]);
        assert!(estimated.all >= 25_000, "{estimated:?}");
        let bytewise = body.as_bytes().chunks(11).fold(
            Estimate::new().unknown(77).reader(),
            |mut reader, byte| {
                reader.read(byte);
                reader
            },
        );
        assert_eq!(bytewise.finish(), estimated);
    }
}

/// 300 kB of text that asks for 50,000 tokens.
pub(super) fn long() -> String {
    let words = (0..75_000).map(|word| format!("{:04}", word * 7_919 % 10_000));
    format!("{{\"prompt\": \"{}\", \"max_tokens\": 50000}}", words.collect::<String>())
}

pub(super) fn of_bytes(bytes: &[u8], piece: usize) -> EstimatedTokens {
    let mut reader = Estimate::new().reader();
    bytes.chunks(piece).for_each(|piece| reader.read(piece));
    reader.finish()
}

#[test]
fn a_body_is_read_in_whatever_encoding_it_is() {
    let text = long();
    let units = |unit: fn(char) -> Vec<u8>, mark: &[u8]| {
        [mark.to_vec(), text.chars().flat_map(unit).collect()].concat()
    };
    for bytes in [
        units(|c| vec![c as u8], b""),
        units(|c| vec![c as u8], b"\xef\xbb\xbf"),
        units(|c| vec![c as u8, 0], b""),
        units(|c| vec![0, c as u8], b""),
        units(|c| vec![c as u8, 0], b"\xff\xfe"),
        units(|c| vec![0, c as u8], b"\xfe\xff"),
        units(|c| vec![c as u8, 0, 0, 0], b""),
        units(|c| vec![0, 0, 0, c as u8], b""),
        units(|c| vec![c as u8, 0, 0, 0], b"\xff\xfe\0\0"),
        units(|c| vec![0, 0, 0, c as u8], b"\0\0\xfe\xff"),
    ] {
        assert_eq!(of_bytes(&bytes, bytes.len()), EstimatedTokens::new(75_000, 50_000));
        let (begin, end) = (&bytes[..400], &bytes[bytes.len() - 400..]);
        let short = [begin, end].concat();
        for piece in [1, 2, 3, 7] {
            assert_eq!(of_bytes(&short, piece), of_bytes(&short, short.len()));
            assert_eq!(of_bytes(&short, piece).output, 50_000);
        }
    }
}

/// A letter of UTF-16 may have a byte that is a quotation mark in ASCII.
#[test]
fn letters_of_two_bytes_are_not_taken_for_others() {
    let text = format!("{{\"a\": \"{}\", \"max_tokens\": 50000}}", "≢小𝄞ü".repeat(100));
    let bytes: Vec<_> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    assert_eq!(of_bytes(&bytes, 7), of(Estimate::new(), &text));
    assert_eq!(of_bytes(&bytes, 7).output, 50_000);
}

/// Python writes and reads them.
#[test]
fn numbers_that_are_none_are_read_like_words() {
    for word in ["NaN", "Infinity", "-Infinity"] {
        let text = format!("{{\"temperature\": {word}, \"max_tokens\": 50000}}");
        assert_eq!(output(&text), 50_000, "{word}");
        assert_eq!(output(&format!("{{\"max_tokens\": {word}}}")), 1_000, "{word}");
    }
}

#[test]
fn numbers_of_any_length_bound_the_output() {
    let zeros = "0".repeat(40);
    for number in [format!("100000.{zeros}"), format!("{zeros}100000"), format!("1{zeros}e-35")] {
        assert_eq!(output(&format!("{{\"max_tokens\": {number}}}")), 100_000, "{number}");
        assert_eq!(output(&format!("{{\"max_tokens\": \"{number}\"}}")), 100_000, "{number}");
        assert_eq!(
            output(&format!("{{\"max_tokens\": \"{}{number} \"}}", " ".repeat(50))),
            100_000
        );
    }
    assert_eq!(output(&format!("{{\"max_tokens\": 1{zeros}}}")), u64::MAX);
    for empty in ["", " ", "-", "null"] {
        assert_eq!(output(&format!("{{\"max_tokens\": \"{empty}\"}}")), 1_000, "{empty:?}");
    }
}

#[test]
fn names_are_read_in_any_case() {
    assert_eq!(output(r#"{"Max_Tokens": 9000}"#), 9_000);
    assert_eq!(output(r#"{"max_tokens": 1, "MAX_TOKENS": 9000}"#), 9_000);
}

#[test]
fn what_the_header_says_lowers_nothing() {
    let (text, unknown) = (long(), EstimatedTokens::new(75_000, 50_000));
    for coding in ["", "identity", "gzip", "x", "identity, identity", "br", "Identity,gzip"] {
        let mut reader = Estimate::new().reader();
        reader.encoding(coding.as_bytes());
        reader.read(text.as_bytes());
        assert_eq!(reader.finish(), unknown, "{coding}");
    }
    for (coding, all) in
        [("identity", 7), (" identity,,IDENTITY ", 7), ("gzip", 4_000), ("x", 4_000)]
    {
        let mut reader = Estimate::new().reader();
        reader.encoding(coding.as_bytes());
        reader.read(br#"{"max_tokens": 7}"#);
        assert_eq!(reader.finish().all, all, "{coding}");
    }
}

pub(super) fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn what_is_compressed_is_read() {
    let text = long();
    let text = text.as_bytes();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    zlib.write_all(text).unwrap();
    let utf_16: Vec<_> = text.iter().flat_map(|byte| [*byte, 0]).collect();
    let (first, second) = text.split_at(1_000);
    for bytes in
        [gzip(text), zlib.finish().unwrap(), gzip(&utf_16), [gzip(first), gzip(second)].concat()]
    {
        assert!(bytes.len() < 200_000);
        for piece in [1, bytes.len()] {
            assert_eq!(of_bytes(&bytes, piece), EstimatedTokens::new(75_000, 50_000));
        }
    }
    // At least what a compressed body cost before it was read.
    assert_eq!(of_bytes(&gzip(br#"{"max_tokens": 7}"#), 10).all, 4_000);
}

#[test]
fn a_body_that_unpacks_to_too_much_costs_what_it_could_be() {
    let bomb = gzip(&vec![b' '; 100_000_000]);
    assert!(bomb.len() < 120_000);
    let estimated = of_bytes(&bomb, 1_000);
    assert!((20_000_000..60_000_000).contains(&estimated.all), "{estimated:?}");
    // A broken one costs what could be read of it.
    let broken = &gzip(long().as_bytes())[..300];
    assert!(of_bytes(broken, 7).all >= 4_000);
    let twice = gzip(&gzip(long().as_bytes()));
    assert!(of_bytes(&twice, 7).all >= 4_000);
    assert!(of_bytes(&[&[0x1f, 0x8b][..], &[7; 100_000]].concat(), 7).all >= 25_000);
}

#[test]
fn the_sum_or_the_larger_part_is_reserved() {
    let text = r#"{"prompt": "12345678", "max_tokens": 50}"#;
    assert_eq!(of(Estimate::new(), text), EstimatedTokens { input: 2, output: 50, all: 52 });
    assert_eq!(of(Estimate::new().larger(), text).all, 50);
}

#[test]
fn a_body_that_was_packed_to_be_work_is_unpacked_by_what_was_sent() {
    for spaces in [300_000, 1_200_000, 3_000_000, 7_000_000, 8_300_000, 20_000_000] {
        let mut text = vec![b' '; spaces];
        text.extend_from_slice(br#"{"prompt": "a", "max_tokens": 1500000}"#);
        let packed = gzip(&text);
        for piece in [1, 1_000, packed.len()] {
            let before = steps();
            let estimated = of_bytes(&packed, piece);
            let unpacked = steps() - before;
            assert!(unpacked <= (1 << 17) + 32 * packed.len(), "{unpacked} of {spaces}");
            // Nobody reserves less by what was not read.
            assert!(estimated.all >= 1_500_000, "{estimated:?} with {spaces}");
        }
    }
}

pub(super) fn zlib(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn zlib_is_read_whatever_window_it_names() {
    for window in 0..8 {
        let mut packed = zlib(long().as_bytes());
        packed[0] = window << 4 | 8;
        let begins = u16::from_be_bytes([packed[0], 0]);
        packed[1] = (31 - begins % 31) as u8;
        assert_eq!(of_bytes(&packed, 7), EstimatedTokens::new(75_000, 50_000), "{window}");
    }
}

/// Some services try this where `deflate` is not what it should be.
#[test]
fn deflate_without_zlib_is_read_if_the_header_names_it() {
    let text = long();
    let packed = zlib(text.as_bytes());
    let bare = &packed[2..packed.len() - 4];
    for coding in ["deflate", "identity, Deflate "] {
        for bytes in [bare, &packed, text.as_bytes()] {
            for piece in [1, 9, bytes.len()] {
                let mut reader = Estimate::new().reader();
                reader.encoding(coding.as_bytes());
                bytes.chunks(piece).for_each(|piece| reader.read(piece));
                let estimated = reader.finish();
                // What is not compressed at all counts by its length.
                assert!((75_000..80_000).contains(&estimated.input), "{coding}: {estimated:?}");
                assert_eq!(estimated.output, 50_000, "{coding}");
            }
        }
    }
}

#[test]
fn a_body_that_only_begins_like_a_compressed_one_is_read_as_it_is() {
    let text = "x".repeat(100_000);
    for begin in ["x^=1&", "h\x05&", "8O&"] {
        let form = format!("{begin}max_tokens=90000&prompt={text}");
        let estimated = of(Estimate::new(), &form);
        assert_eq!(estimated.output, 90_000, "{begin:?}");
        assert!(estimated.input >= 25_000, "{begin:?}");
    }
    let mut bytes = vec![0x1f, 0x8b];
    bytes
        .extend_from_slice(format!("{{\"max_tokens\": 90000, \"prompt\": \"{text}\"}}").as_bytes());
    for piece in [1, 2, bytes.len()] {
        assert_eq!(of_bytes(&bytes, piece).output, 90_000);
    }
}

#[test]
fn geminis_bounds_are_read() {
    for (config, output) in [
        (r#""generationConfig":{"maxOutputTokens":50000,"candidateCount":2}"#, 100_000),
        (r#""generation_config":{"max_output_tokens":50000,"candidate_count":2}"#, 100_000),
        (r#""generationConfig":{"candidateCount":3}"#, 3_000),
        (r#""generationConfig":{"maxOutputTokens":"5"}"#, 1_000),
        (r#""safetySettings":{"maxOutputTokens":5}"#, 1_000),
    ] {
        let text = format!(r#"{{"contents":[{{"parts":[{{"text":"Hi there"}}]}}],{config}}}"#);
        let estimated = of(Estimate::new(), &text);
        assert_eq!(estimated.output, output, "{config}");
        assert!((2..=4).contains(&estimated.input), "{config}: {estimated:?}");
    }
    assert_eq!(output(r#"{"prompt":"a","max_tokens_to_sample":50000}"#), 50_000);
}

#[test]
fn what_packs_well_without_purpose_is_read_to_its_end() {
    let lines =
        (0..40_000).map(|line| format!("\\n12:00:{:02} GET /users/{} 200", line % 60, line % 977));
    let text = format!(r#"{{"prompt": "{}", "max_tokens": 7}}"#, lines.collect::<String>());
    let packed = gzip(text.as_bytes());
    assert!(text.len() > 1_100_000 && packed.len() < text.len() / 5, "{}", packed.len());
    for piece in [1_000, 16_384, packed.len()] {
        let estimated = of_bytes(&packed, piece);
        assert!((275_000..400_000).contains(&estimated.input), "{estimated:?}");
    }
}
