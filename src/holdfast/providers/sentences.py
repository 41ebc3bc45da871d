"""What services say when they refuse, and which of our errors it is; data for `failures.py`.

Both tables are tried from the top. A new wording is a new row: the pattern, the error, a sentence
it was seen in, and where. A test holds every row against the sentences of all others.
"""

from typing import NamedTuple

from holdfast.errors import (
    AuthError,
    ConnectionFailed,
    ContentBlocked,
    ContextOverflow,
    InvalidRequest,
    OutputLimit,
    Overloaded,
    ProtocolError,
    ProviderError,
    RateLimited,
)

Kind = type[ProviderError]

# Codes that settle it. An answer may hold several (Google: RESOURCE_EXHAUSTED as the status,
# MODEL_CAPACITY_EXHAUSTED as the reason): the first line that holds one of them decides.
CODES: tuple[tuple[Kind, str], ...] = (
    (
        Overloaded,
        """
        overloaded_error overloaded server_is_overloaded engine_overloaded_error slow_down
        model_overloaded MODEL_CAPACITY_EXHAUSTED NoCapacity capacity_exceeded
        """,
    ),
    (
        AuthError,
        """
        authentication_error permission_error billing_error invalid_api_key API_KEY_INVALID
        unauthorized UNAUTHENTICATED PERMISSION_DENIED IAM_PERMISSION_DENIED
        account_deactivated insufficient_quota billing_hard_limit_reached BILLING_DISABLED
        CONSUMER_SUSPENDED SERVICE_DISABLED AccessDeniedException
        UnrecognizedClientException ExpiredTokenException
        """,
    ),
    (
        RateLimited,
        """
        rate_limit_error rate_limit_exceeded RateLimitReached too_many_requests
        QUOTA_EXHAUSTED ThrottlingException usage_limit_reached TooManyRequestsException
        """,
    ),
    (
        ContextOverflow,
        """
        context_length_exceeded model_context_window_exceeded context_window_exceeded
        exceed_context_size_error tokens_limit_reached model_max_prompt_tokens_exceeded
        request_too_large string_above_max_length
        """,
    ),
    (OutputLimit, "max_output_tokens"),
    (
        ContentBlocked,
        """
        content_filter content_policy_violation ResponsibleAIPolicyViolation SAFETY
        BLOCKLIST PROHIBITED_CONTENT IMAGE_SAFETY data_inspection_failed moderation_blocked
        """,
    ),
    (
        InvalidRequest,
        """
        model_not_found unknown_model not_found_error DeploymentNotFound unsupported_value
        unsupported_parameter invalid_image_url tool_use_failed ResourceNotFoundException
        """,
    ),
)

# Codes that say little: half of all wrong keys and long prompts come as one of these.
VAGUE_CODES: tuple[tuple[Kind, str], ...] = (
    (RateLimited, "RESOURCE_EXHAUSTED tokens requests"),
    (
        Overloaded,
        """
        api_error server_error internal_server_error INTERNAL UNAVAILABLE timeout_error
        DEADLINE_EXCEEDED ServiceUnavailableException InternalServerException
        """,
    ),
    (AuthError, "forbidden"),
    (
        InvalidRequest,
        """
        invalid_request_error INVALID_ARGUMENT bad_request BadRequestError
        NOT_FOUND FAILED_PRECONDITION OUT_OF_RANGE ValidationException invalid_prompt
        """,
    ),
)


class Seen(NamedTuple):
    """A pattern, a sentence it was seen in, and where. <found>, <more> and <max> are numbers."""

    kind: Kind
    pattern: str
    sentence: str
    where: str


SEEN: tuple[Seen, ...] = (
    # Limits in a time
    Seen(
        RateLimited,
        r"\b(?:tokens|requests|input tokens|output tokens) per (?:min|minute|hour|day|second)\b",
        "Request too large for gpt-4o in organization org-X on tokens per min (TPM): Limit 30000, "
        "Requested 342389. The input or output tokens must be reduced in order to run "
        "successfully.",
        "OpenAI, 429; Groq says the same with 413",
    ),
    Seen(
        RateLimited,
        r"\brate[- ]limit(?:ed| reached| exceeded| error| of \d+ per)\b|"
        r"\b(?:exceed\w*|hit|over) (?:\S+ ){0,3}rate limit",
        "This request would exceed your account's rate limit. Please try again later.",
        "Anthropic, 429",
    ),
    Seen(
        RateLimited,
        r"\btoo many (?:requests|tokens, please wait)",
        "Too many tokens, please wait before trying again.",
        "Bedrock, ThrottlingException",
    ),
    Seen(
        RateLimited,
        r"\bquota exceeded for (?:metric|quota metric)|\bquota will reset after",
        "You have exhausted your capacity on this model. Your quota will reset after 161h39m41s.",
        "Code Assist, 429",
    ),
    Seen(
        RateLimited,
        r"\bresource (?:has been )?exhausted\b",
        "Resource has been exhausted (e.g. check quota).",
        "Gemini, 429",
    ),
    Seen(
        RateLimited,
        r"\byou've hit your (?:\S+ )?limit\b",
        "You've hit your session limit · resets 8:30pm (Asia/Tokyo)",
        "Claude Code, with a subscription",
    ),
    Seen(
        RateLimited,
        r"\breached your specified \S+ usage limits|\busage limit reached\b",
        "You have reached your specified API usage limits. You will regain access on 2026-01-01 "
        "at 00:00 UTC.",
        "Anthropic, 400",
    ),
    # No room
    Seen(
        Overloaded,
        r"\b(?:model|engine|server|service|system) is (?:currently |temporarily )?overloaded\b|"
        r"^overloaded$",
        "The model is overloaded. Please try again later.",
        "Gemini, 503",
    ),
    Seen(
        Overloaded,
        r"\bno capacity available\b|\bat capacity\b|\bcapacity exceeded\b",
        "No capacity available for model gemini-3-pro-high on the server",
        "Code Assist, 503",
    ),
    Seen(
        Overloaded,
        r"\brequires more system memory\b.{0,40}\bthan is available\b",
        "model requires more system memory (5.0 GiB) than is available (3.9 GiB)",
        "Ollama, 500",
    ),
    # The key, and what it pays for
    Seen(
        AuthError,
        r"\b(?:incorrect|invalid|missing|no) (?:x-)?api[- ]key\b|\bapi key (?:is )?not valid\b|"
        r"\bapi key expired\b",
        "Incorrect API key provided. You can obtain an API key from https://console.x.ai.",
        "xAI, 400",
    ),
    Seen(
        AuthError,
        r"\bnot logged in\b|\bplease run /login\b|\bfailed to authenticate\b|^permission denied\b",
        "Not logged in · Please run /login",
        "Claude Code",
    ),
    Seen(
        AuthError,
        r"\bbad credentials\b|\b(?:access |auth\w* )?token (?:has |is )?expired\b|"
        r"\binvalid (?:auth\w* )?(?:token|credentials)\b",
        "IDE token expired: unauthorized: token expired",
        "Copilot, 401",
    ),
    Seen(
        AuthError,
        r"\bexceeded your current quota\b.{0,120}\b(?:read the docs|error-codes)",
        "You exceeded your current quota, please check your plan and billing details. For more "
        "information on this error, read the docs: "
        "https://platform.openai.com/docs/guides/error-codes/api-errors.",
        "OpenAI, 429 and in a stream",
    ),
    Seen(
        AuthError,
        r"\bcredit balance is too low\b|\binsufficient (?:balance|credits?|funds)\b",
        "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing "
        "to upgrade or purchase credits.",
        "Anthropic, 400",
    ),
    Seen(
        AuthError,
        r"\brequires more credits\b|\bcan only afford\b",
        "This request requires more credits, or fewer max_tokens. You requested up to 65536 "
        "tokens, but can only afford 6666.",
        "OpenRouter, 402",
    ),
    Seen(
        AuthError,
        r"\borganization has been disabled\b|\buser location is not supported\b",
        "User location is not supported for the API use.",
        "Gemini, 400",
    ),
    # The answer
    Seen(
        OutputLimit,
        r"\bmax_tokens or model output limit was reached\b|^token limit reached$",
        "Could not finish the message because max_tokens or model output limit was reached. "
        "Please try again with higher max_tokens.",
        "OpenAI, 400; OpenRouter says `Token limit reached` in a stream",
    ),
    # The filter
    Seen(
        ContentBlocked,
        r"\btriggering \S+ \S+ content management policy|\bcontent management policy\b",
        "The response was filtered due to the prompt triggering Azure OpenAI's content management "
        "policy. Please modify your prompt and retry.",
        "Azure OpenAI, 400",
    ),
    Seen(
        ContentBlocked,
        r"\bblocked by content filtering\b|\bcontent violates (?:our )?usage guidelines\b|"
        r"\bcontent exists risk\b",
        "Output blocked by content filtering policy",
        "Anthropic, 400",
    ),
    Seen(
        ContentBlocked,
        r"\b(?:prompt|input|request) was (?:flagged|rejected)\b.{0,80}"
        r"(?:usage policy|safety system|flagged for|$)",
        "Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
        "OpenAI Responses, 400",
    ),
    # The request itself, where the words are close to those of the window
    Seen(
        InvalidRequest,
        r"\bmax_(?:completion_|output_)?tokens\b.{0,60}(?:maximum allowed number of output tokens|"
        r"supports at most \d+ completion tokens)",
        "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens for "
        "claude-3-5-sonnet-20241022",
        "Anthropic, 400",
    ),
    # The window
    Seen(
        ContextOverflow,
        r"\bprompt is too long\b.{0,10}\bthe request is ~<found> tokens \(limit <max>\)",
        "Prompt is too long · the request is ~210000 tokens (limit 200000) but this conversation "
        "is only ~263 tokens",
        "Claude Code",
    ),
    Seen(
        ContextOverflow,
        r"\bprompt is too long(?:: <found> tokens > <max>)?",
        "prompt is too long: 200251 tokens > 200000 maximum",
        "Anthropic, 400",
    ),
    Seen(
        ContextOverflow,
        r"\binput length and `?max_tokens`? exceed context limit: <found> \+ <more> > <max>",
        "input length and max_tokens exceed context limit: 90402 + 116650 > 204648, decrease "
        "input length or max_tokens and try again",
        "Anthropic, 400",
    ),
    Seen(
        ContextOverflow,
        r"\bis too large: <more>\. .{0,60}maximum context length is <max> tokens\b.{0,60}"
        r"\brequest has <found> input tokens\b",
        "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context "
        "length is 32768 tokens and your request has 27000 input tokens (8192 > 32768 - 27000).",
        "vLLM, 400",
    ),
    Seen(
        ContextOverflow,
        r"\bmaximum context length is <max> tokens\b.{0,40}\brequested <more> output tokens and "
        r"your prompt contains (?:at least )?<found> input tokens",
        "This model's maximum context length is 32768 tokens. However, you requested 8192 output "
        "tokens and your prompt contains at least 24577 input tokens, for a total of at least "
        "32769 tokens.",
        "vLLM, 400",
    ),
    Seen(
        ContextOverflow,
        r"\bmaximum context length is <max> tokens\b(?:.{0,40}\b(?:resulted in|requested(?: about)?"
        r"|request has) <found> (?:input )?tokens)?",
        "This model's maximum context length is 4097 tokens. However, you requested 4120 tokens "
        "(3120 in the messages, 1000 in the completion). Please reduce the length of the messages "
        "or completion.",
        "OpenAI, DeepSeek and OpenRouter, 400",
    ),
    Seen(
        ContextOverflow,
        r"\bwould need <found> tokens but limit is <max> tokens",
        "Request would need 9000 tokens but limit is 8192 tokens",
        "a local server",
    ),
    Seen(
        ContextOverflow,
        r"\bexceeds the context window\b",
        "Your input exceeds the context window of this model. Please adjust your input and try "
        "again.",
        "OpenAI Responses, 400 and in a stream",
    ),
    Seen(
        ContextOverflow,
        r"\binput token count(?: \(<found>\))? exceeds the maximum number of tokens allowed"
        r"(?: \(?<max>)?",
        "The input token count (1250074) exceeds the maximum number of tokens allowed (1048576).",
        "Vertex, 400",
    ),
    Seen(
        ContextOverflow,
        r"\bprompt too long; exceeded (?:max )?context length\b",
        "prompt too long; exceeded max context length by 1119046 tokens",
        "Ollama, 400",
    ),
    Seen(
        ContextOverflow,
        r"\bprompt is longer than the context length\b",
        "the prompt is longer than the context length currently available to the model; shorten "
        "the prompt, adjust the context length in settings, or use a model with a longer context "
        "length",
        "Ollama, 400",
    ),
    Seen(
        ContextOverflow,
        r"\btoo large\b.{0,60}\bmax size: <max> tokens",
        "Request body too large for gpt-4o model. Max size: 8000 tokens.",
        "GitHub Models, 413",
    ),
    Seen(
        ContextOverflow,
        r"\bprompt token count of <found> exceeds the limit of <max>",
        "prompt token count of 140499 exceeds the limit of 128000",
        "Copilot, 400",
    ),
    Seen(
        ContextOverflow,
        r"\bmaximum prompt length is <max>(?: but the request contains <found> tokens)?",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        "xAI, 400",
    ),
    Seen(
        ContextOverflow,
        r"\bprompt contains <found> tokens\b.{0,60}\btoo large for model with <max> maximum",
        "Prompt contains 69063 tokens and 0 draft tokens, too large for model with 32768 maximum "
        "context length",
        "Mistral, 400",
    ),
    Seen(
        ContextOverflow,
        r"(?:\brequest \(<found> tokens\) )?exceeds the available context size(?: \(<max>)?",
        "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
        "llama.cpp, 400",
    ),
    Seen(
        ContextOverflow,
        r"\binput \(<found> tokens\) is longer than the model's context length \(<max>",
        "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
        "Together, 400",
    ),
    Seen(
        ContextOverflow,
        r"\b(?:input length \(?<found>\)?|token count) exceeds (?:the )?(?:model's )?maximum "
        r"(?:context length|allowed input length)(?: \(| of )<max>",
        "Input length (265330) exceeds model's maximum context length (262144).",
        "compatible servers, 400",
    ),
    Seen(
        ContextOverflow,
        r"\binput prompt \(<found> tokens\) is too long and exceeds limit of <max>",
        "Input prompt (2664 tokens) is too long and exceeds limit of 2048",
        "vLLM, 400",
    ),
    Seen(
        ContextOverflow,
        r"\bfirst <found> tokens when context the overflows\b.{0,60}\blength of only <max> tokens",
        "Trying to keep the first 9000 tokens when context the overflows. However, the model is "
        "loaded with context length of only 4096 tokens, which is not enough.",
        "LM Studio, 400",
    ),
    Seen(
        ContextOverflow,
        r"\binput length exceeds (?:the )?maximum context length\b|\bprompt exceeds max length\b",
        "input length exceeds maximum context length",
        "Ollama, 400; Z.ai in other words",
    ),
    Seen(
        ContextOverflow,
        r"\btokens in the prompt cannot exceed <max> - received <found>",
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292. "
        "Try using a shorter prompt.",
        "Cohere, 400",
    ),
    Seen(
        ContextOverflow,
        r"\binputs`? tokens \+ `?max_new_tokens`? must be <= <max>\. "
        r"given: <found> `?inputs`? tokens and <more>",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 8200 "
        "`inputs` tokens and 512 `max_new_tokens`",
        "Text Generation Inference and Together, 422",
    ),
    Seen(
        ContextOverflow,
        r"\brange of input length should be \[1, <max>\]",
        "Range of input length should be [1, 129024]",
        "DashScope, 400",
    ),
    Seen(
        ContextOverflow,
        r"\bexceeded model token limit: <max>(?: \(requested: <found>\))?",
        "Your request exceeded model token limit: 262144 (requested: 291351)",
        "Kimi, 400",
    ),
    Seen(
        ContextOverflow,
        r"\b(?:greater than the context length|context window exceeds limit|"
        r"input is too long for requested model|reduce the length of the messages or completion|"
        r"context length exceeded|exceeds the context length)\b",
        "Please reduce the length of the messages or completion.",
        "Groq, 400; LM Studio, MiniMax and Bedrock in other words",
    ),
    Seen(
        ContextOverflow,
        r"\brequest too large \(max \d+ ?mb\)",
        "Request too large (max 20MB). Try with a smaller file.",
        "Claude Code, for 413",
    ),
    Seen(
        InvalidRequest,
        r"\bissue with the selected model\b|^error: unknown option\b",
        "There's an issue with the selected model (claude-x). It may not exist or you may not have "
        "access to it. Run --model to pick a different model.",
        "Claude Code",
    ),
    Seen(
        ContextOverflow,
        r"\brequest exceeds the maximum (?:size|allowed number of bytes)\b|"
        r"\brequest entity too large\b|\bpayload too large\b",
        "Request exceeds the maximum size",
        "Anthropic, 413",
    ),
    # No answer, and answers of somebody else
    Seen(
        ConnectionFailed,
        r"\bupstream connect error\b|\bconnection (?:error|reset|refused|timed out)\b|"
        r"\bpeer closed connection\b|\bfetch failed\b",
        "upstream connect error or disconnect/reset before headers. reset reason: connection "
        "termination",
        "Envoy, 503",
    ),
    Seen(ProtocolError, r"^(?:404 page )?not found$", "404 page not found", "Go servers, 404"),
)
