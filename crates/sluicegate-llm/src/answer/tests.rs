use proptest::prelude::*;

use super::*;
use crate::Count;

const OPENAI: &str = concat!(
    "data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Hello\"}}],\"usage\":null}\n\n",
    "data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" \\\"usage\\\": {\\\"total_tokens\\\": 0}\"}}]}\n\n",
    "data: {\"id\":\"x\",\"choices\":[],\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":7,\"total_tokens\":27,",
    "\"prompt_tokens_details\":{\"cached_tokens\":16}}}\n\n",
    "data: [DONE]\n\n",
);

const RESPONSES: &str = concat!(
    "event: response.output_text.delta\r\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"Hello\"}\r\n\r\n",
    "event: response.completed\r\ndata: {\"type\":\"response.completed\",\"response\":{\"output\":[{\"text\":\"Hello\"}],",
    "\"usage\":{\"input_tokens\":20,\"input_tokens_details\":{\"cached_tokens\":16},\"output_tokens\":7,",
    "\"output_tokens_details\":{\"reasoning_tokens\":5},\"total_tokens\":27}}}\r\n\r\n",
);

const ANTHROPIC: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"content\":[],\"usage\":{\"input_tokens\":3,",
    "\"cache_creation_input_tokens\":1,\"cache_read_input_tokens\":16,\"output_tokens\":1}}}\n\n",
    "event: ping\ndata: {\"type\": \"ping\"}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hello\"}}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":7}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

const USED: Usage = Usage { input: 20, output: 7, cached: 16 };

/// What is reported of a body that ends as it should.
fn read(media: Media, pieces: &[&[u8]]) -> (Usage, bool) {
    let usage = TokenUsage::new();
    let mut reader = UsageReader::new(media, &usage);
    pieces.iter().for_each(|piece| reader.read(piece));
    reader.finish();
    (usage.usage(), usage.is_final())
}

fn events(text: &str) -> (Usage, bool) {
    read(Media::Events, &[text.as_bytes()])
}

fn json(text: &str) -> (Usage, bool) {
    read(Media::Json, &[text.as_bytes()])
}

#[test]
fn the_streams_of_each_api_report_what_they_used() {
    assert_eq!(events(OPENAI), (USED, true));
    assert_eq!(events(RESPONSES), (USED, true));
    assert_eq!(events(ANTHROPIC), (Usage { cached: 16, ..USED }, true));
}

#[test]
fn geminis_answers_report_what_they_used() {
    let part = |usage: &str| {
        let content = r#"{"content":{"parts":[{"text":"Hello"}],"role":"model"},"index":0}"#;
        format!(r#"{{"candidates":[{content}],"usageMetadata":{{{usage}}}}}"#)
    };
    let first = part(r#""promptTokenCount":20,"candidatesTokenCount":1,"totalTokenCount":21"#);
    // Reasoning is in the total alone.
    let last = part(
        r#""promptTokenCount":20,"candidatesTokenCount":3,"thoughtsTokenCount":4,"totalTokenCount":27,"cachedContentTokenCount":16"#,
    );
    assert_eq!(json(&last), (USED, true));
    assert_eq!(json(&format!("[{first},\r\n{last}]\n")), (USED, true));
    assert_eq!(events(&format!("data: {first}\r\n\r\ndata: {last}\r\n\r\n")), (USED, true));
    assert!(!passed(Media::Json, &format!("[{first},{last}")).1);
    let text = "word ".repeat(8_000);
    let long = last.replace("Hello", &text);
    assert_eq!(json(&format!("[{long}]")), (Usage { output: 10_000, ..USED }, false));
}

#[test]
fn whole_documents_report_what_they_used() {
    let chat = r#"{"choices":[{"message":{"content":"Hi"}}],"usage":{"prompt_tokens":20,"completion_tokens":7,
        "total_tokens":27,"prompt_tokens_details":{"cached_tokens":16}}}"#;
    assert_eq!(json(chat), (USED, true));
    let messages = r#"{"content":[{"type":"text","text":"Hi"}],"usage":{"input_tokens":4,"output_tokens":7,
        "cache_read_input_tokens":16,"cache_creation_input_tokens":null}}"#;
    assert_eq!(json(messages), (USED, true));
    let embeddings =
        r#"{"data":[{"embedding":[0.1,-0.2]}],"usage":{"prompt_tokens":8,"total_tokens":8}}"#;
    assert_eq!(json(embeddings), (Usage { input: 8, output: 0, cached: 0 }, true));
}

#[test]
fn line_ends_comments_and_a_byte_order_mark_make_no_difference() {
    for end in ["\r", "\r\n"] {
        assert_eq!(events(&ANTHROPIC.replace('\n', end)), (USED, true));
    }
    let marked = format!("\u{feff}{OPENAI}").replace("data: ", ": comment\nretry: 5\ndata:");
    assert_eq!(events(&marked.replacen(": comment\nretry: 5\n", "", 1)), (USED, true));
    let divided = "data: {\"usage\":\ndata: {\"completion_tokens\":7}}\n\n";
    assert_eq!(events(divided).0.output, 7);
}

#[test]
fn text_that_a_model_writes_is_never_a_usage() {
    let forged = concat!(
        "data: {\"choices\":[{\"delta\":{\"content\":\"data: {\\\"usage\\\":{\\\"total_tokens\\\":0}}\\n\\n\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":{\"usage\":{\"total_tokens\":1}}},\"usage\":{\"total_tokens\":1}}]}\n\n",
    );
    let (_, is_final) = events(forged);
    assert!(!is_final);
}

#[test]
fn a_later_report_cannot_lower_an_earlier_one() {
    let lowered =
        format!("{OPENAI}data: {{\"usage\":{{\"total_tokens\":0,\"prompt_tokens\":0}}}}\n\n");
    assert_eq!(events(&lowered), (USED, true));
    let twice = r#"{"usage":{"completion_tokens":7},"usage":{"completion_tokens":0}}"#;
    assert_eq!(json(twice).0.output, 7);
}

#[test]
fn numbers_that_cannot_be_are_ignored() {
    let text = r#"{"usage":{"prompt_tokens":-5,"completion_tokens":"9","total_tokens":null}}"#;
    assert_eq!(json(text), (Usage::default(), false));
    let absurd = r#"{"usage":{"completion_tokens":1e30,"prompt_tokens":1e30}}"#;
    assert_eq!(json(absurd).0.counted(Count::All), u64::MAX);
}

#[test]
fn a_total_beyond_its_parts_counts_as_output() {
    let text = r#"{"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":100}}"#;
    assert_eq!(json(text).0, Usage { input: 5, output: 95, cached: 0 });
}

#[test]
fn output_is_estimated_by_its_text_until_the_model_reports_it() {
    let usage = TokenUsage::new();
    let mut reader = UsageReader::new(Media::Events, &usage);
    let start = ANTHROPIC.split("event: message_delta").next().expect("a beginning");
    reader.read(start.as_bytes());
    let text = "word ".repeat(400);
    reader.read(format!("data: {{\"delta\":{{\"text\":\"{text}\"}}}}\n\n").as_bytes());
    // 2,000 bytes, and "Hello".
    assert_eq!(usage.usage(), Usage { output: 502, ..USED });
    reader.read(b"data: {\"usage\":{\"output_tokens\":420}}\n\n");
    reader.finish();
    assert_eq!(usage.usage(), Usage { output: 420, ..USED });
}

/// What is reported when the bytes have passed and the body has not ended.
fn passed(media: Media, text: &str) -> (Usage, bool) {
    let usage = TokenUsage::new();
    let mut reader = UsageReader::new(media, &usage);
    text.as_bytes().chunks(1).for_each(|byte| reader.read(byte));
    (usage.usage(), usage.is_final())
}

#[test]
fn a_usage_is_final_where_the_answer_says_that_nothing_follows() {
    let done = OPENAI.trim_end();
    for stream in [OPENAI, RESPONSES, ANTHROPIC, done, &done.replace("data: [", "data:[")] {
        for end in ["\n", "\r", "\r\n"] {
            let stream = stream.replace("\r\n", "\n").replace('\n', end);
            assert_eq!(passed(Media::Events, &stream), (USED, true), "{stream}");
            let trailing = format!("{stream}{end}: comment{end}data: {{\"a\": 1}}{end}{end}x");
            assert_eq!(passed(Media::Events, &trailing), (USED, true), "{trailing}");
        }
    }
    for last in ["response.incomplete", "response.failed"] {
        let stream = RESPONSES.replace("response.completed", last);
        assert_eq!(passed(Media::Events, &stream), (USED, true), "{last}");
    }
    let document = r#"{"usage":{"prompt_tokens":20,"completion_tokens":7,"total_tokens":27,
        "prompt_tokens_details":{"cached_tokens":16}}}"#;
    for trailing in ["", "\n", " x", "{}"] {
        assert_eq!(passed(Media::Json, &format!("{document}{trailing}")), (USED, true));
    }
    let all_but_the_last = &document[..document.len() - 1];
    assert!(!passed(Media::Json, all_but_the_last).1);
}

#[test]
fn a_usage_is_not_final_before_the_last_event() {
    let (before, _) = OPENAI.split_once("data: [DONE]").expect("an end");
    assert!(!passed(Media::Events, before).1);
    let (before, _) = ANTHROPIC.split_once("event: message_stop").expect("an end");
    assert_eq!(passed(Media::Events, before), (USED, false));
    for other in [
        "data: [DONE\n\n",
        "data: x[DONE]\n\n",
        "data: {\"a\": \"[DONE]\"}\n\n",
        "event: [DONE]\n\n",
        "data: {\"choices\":[{\"type\":\"message_stop\"}]}\n\n",
        "data: {\"type\":\"message_stop\"\n\n",
    ] {
        assert!(!passed(Media::Events, &format!("{before}{other}")).1, "{other}");
    }
}

#[test]
fn a_usage_behind_the_end_is_final_as_a_whole() {
    let text =
        "data: [DONE]\n\ndata: {\"usage\":{\"completion_tokens\":7,\"prompt_tokens\":20}}\n\n";
    for at in 0..=text.len() {
        let usage = TokenUsage::new();
        let mut reader = UsageReader::new(Media::Events, &usage);
        let (first, rest) = text.as_bytes().split_at(at);
        reader.read(first);
        // It is settled by what is final now.
        assert!(!usage.is_final() || usage.usage().input == 20, "{at}");
        reader.read(rest);
        assert_eq!((usage.usage(), usage.is_final()), (Usage::new(20, 7), true), "{at}");
    }
}

#[test]
fn a_byte_order_mark_before_a_document_makes_no_difference() {
    let text = "\u{feff}{\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":7}}";
    let used = (Usage::new(20, 7), true);
    assert_eq!(json(text), used);
    let bytes: Vec<_> = text.as_bytes().chunks(1).collect();
    assert_eq!(read(Media::Json, &bytes), used);
    // Elsewhere it is no JSON.
    assert_eq!(json(&format!("{{{}", &text[4..])), used);
    assert!(!json(&text.replace("{\"usage", "{\u{feff}\"usage")).1);
}

#[test]
fn text_that_the_model_has_not_written_does_not_make_a_usage_unbelievable() {
    let found = "x".repeat(36_000);
    let usage = r#""usage":{"prompt_tokens":9000,"completion_tokens":7}"#;
    let used = (Usage::new(9_000, 7), true);
    let annotation = format!(r#"{{"type":"url_citation","url_citation":{{"content":"{found}"}}}}"#);
    for place in ["message", "delta"] {
        let choice = format!(r#"{{"{place}":{{"content":"Hi","annotations":[{annotation}]}}}}"#);
        assert_eq!(json(&format!(r#"{{"choices":[{choice}],{usage}}}"#)), used, "{place}");
    }
    // What Azure has found in the service's own data.
    for place in ["message", "delta"] {
        let context = format!(r#"{{"citations":[{{"content":"{found}"}}],"intent":"x"}}"#);
        let choice = format!(r#"{{"{place}":{{"content":"Hi [doc1]","context":{context}}}}}"#);
        assert_eq!(json(&format!(r#"{{"choices":[{choice}],{usage}}}"#)), used, "{place}");
    }
    // What the model says to a tool, and thinks, is its own.
    for own in [
        format!(r#"{{"tool_calls":[{{"function":{{"arguments":"{found}"}}}}]}}"#),
        format!(r#"{{"content":[{{"type":"text","text":"{found}"}}]}}"#),
        format!(r#"{{"reasoning_content":"{found}"}}"#),
        format!(r#"{{"reasoning_details":[{{"type":"reasoning.text","text":"{found}"}}]}}"#),
    ] {
        assert!(!json(&format!(r#"{{"choices":[{{"message":{own}}}],{usage}}}"#)).1, "{own:.60}");
    }
    // The prompt is in the answer to a request with `echo`.
    let echo = format!(r#"{{"choices":[{{"text":"{found}"}}],{usage}}}"#);
    assert_eq!(json(&echo), used);
    assert!(!json(&echo.replace("9000", "9")).1);
}

/// The conversation was summed up, which had used more than the answer itself. The numbers are those of Anthropic's guide.
#[test]
fn what_a_compaction_has_used_counts() {
    let usage = concat!(
        r#""usage":{"input_tokens":23000,"output_tokens":1000,"iterations":["#,
        r#"{"type":"compaction","input_tokens":180000,"output_tokens":3500},"#,
        r#"{"type":"message","input_tokens":23000,"output_tokens":1000}]}"#,
    );
    let used = (Usage::new(203_000, 4_500), true);
    assert_eq!(json(&format!(r#"{{"content":[{{"type":"text","text":"Hi"}}],{usage}}}"#)), used);
    let delta = format!("data: {{\"type\":\"message_delta\",{usage}}}\n\n");
    let end = "data: {\"type\":\"message_stop\"}\n\n";
    assert_eq!(events(&format!("{delta}{end}")), used);
    // An event that comes again counts once.
    assert_eq!(events(&format!("{delta}{delta}{end}")), used);
}

#[test]
fn what_geminis_tools_have_found_is_input() {
    let text = concat!(
        r#"{"candidates":[{"content":{"parts":[{"text":"Hello"}]}}],"usageMetadata":{"promptTokenCount":20,"#,
        r#""toolUsePromptTokenCount":10000,"candidatesTokenCount":300,"thoughtsTokenCount":100,"#,
        r#""totalTokenCount":10420}}"#,
    );
    assert_eq!(json(text), (Usage::new(10_020, 400), true));
}

#[test]
fn where_a_total_is_there_it_is_the_total() {
    for (usage, used) in [
        // LiteLLM: the input includes what is cached, and names it twice.
        (
            r#"{"prompt_tokens":2006,"completion_tokens":300,"total_tokens":2306,"prompt_tokens_details":{"cached_tokens":1920},
            "cache_creation_input_tokens":0,"cache_read_input_tokens":1920}"#,
            Usage { input: 2_006, output: 300, cached: 1_920 },
        ),
        (
            r#"{"cache_creation_input_tokens":1920,"cache_read_input_tokens":0,"completion_tokens":300,"prompt_tokens":2006,"total_tokens":2306}"#,
            Usage { input: 2_006, output: 300, cached: 0 },
        ),
        (
            r#"{"total_tokens":2306,"cache_read_input_tokens":1920,"input_tokens":2006,"output_tokens":300}"#,
            Usage { input: 2_006, output: 300, cached: 1_920 },
        ),
        // Without a total, what OpenAI's name counts includes what is cached.
        (
            r#"{"cache_read_input_tokens":1920,"prompt_tokens":2006,"completion_tokens":300}"#,
            Usage { input: 2_006, output: 300, cached: 1_920 },
        ),
        // A total that includes what is beside the input.
        (
            r#"{"input_tokens":86,"output_tokens":300,"cache_read_input_tokens":1920,"total_tokens":2306}"#,
            Usage { input: 2_006, output: 300, cached: 1_920 },
        ),
        // Anthropic.
        (
            r#"{"input_tokens":86,"output_tokens":300,"cache_read_input_tokens":1920}"#,
            Usage { input: 2_006, output: 300, cached: 1_920 },
        ),
    ] {
        let text = format!("{{\"usage\":{usage}}}");
        assert_eq!(json(&text), (used, true), "{usage}");
        assert_eq!(passed(Media::Json, &text), (used, true), "{usage}");
        let stream = format!("data: {}\n\ndata: [DONE]\n\n", text.replace('\n', " "));
        assert_eq!(passed(Media::Events, &stream), (used, true), "{usage}");
    }
}

/// A stream that reports `first` before 40,000 bytes of text, and `last` behind them.
fn long(first: &str, last: &str) -> String {
    let text = "word ".repeat(80);
    let text = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
    format!("data: {{{first}}}\n\n{}data: {{{last}}}\n\ndata: [DONE]\n\n", text.repeat(100))
}

#[test]
fn a_usage_far_below_what_was_seen_is_not_believed() {
    let report = |output: u64| {
        let total = 9 + output;
        format!(
            "\"usage\":{{\"prompt_tokens\":9,\"completion_tokens\":{output},\"total_tokens\":{total}}}"
        )
    };
    for (first, last) in [
        (report(0), String::new()),
        (report(0), report(0)),
        (String::new(), report(0)),
        (String::new(), report(100)),
        (report(9_000), String::new()),
    ] {
        let (usage, is_final) = events(&long(&first, &last));
        assert_eq!((usage.output, is_final), (10_000, false), "{first} {last}");
    }
    // Tokens may be long.
    let (usage, is_final) = events(&long("", &report(2_600)));
    assert_eq!((usage.output, is_final), (2_600, true));
    let text = "x".repeat(40_000);
    for whole in [
        format!(
            r#"{{"choices":[{{"message":{{"content":"{text}"}}}}],"usage":{{"completion_tokens":1}}}}"#
        ),
        format!(
            r#"{{"content":[{{"type":"text","text":"{text}"}}],"usage":{{"output_tokens":1}}}}"#
        ),
        format!(
            r#"{{"output":[{{"content":[{{"text":"{text}"}}]}}],"usage":{{"output_tokens":1,"total_tokens":5}}}}"#
        ),
    ] {
        let (usage, is_final) = json(&whole);
        assert_eq!((usage.output, is_final), (10_000, false));
    }
}

#[test]
fn an_answer_that_only_begins_is_not_final() {
    let start = ANTHROPIC.split("event: message_delta").next().expect("a beginning");
    assert!(!events(start).1);
    assert!(!events("").1);
}

#[test]
fn only_json_and_events_that_are_not_compressed_are_read() {
    let of = |kind: &str, coding: Option<&str>| {
        Media::of(Some(kind.as_bytes()), coding.map(str::as_bytes))
    };
    assert_eq!(of("text/event-stream; charset=utf-8", None), Some(Media::Events));
    assert_eq!(of("Text/Event-Stream", Some("identity")), Some(Media::Events));
    assert_eq!(of("application/json", None), Some(Media::Json));
    assert_eq!(of("application/problem+json;charset=utf-8", None), Some(Media::Json));
    assert_eq!(of("application/json", Some("gzip")), None);
    assert_eq!(of("text/event-stream", Some("br")), None);
    assert_eq!(of("text/html", None), None);
    assert_eq!(Media::of(None, None), None);
}

proptest! {
    #[test]
    fn a_stream_reads_alike_however_it_is_cut(
        stream in prop::sample::select(vec![OPENAI, RESPONSES, ANTHROPIC]),
        end in prop::sample::select(vec!["\n", "\r", "\r\n"]),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let text = stream.replace("\r\n", "\n").replace('\n', end).into_bytes();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.sort_unstable();
        let ends = cuts.iter().copied().chain([text.len()]);
        let begins = [0].into_iter().chain(cuts.iter().copied());
        let pieces: Vec<_> = begins.zip(ends).map(|(from, to)| &text[from..to]).collect();
        prop_assert_eq!(read(Media::Events, &pieces), (USED, true));
    }

    #[test]
    fn a_stream_reads_alike_one_byte_at_a_time(
        stream in prop::sample::select(vec![OPENAI, RESPONSES, ANTHROPIC]),
    ) {
        let pieces: Vec<_> = stream.as_bytes().chunks(1).collect();
        prop_assert_eq!(read(Media::Events, &pieces), (USED, true));
    }

    #[test]
    fn no_bytes_make_the_reader_fail(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read(Media::Events, &[&bytes]);
        read(Media::Json, &[&bytes]);
    }
}
