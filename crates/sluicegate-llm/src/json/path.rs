use super::KEPT;

/// The deepest nesting that is read, as in `serde_json`. A service that reads deeper documents is rare, and a stack of
/// any depth would let a client choose how much memory its request takes.
const DEEPEST: usize = 128;

/// The names that lead to a value, and whether each level is an object or an array.
#[derive(Debug, Clone)]
pub(crate) struct Path {
    names: [Name; DEEPEST],
    /// One bit for each level: set for an object.
    objects: u128,
    depth: usize,
}

impl Path {
    pub(super) const fn new() -> Self {
        Self { names: [Name::Other; DEEPEST], objects: 0, depth: 0 }
    }

    /// The names, from the outermost inwards.
    pub(crate) fn names(&self) -> &[Name] {
        &self.names[..self.depth]
    }

    /// Begins an object or an array. Returns `false` if it is nested too deeply.
    pub(super) fn open(&mut self, is_object: bool) -> bool {
        let Some(name) = self.names.get_mut(self.depth) else { return false };
        *name = if is_object { Name::Other } else { Name::Item };
        let bit = 1 << self.depth;
        self.objects = if is_object { self.objects | bit } else { self.objects & !bit };
        self.depth += 1;
        true
    }

    pub(super) fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Sets the name of the value that follows.
    pub(super) fn name(&mut self, name: Name) {
        if let Some(innermost) = self.names[..self.depth].last_mut() {
            *innermost = name;
        }
    }

    /// Whether the innermost level is an object.
    pub(super) fn is_object(&self) -> bool {
        self.depth.checked_sub(1).is_some_and(|level| self.objects >> level & 1 == 1)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.depth == 0
    }
}

/// A name in a document that means something here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Name {
    /// Any other name.
    #[default]
    Other,
    /// An item of an array has no name.
    Item,
    /// What a model has found, and where.
    Annotations,
    Audio,
    Batch,
    BestOf,
    CacheCreationInputTokens,
    CacheReadInputTokens,
    CachedContent,
    CachedTokens,
    Choices,
    CompletionTokens,
    Contents,
    Conversation,
    Data,
    Delta,
    FileData,
    /// A file that the service has, or fetches.
    FileReference,
    GenerationConfig,
    /// The same, spelled in another way.
    OtherConfig,
    Id,
    Input,
    InputTokens,
    InputTokensDetails,
    Iterations,
    /// Bounds of the output: of Chat Completions and Messages, of Responses, and of Gemini, each as its API spells it.
    MaxCompletionTokens,
    MaxOutputTokens,
    GeminiMaxOutputTokens,
    MaxTokens,
    /// Of other APIs, or spelled in another way. Most services read names byte for byte, and do not know such a bound.
    OtherBound,
    MediaType,
    /// An image, a recording or a video.
    MediaUrl,
    Message,
    Messages,
    N,
    Output,
    OutputTokens,
    /// Of a tool, or of the whole request.
    Parameters,
    PreviousResponseId,
    Prompt,
    PromptTokens,
    PromptTokensDetails,
    Response,
    /// An image, a recording or a file, in the request or elsewhere.
    Source,
    /// What a model says, under one of several names.
    Text,
    /// Input as numbers of tokens.
    Tokens,
    /// What a model may call or has called, or the form of its answer.
    Tool,
    ToolUsePromptTokens,
    TotalTokens,
    Type,
    Url,
    Usage,
}

impl Name {
    /// The name of a key, in whatever case: some services do not mind it.
    pub(crate) fn of(key: &[u8]) -> Self {
        if key.len() > KEPT {
            return Self::Other;
        }
        match key {
            b"generation_config" | b"generationConfig" => return Self::GenerationConfig,
            b"max_completion_tokens" => return Self::MaxCompletionTokens,
            b"max_output_tokens" => return Self::MaxOutputTokens,
            b"maxOutputTokens" => return Self::GeminiMaxOutputTokens,
            b"max_tokens" => return Self::MaxTokens,
            _ => {}
        }
        let mut lower = [0; KEPT];
        match fold(key, &mut lower) {
            b"annotations" => Self::Annotations,
            b"audio" => Self::Audio,
            b"batch" | b"requests" => Self::Batch,
            b"best_of" => Self::BestOf,
            b"cache_creation_input_tokens" => Self::CacheCreationInputTokens,
            b"cache_read_input_tokens" | b"cachedcontenttokencount" => Self::CacheReadInputTokens,
            b"cached_content" | b"cachedcontent" => Self::CachedContent,
            b"cached_tokens" => Self::CachedTokens,
            b"candidates" | b"choices" => Self::Choices,
            b"candidatestokencount" | b"completion_tokens" => Self::CompletionTokens,
            b"contents" => Self::Contents,
            b"conversation" => Self::Conversation,
            b"data" => Self::Data,
            b"delta" => Self::Delta,
            b"file_data" | b"filedata" => Self::FileData,
            b"assistant_id" | b"document_url" | b"file_id" | b"file_ids" | b"file_uri"
            | b"file_url" | b"fileuri" | b"input_file_id" | b"thread_id" | b"uri" => {
                Self::FileReference
            }
            b"generation_config" | b"generationconfig" => Self::OtherConfig,
            b"id" => Self::Id,
            b"image_url" | b"audio_url" | b"video_url" => Self::MediaUrl,
            b"inline_data" | b"inlinedata" | b"input_audio" | b"source" => Self::Source,
            b"input" => Self::Input,
            b"input_tokens" => Self::InputTokens,
            b"input_tokens_details" => Self::InputTokensDetails,
            b"iterations" => Self::Iterations,
            b"budget_tokens"
            | b"max_completion_tokens"
            | b"max_gen_len"
            | b"max_new_tokens"
            | b"max_output_tokens"
            | b"max_tokens"
            | b"max_tokens_to_sample"
            | b"maxcompletiontokens"
            | b"maxnewtokens"
            | b"maxoutputtokens"
            | b"maxtokencount"
            | b"maxtokens"
            | b"n_predict"
            | b"num_predict"
            | b"thinking_budget"
            | b"thinkingbudget" => Self::OtherBound,
            b"media_type" | b"mime_type" | b"mimetype" => Self::MediaType,
            b"message" => Self::Message,
            b"messages" => Self::Messages,
            b"candidate_count"
            | b"candidatecount"
            | b"n"
            | b"num_return_sequences"
            | b"numresults" => Self::N,
            b"output" => Self::Output,
            b"output_tokens" => Self::OutputTokens,
            b"parameters" => Self::Parameters,
            b"previous_response_id" => Self::PreviousResponseId,
            b"inputs" | b"prompt" | b"prompts" => Self::Prompt,
            b"prompt_tokens" | b"prompttokencount" => Self::PromptTokens,
            b"prompt_tokens_details" => Self::PromptTokensDetails,
            b"response" => Self::Response,
            b"arguments" | b"content" | b"partial_json" | b"reasoning" | b"reasoning_content"
            | b"refusal" | b"text" | b"thinking" => Self::Text,
            b"function"
            | b"function_call"
            | b"functioncall"
            | b"functionresponse"
            | b"functions"
            | b"format"
            | b"guided_json"
            | b"input_schema"
            | b"json_schema"
            | b"response_format"
            | b"responseschema"
            | b"schema"
            | b"structured_outputs"
            | b"tool_calls"
            | b"tools" => Self::Tool,
            b"context" | b"input_ids" | b"prompt_token_ids" => Self::Tokens,
            b"tooluseprompttokencount" => Self::ToolUsePromptTokens,
            b"total_tokens" | b"totaltokencount" => Self::TotalTokens,
            b"type" => Self::Type,
            b"url" => Self::Url,
            b"usage" | b"usagemetadata" => Self::Usage,
            _ => Self::Other,
        }
    }
}

/// In small letters. Two letters beyond ASCII are the same as one within it, in a comparison that ignores the case by
/// Unicode, as Go's `encoding/json` does.
fn fold<'l>(key: &[u8], lower: &'l mut [u8; KEPT]) -> &'l [u8] {
    let (mut rest, mut length) = (key, 0);
    while let [first, others @ ..] = rest {
        (lower[length], rest) = match rest {
            // The sign of kelvin.
            [0xe2, 0x84, 0xaa, rest @ ..] => (b'k', rest),
            // The long s.
            [0xc5, 0xbf, rest @ ..] => (b's', rest),
            _ => (first.to_ascii_lowercase(), others),
        };
        length += 1;
    }
    &lower[..length]
}
