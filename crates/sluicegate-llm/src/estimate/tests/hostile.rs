//! Requests that a service reads as large ones, and that are written so that an estimate sees a small one.

use super::{gzip, input, of, of_bytes, output};
use crate::{Estimate, EstimatedTokens};

#[test]
fn a_bound_that_is_there_twice_and_says_nothing_once_lowers_nothing() {
    for other in ["null", "-1", "0", "true", "\"\"", "NaN"] {
        for text in [
            format!("{{\"max_tokens\": 1, \"max_tokens\": {other}}}"),
            format!("{{\"max_tokens\": {other}, \"max_tokens\": 1}}"),
        ] {
            assert_eq!(output(&text), 1_000, "{text}");
        }
    }
    // Another bound that is not used is none.
    assert_eq!(output(r#"{"max_tokens": null, "max_completion_tokens": 50}"#), 50);
}

/// `max_tokens or 4096` is what many services do.
#[test]
fn a_bound_of_zero_is_none() {
    assert_eq!(output(r#"{"max_tokens": 0}"#), 1_000);
    assert_eq!(output(r#"{"max_tokens": "0"}"#), 1_000);
}

#[test]
fn bounds_of_another_api_lower_nothing() {
    for (text, tokens) in [
        (r#"{"messages": [], "max_output_tokens": 1}"#, 1_000),
        (r#"{"generationConfig": {"maxOutputTokens": 1}, "messages": []}"#, 1_000),
        (r#"{"prompt": "a", "max_output_tokens": 1}"#, 1_000),
        (r#"{"max_tokens": 1, "input": "a"}"#, 1_000),
        (r#"{"max_completion_tokens": 1, "input": [{}]}"#, 1_000),
        (r#"{"contents": [{}], "max_tokens": 1}"#, 1_000),
        (r#"{"messages": [], "num_predict": 1}"#, 1_000),
        (r#"{"messages": [], "input": "", "max_tokens": 1}"#, 1_000),
        (r#"{"messages": [], "max_tokens": 7}"#, 7),
        (r#"{"messages": [], "max_tokens": 7, "max_output_tokens": 9}"#, 9),
        (r#"{"input": "a", "max_output_tokens": 7}"#, 7),
        (r#"{"input": [], "prompt": {"id": "a"}, "max_output_tokens": 7}"#, 7),
        (r#"{"contents": [], "generationConfig": {"maxOutputTokens": 7}}"#, 7),
    ] {
        assert_eq!(output(text), tokens, "{text}");
    }
}

/// Most services compare names byte for byte, and do not know such a bound.
#[test]
fn a_bound_in_another_spelling_lowers_nothing() {
    for text in [
        r#"{"messages": [], "Max_Tokens": 1}"#,
        r#"{"MAX_COMPLETION_TOKENS": 1}"#,
        r#"{"max_to\u212aens": 1}"#,
        r#"{"input": "a", "Max_Output_Tokens": 1}"#,
        r#"{"maxOutputTokens": 1}"#,
        r#"{"input": "a", "maxOutputTokens": 1}"#,
        r#"{"contents": [{}], "generationConfig": {"maxoutputtokens": 1}}"#,
        r#"{"contents": [{}], "generationconfig": {"maxOutputTokens": 1}}"#,
    ] {
        assert_eq!(output(text), 1_000, "{text}");
        assert_eq!(output(&text.replace(": 1}", ": 50000}")), 50_000, "{text}");
    }
    assert_eq!(output(r#"{"max_tokens": 7, "Max_Tokens": 1}"#), 7);
}

#[test]
fn bounds_of_any_name_and_in_any_place_raise_the_output() {
    for text in [
        r#"{"options": {"num_predict": 50000}}"#,
        r#"{"inferenceConfig": {"maxTokens": 50000}}"#,
        r#"{"textGenerationConfig": {"maxTokenCount": 50000}}"#,
        r#"{"max_gen_len": 50000}"#,
        r#"{"n_predict": 50000}"#,
        r#"{"inputs": "a", "parameters": {"max_new_tokens": 50000}}"#,
        r#"{"sampling_params": {"max_new_tokens": 50000}}"#,
        r#"{"input": {"max_tokens": 50000}}"#,
        r#"{"max_tokens": 1, "extra_body": {"max_tokens": 50000}}"#,
        r#"{"max_tokens": 1, "thinking": {"type": "enabled", "budget_tokens": 50000}}"#,
        r#"{"generationConfig": {"thinkingConfig": {"thinkingBudget": 50000}}}"#,
        r#"{"max_tokens": [50000]}"#,
        r#"{"max_tokens": "0xc350"}"#,
        r#"{"max_tokens": "50000 tokens"}"#,
        r#"{"max_tokens": "\u000b50000"}"#,
    ] {
        assert_eq!(output(text), 50_000, "{text}");
    }
    // What tools call so is for them.
    for text in [
        r#"{"tools": [{"function": {"parameters": {"properties": {"max_tokens": {"maximum": 9000}}}}}]}"#,
        r#"{"tools": [{"input_schema": {"default": {"max_tokens": 9000}}}]}"#,
        r#"{"messages": [{"content": [{"type": "tool_use", "input": {"max_tokens": 9000}}]}]}"#,
        r#"{"messages": [{"n": 9000}], "metadata": {"n": 9000}}"#,
    ] {
        assert_eq!(output(text), 1_000, "{text}");
    }
}

/// `int` in Python reads the digits of every script.
#[test]
fn a_bound_in_the_digits_of_another_script_is_one() {
    assert!(output("{\"max_tokens\": \"５００００\"}") >= 50_000);
    assert!(output("{\"max_tokens\": \"\\u0665\\u0660\\u0660\\u0660\\u0660\"}") >= 50_000);
    assert!(output("{\"max_tokens\": \"\u{a0}50000\"}") >= 50_000);
}

/// Go compares names by Unicode.
#[test]
fn names_are_read_in_any_case_of_unicode() {
    assert_eq!(output("{\"max_to\u{212a}en\u{17f}\": 50000}"), 50_000);
    assert_eq!(output(r#"{"max_to\u212aen\u017f": 50000}"#), 50_000);
    assert_eq!(output("{\"\u{212a}\": 1, \"max_tokens\": 7}"), 7);
}

#[test]
fn what_a_tool_was_called_with_is_no_batch() {
    for call in [
        concat!(
            r#"{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"batch_update","#,
            r#""input":{"requests":[{"a":1},{"a":2},{"a":3}]}}]}],"max_tokens":8192}"#,
        ),
        concat!(
            r#"{"contents":[{"parts":[{"functionCall":{"name":"f","args":{"batch":[{"a":1},{"a":2},{"a":3}]}}}]}],"#,
            r#""generationConfig":{"maxOutputTokens":8192}}"#,
        ),
    ] {
        assert_eq!(output(call), 8_192, "{call}");
    }
}

#[test]
fn each_prompt_and_each_request_of_a_batch_has_an_answer() {
    for (text, tokens) in [
        (r#"{"prompt": ["a", "b", "c"], "max_tokens": 50}"#, 150),
        (r#"{"max_tokens": 50, "prompt": [[1], [2, 3]], "n": 2}"#, 200),
        (r#"{"prompt": [1, 2, 3], "max_tokens": 50}"#, 50),
        (r#"{"inputs": ["a", "b"], "parameters": {"max_new_tokens": 5000}}"#, 10_000),
        (r#"[{"max_tokens": 5000}, {"max_tokens": 6000}]"#, 12_000),
        (
            r#"{"requests": [{"params": {"max_tokens": 5000}}, {"params": {"max_tokens": 5000}}]}"#,
            10_000,
        ),
        (r#"{"requests": [{"contents": []}, {"contents": []}, {"contents": []}]}"#, 3_000),
    ] {
        assert_eq!(output(text), tokens, "{text}");
    }
}

/// `serde_json` reads 128 levels, Python about a thousand, Go ten thousand, and Node.js any number.
#[test]
fn what_is_behind_deep_nesting_is_read() {
    for depth in [127, 128, 129, 5_000] {
        let deep = format!("{}{{\"]\\\"}}\": 1}}{}", "[".repeat(depth), "]".repeat(depth));
        let text = format!(
            "{{\"a\": {deep}, \"max\\u005ftokens\": 50000, \"n\": 2, \"prompt\": [\"four\"]}}"
        );
        assert_eq!(output(&text), 100_000, "{depth}");
    }
    let hidden = format!("{}\"{}\"{}", "[".repeat(200), "x".repeat(100_000), "]".repeat(200));
    assert!(input(&format!("{{\"messages\": {hidden}}}")) >= 25_000);
}

/// Newtonsoft's parser reads a comma too many and comments, and services read forms.
#[test]
fn bounds_that_only_a_lenient_parser_reads_are_found() {
    let comment = "a comment of some length, with 7 in it ".repeat(20);
    for text in [
        r#"{, "max\u005ftokens": 50000}"#.to_owned(),
        r#"{, "max_tokens": 0xC350}"#.to_owned(),
        format!("{{, \"max_tokens\": /* {comment} */ 50000}}"),
        "model=a&max%5Ftokens=50000".to_owned(),
        "model=a&max_tokens=%35%30000".to_owned(),
        "--b\r\nContent-Disposition: form-data; name=\"max_tokens\"\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Transfer-Encoding: 8bit\r\n\r\n50000\r\n--b--"
            .to_owned(),
        "max_tokens: 50000\nprompt: four\n".to_owned(),
        // The document breaks between the name and the end of the number.
        r#"{"max_tokens": /**/ 50000}"#.to_owned(),
        r#"{"max_tokens" /**/ : 50000}"#.to_owned(),
        r#"{"max_tokens": [/**/ 50000]}"#.to_owned(),
        r#"{"max_tokens": 0xC350}"#.to_owned(),
        r#"{"max_tokens": 5_0000}"#.to_owned(),
        r#"{"max_tokens": '50000'}"#.to_owned(),
        r#"{"max_tokens": +50000}"#.to_owned(),
        "{\"max_tokens\": \"\n50000\"}".to_owned(),
        "{\"max_tokens\": \"50000\n\"}".to_owned(),
    ] {
        assert_eq!(output(&text), 50_000, "{text}");
        let bytewise = text.as_bytes().chunks(1).fold(Estimate::new().reader(), |mut reader, byte| {
            reader.read(byte);
            reader
        });
        assert_eq!(bytewise.finish().output, 50_000, "{text}");
    }
    // Where it breaks elsewhere, the names that came before bound nothing.
    for text in [
        "{\"max_tokens\": 5, \"a\nb\": 50000}",
        r#"{"max_tokens": 5 /**/, "seed": 50000}"#,
        r#"{"max_tokens": 5}, 50000"#,
        r#"{"tools": [{"parameters": {"max_tokens": /**/ 50000}}]}"#,
    ] {
        assert_eq!(output(text), 4_000, "{text}");
    }
}

/// Some services read a document, and nothing behind it.
#[test]
fn a_byte_behind_a_document_lowers_nothing() {
    let image = r#"{"image_url": {"url": "https://example.com/a.png"}}"#;
    for text in [
        "{}".to_owned(),
        format!(r#"{{"messages": [{{"content": [{}]}}]}}"#, [image; 9].join(",")),
        r#"{"previous_response_id": "resp_1", "n": 7}"#.to_owned(),
        r#"{"n": 100, "messages": []}"#.to_owned(),
        r#"{"prompt": ["a", "b", "c", "d", "e"], "best_of": 3}"#.to_owned(),
        r#"{"prompt": [1, 2, 3, 4, 5, 6, 7, 8, 9]}"#.to_owned(),
        format!("[{}]", ["{}"; 40].join(",")),
        format!(r#"{{"prompt": "{}"}}"#, "word ".repeat(10_000)),
    ] {
        let whole = of(Estimate::new(), &text);
        let more = |bytes: &[u8]| {
            let estimated = of_bytes(bytes, 1_000);
            assert_eq!(estimated.max(whole), estimated, "{whole:?}: {}", &text[..2]);
        };
        more(format!("{text}x").as_bytes());
        more(format!("{text},").as_bytes());
        let packed = gzip(text.as_bytes());
        more(&[&packed[..], b"x"].concat());
        more(&gzip(format!("{text}x").as_bytes()));
    }
    let comment = r#"{"n": /* a comment of some length */ 100, "messages": []}"#;
    assert_eq!(output(comment), output(r#"{"n": 100, "messages": []}"#));
}

#[test]
fn text_that_is_sent_as_a_file_or_as_tokens_counts() {
    let solid = "d29yZA".repeat(1_000);
    for text in [
        format!(
            r#"{{"contents":[{{"parts":[{{"inlineData":{{"mimeType":"application/json","data":"{solid}"}}}}]}}]}}"#
        ),
        format!(
            r#"{{"messages":[{{"content":[{{"source":{{"media_type":"application/x-python","data":"{solid}"}}}}]}}]}}"#
        ),
        format!(r#"{{"image_url":{{"url":"data:;base64,{solid}"}}}}"#),
        format!(r#"{{"image_url":{{"url":"DATA:application/ld+json,{solid}"}}}}"#),
        format!(r#"{{"input_ids": [{}1]}}"#, "5,".repeat(2_000)),
        format!(r#"{{"context": [{}1]}}"#, "5,".repeat(2_000)),
        format!(r#"{{"response_format": {{"{solid}": 1}}}}"#),
        format!(
            r#"{{"guided_json": {{"properties": {{{}"a": 1}}}}}}"#,
            "\"abcdefgh\": 1, ".repeat(800)
        ),
        format!(r#"{{"messages": [{{"{solid}": 1}}]}}"#),
    ] {
        assert!(input(&text) >= 1_500, "{}: {}", &text[..60], input(&text));
    }
    for media in ["image/png", "application/pdf", "audio/wav"] {
        let text = format!(r#"{{"source":{{"media_type":"{media}","data":"{solid}"}}}}"#);
        assert!(input(&text) < 1_620, "{media}");
    }
    assert_eq!(input(r#"{"content": [{"file_ids": ["file_1", "file_2"]}]}"#), 3_200);
    assert!(input(r#"{"thread_id": "thread_1"}"#) >= 1_600);
}

/// Some services decode a body by its header before they read its JSON.
#[test]
fn a_body_in_an_encoding_that_hides_its_bounds_costs_the_most() {
    let of = |content_type: &str| {
        let mut reader = Estimate::new().reader();
        reader.content_type(content_type.as_bytes());
        reader.read(br#"{"max+AF8-tokens": 50000, "max_tokens": 7}"#);
        reader.finish()
    };
    assert_eq!(of("application/json; charset=utf-8"), EstimatedTokens::new(0, 7));
    let hidden = of("application/json; charset=utf-7");
    assert!(hidden.output >= 2_000_000 && hidden.input >= 2_000_000, "{hidden:?}");
}
