use super::KEPT;

/// A name in a document that means something here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::cost::llm) enum Name {
    /// Any other name.
    #[default]
    Other,
    /// An item of an array has no name.
    Item,
    Audio,
    BestOf,
    CacheCreationInputTokens,
    CacheReadInputTokens,
    CachedContent,
    CachedTokens,
    Choices,
    CompletionTokens,
    Conversation,
    Data,
    Delta,
    FileData,
    /// A file that the service has, or fetches.
    FileReference,
    Id,
    Input,
    InputTokens,
    InputTokensDetails,
    /// A bound of the output.
    MaxTokens,
    MediaType,
    /// An image, a recording or a video.
    MediaUrl,
    Message,
    N,
    Output,
    OutputTokens,
    PreviousResponseId,
    Prompt,
    PromptTokens,
    PromptTokensDetails,
    Response,
    /// An image, a recording or a file, in the request or elsewhere.
    Source,
    /// What a model says, under one of several names.
    Text,
    /// What a model may call or has called, or the form of its answer.
    Tool,
    TotalTokens,
    Type,
    Url,
    Usage,
}

impl Name {
    /// The name of a key, in whatever case: some services do not mind it.
    pub(in crate::cost::llm) fn of(key: &[u8]) -> Self {
        let mut lower = [0; KEPT];
        let Some(lower) = lower.get_mut(..key.len()) else { return Self::Other };
        lower.copy_from_slice(key);
        lower.make_ascii_lowercase();
        match &*lower {
            b"audio" => Self::Audio,
            b"best_of" => Self::BestOf,
            b"cache_creation_input_tokens" => Self::CacheCreationInputTokens,
            b"cache_read_input_tokens" => Self::CacheReadInputTokens,
            b"cached_content" | b"cachedcontent" => Self::CachedContent,
            b"cached_tokens" => Self::CachedTokens,
            b"choices" => Self::Choices,
            b"completion_tokens" => Self::CompletionTokens,
            b"conversation" => Self::Conversation,
            b"data" => Self::Data,
            b"delta" => Self::Delta,
            b"file_data" | b"filedata" => Self::FileData,
            b"file_id" | b"file_uri" | b"file_url" | b"fileuri" => Self::FileReference,
            b"id" => Self::Id,
            b"image_url" | b"audio_url" | b"video_url" => Self::MediaUrl,
            b"inline_data" | b"inlinedata" | b"input_audio" | b"source" => Self::Source,
            b"input" => Self::Input,
            b"input_tokens" => Self::InputTokens,
            b"input_tokens_details" => Self::InputTokensDetails,
            b"max_completion_tokens" | b"max_output_tokens" | b"max_tokens" => Self::MaxTokens,
            b"media_type" | b"mime_type" | b"mimetype" => Self::MediaType,
            b"message" => Self::Message,
            b"n" => Self::N,
            b"output" => Self::Output,
            b"output_tokens" => Self::OutputTokens,
            b"previous_response_id" => Self::PreviousResponseId,
            b"prompt" => Self::Prompt,
            b"prompt_tokens" => Self::PromptTokens,
            b"prompt_tokens_details" => Self::PromptTokensDetails,
            b"response" => Self::Response,
            b"arguments" | b"content" | b"partial_json" | b"reasoning" | b"reasoning_content"
            | b"refusal" | b"text" | b"thinking" => Self::Text,
            b"function" | b"function_call" | b"functioncall" | b"functionresponse"
            | b"functions" | b"input_schema" | b"parameters" | b"response_format" | b"schema"
            | b"tool_calls" | b"tools" => Self::Tool,
            b"total_tokens" => Self::TotalTokens,
            b"type" => Self::Type,
            b"url" => Self::Url,
            b"usage" => Self::Usage,
            _ => Self::Other,
        }
    }
}
