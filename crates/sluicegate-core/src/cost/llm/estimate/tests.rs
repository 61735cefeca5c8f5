use super::*;

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
    let upload = format!("--boundary\r\n{}", "x".repeat(100_000));
    for text in [" ", "max_tokens=1", "{\"max_tokens\": 1", "{\"max_tokens\": 1}}", &upload] {
        assert_eq!(of(estimate, text).all, 77);
    }
    assert_eq!(of(estimate, ""), EstimatedTokens::new(0, 0));
}

/// Services read deeper documents, and some read a byte order mark or a comma too many.
#[test]
fn a_body_that_only_a_service_can_read_costs_at_least_its_length() {
    let text = "x".repeat(100_000);
    let deep = format!("{{\"a\": {}\"{text}\"", "[".repeat(200));
    let marked = format!("\u{feff}{{\"prompt\": \"{text}\"}}");
    let comma = format!(" {{\"max_tokens\": 90000, \"n\": 2, \"prompt\": \"{text}\",}}");
    for (body, output) in [(deep, 77), (marked, 77), (comma, 180_000)] {
        let estimated = of(Estimate::new().unknown(77), &body);
        assert!((25_000..25_100).contains(&estimated.input), "{estimated:?}");
        assert_eq!(estimated.output, output);
        assert!(estimated.all >= 25_000, "{estimated:?}");
    }
}

#[test]
fn the_sum_or_the_larger_part_is_reserved() {
    let text = r#"{"prompt": "12345678", "max_tokens": 50}"#;
    assert_eq!(of(Estimate::new(), text), EstimatedTokens { input: 2, output: 50, all: 52 });
    assert_eq!(of(Estimate::new().larger(), text).all, 50);
}
