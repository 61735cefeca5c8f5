/// A name in a document that means something here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::cost::llm) enum Name {
    /// Any other name.
    #[default]
    Other,
    /// An item of an array has no name.
    Item,
    BestOf,
    CacheCreationInputTokens,
    CacheReadInputTokens,
    CachedTokens,
    Choices,
    CompletionTokens,
    Data,
    Delta,
    FileData,
    ImageUrl,
    Input,
    InputTokens,
    InputTokensDetails,
    MaxCompletionTokens,
    MaxOutputTokens,
    MaxTokens,
    MediaType,
    Message,
    N,
    OutputTokens,
    Prompt,
    PromptTokens,
    PromptTokensDetails,
    Response,
    /// What a model says, under one of several names.
    Text,
    TotalTokens,
    Url,
    Usage,
}

impl Name {
    pub(super) fn of(key: &[u8]) -> Self {
        match key {
            b"best_of" => Self::BestOf,
            b"cache_creation_input_tokens" => Self::CacheCreationInputTokens,
            b"cache_read_input_tokens" => Self::CacheReadInputTokens,
            b"cached_tokens" => Self::CachedTokens,
            b"choices" => Self::Choices,
            b"completion_tokens" => Self::CompletionTokens,
            b"data" => Self::Data,
            b"delta" => Self::Delta,
            b"file_data" => Self::FileData,
            b"image_url" => Self::ImageUrl,
            b"input" => Self::Input,
            b"input_tokens" => Self::InputTokens,
            b"input_tokens_details" => Self::InputTokensDetails,
            b"max_completion_tokens" => Self::MaxCompletionTokens,
            b"max_output_tokens" => Self::MaxOutputTokens,
            b"max_tokens" => Self::MaxTokens,
            b"media_type" => Self::MediaType,
            b"message" => Self::Message,
            b"n" => Self::N,
            b"output_tokens" => Self::OutputTokens,
            b"prompt" => Self::Prompt,
            b"prompt_tokens" => Self::PromptTokens,
            b"prompt_tokens_details" => Self::PromptTokensDetails,
            b"response" => Self::Response,
            b"arguments" | b"content" | b"partial_json" | b"reasoning" | b"reasoning_content"
            | b"refusal" | b"text" | b"thinking" => Self::Text,
            b"total_tokens" => Self::TotalTokens,
            b"url" => Self::Url,
            b"usage" => Self::Usage,
            _ => Self::Other,
        }
    }
}
