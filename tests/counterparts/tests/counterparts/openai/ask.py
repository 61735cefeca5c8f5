"""Asks a service with OpenAI's own client, and prints what it saw as JSON. The first argument is the base URL."""

import json
import sys
import time

import openai

client = openai.OpenAI(base_url=sys.argv[1], api_key="key-of-ada", max_retries=3)
message = [{"role": "user", "content": "Hello"}]
seen = {}


def ask(tokens, **more):
    return {"model": "small", "messages": message, "max_tokens": tokens, **more}


raw = client.chat.completions.with_raw_response.create(**ask(400))
fields = {name: value for name, value in raw.headers.items() if name.startswith("x-ratelimit-")}
seen["fields"] = fields
seen["total_tokens"] = raw.parse().usage.total_tokens

stream = client.chat.completions.create(**ask(400, stream=True, stream_options={"include_usage": True}))
chunks = list(stream)
seen["text"] = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
seen["streamed_tokens"] = chunks[-1].usage.total_tokens

# It has to wait until enough has come back, and does so by itself.
client.chat.completions.create(**ask(900, user="uses everything"))
started = time.monotonic()
client.chat.completions.create(**ask(400))
seen["waited"] = time.monotonic() - started

try:
    client.with_options(max_retries=0).chat.completions.create(**ask(900))
except openai.RateLimitError as error:
    seen["refused"] = {"type": error.type, "code": error.code, "status": error.status_code}
try:
    client.chat.completions.create(**ask(5_000))
except openai.APIStatusError as error:
    seen["never"] = {"type": error.type, "code": error.code, "status": error.status_code}

print(json.dumps(seen))
