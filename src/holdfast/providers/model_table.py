"""What the vendors said of their models: limits in tokens, prices in dollars, facts of caching.

As of AS_OF, and for estimates: vendors change prices and retire models, so pass your own where
money depends on it (`open_provider(..., prices=, context_limit=)`). Taken from some of Anthropic's
model pages and otherwise from two public tables (LiteLLM 1.108 and genai-prices 0.2); a few limits
of models that were retired rest on neither. "-" is "not found".

context   what prompt and answer may have together; Google limits the prompt alone, and so does
          the column `prompt` where a vendor says both
output    the longest answer
family    the vocabulary that counts its tokens (holdfast.providers.tokens)
images    the rule by which a picture is counted (holdfast.providers.images)
prices    of a million tokens: input, output, read from cache, written to cache. They are those of
          an ordinary call: no batch, no priority, a prompt below the length (100,000 tokens for
          claude-haiku-5-5, 200,000 for gemini-*-pro, 272,000 for gpt-5.4 and later) from which
          some models cost more, a cache that is kept for the shortest time there is. Those of
          gemini-3.6-flash to 3.8-flash are said to hold until the end of 2026
cache     the shortest prompt that is cached

A snapshot (`claude-sonnet-4-5-20250929`) has no row of its own unless it differs.
"""

from datetime import date

AS_OF = date(2026, 11, 16)

# How long a cached prompt is kept after its last use, at least: Anthropic says 5 minutes, OpenAI
# 5 to 10 minutes; Google does not say it of the cache that works by itself.
CACHE_TTL_S = {"anthropic": 300, "openai": 300, "azure": 300}

ROWS = """
anthropic
# name                       context  prompt   output   family      images    in     out    read    write   cache
claude-3-haiku               200000   -        4096     claude-3    grid      0.25   1.25   0.03    0.30    2048
claude-3-sonnet              200000   -        4096     claude-3    grid      3      15     -       -       -
claude-3-opus                200000   -        4096     claude-3    grid      15     75     1.50    18.75   1024
claude-3-5-haiku             200000   -        8192     claude-3    grid      0.80   4      0.08    1       2048
claude-3-5-sonnet            200000   -        8192     claude-3    grid      3      15     0.30    3.75    1024
claude-3-7-sonnet            200000   -        64000    claude-3    grid      3      15     0.30    3.75    1024
claude-sonnet-4              200000   -        64000    claude-3    grid      3      15     0.30    3.75    1024
claude-sonnet-4-5            200000   -        64000    claude-3    grid      3      15     0.30    3.75    1024
claude-sonnet-4-6            1000000  -        128000   claude-3    grid      3      15     0.30    3.75    1024
claude-sonnet-5              1000000  -        128000   claude-4.7  grid-hi   2      10     0.20    2.50    1024
claude-sonnet-5-5            1000000  -        128000   claude-4.7  grid-hi   2      10     0.10    2.50    512
claude-opus-4                200000   -        32000    claude-3    grid      15     75     1.50    18.75   1024
claude-opus-4-1              200000   -        32000    claude-3    grid      15     75     1.50    18.75   1024
claude-opus-4-5              200000   -        64000    claude-3    grid      5      25     0.50    6.25    4096
claude-opus-4-6              1000000  -        128000   claude-3    grid      5      25     0.50    6.25    4096
claude-opus-4-7              1000000  -        128000   claude-4.7  grid-hi   5      25     0.50    6.25    2048
claude-opus-4-8              1000000  -        128000   claude-4.7  grid-hi   5      25     0.50    6.25    1024
claude-opus-5                1000000  -        128000   claude-4.7  grid-hi   5      25     0.50    6.25    512
claude-opus-5-5              1000000  -        128000   claude-4.7  grid-hi   4      20     0.20    5       512
claude-haiku-4-5             200000   -        64000    claude-3    grid      1      5      0.10    1.25    4096
claude-haiku-5-5             1000000  -        128000   claude-4.7  grid-hi   0.10   0.50   0.01    0.125   512
claude-fable-5               1000000  -        128000   claude-4.7  grid-hi   10     50     1       12.50   512
claude-fable-5-1             1000000  -        128000   claude-4.7  grid-hi   10     50     0.25    12.50   512

openai
# name                       context  prompt   output   family      images    in     out    read    write   cache
gpt-3.5-turbo                16385    -        4096     cl100k      none      0.50   1.50   -       -       -
gpt-3.5-turbo-0613           4096     -        4096     cl100k      none      1.50   2      -       -       -
gpt-35-turbo                 16385    -        4096     cl100k      none      0.50   1.50   -       -       -
gpt-4                        8192     -        8192     cl100k      none      30     60     -       -       -
gpt-4-32k                    32768    -        32768    cl100k      none      60     120    -       -       -
gpt-4-turbo                  128000   -        4096     cl100k      tiles     10     30     -       -       -
gpt-4-vision                 128000   -        4096     cl100k      tiles     10     30     -       -       -
gpt-4o                       128000   -        16384    o200k       tiles     2.50   10     1.25    -       1024
gpt-4o-2024-05-13            128000   -        4096     o200k       tiles     5      15     -       -       -
gpt-4o-audio                 128000   -        16384    o200k       none      2.50   10     -       -       -
gpt-4o-mini                  128000   -        16384    o200k       tiles-4om 0.15   0.60   0.075   -       1024
gpt-4.1                      1047576  -        32768    o200k       tiles     2      8      0.50    -       1024
gpt-4.1-mini                 1047576  -        32768    o200k       patch-1.62 0.40  1.60   0.10    -       1024
gpt-4.1-nano                 1047576  -        32768    o200k       patch-2.46 0.10  0.40   0.025   -       1024
o1                           200000   -        100000   o200k       tiles-o1  15     60     7.50    -       1024
o1-mini                      128000   -        65536    o200k       none      1.10   4.40   0.55    -       1024
o1-pro                       200000   -        100000   o200k       tiles-o1  150    600    -       -       -
o3                           200000   -        100000   o200k       tiles-o1  2      8      0.50    -       1024
o3-mini                      200000   -        100000   o200k       none      1.10   4.40   0.55    -       1024
o3-pro                       200000   -        100000   o200k       tiles-o1  20     80     -       -       -
o4-mini                      200000   -        100000   o200k       patch-1.72 1.10  4.40   0.275   -       1024
gpt-5                        400000   272000   128000   o200k       tiles-5   1.25   10     0.125   -       1024
gpt-5-chat                   128000   -        16384    o200k       tiles-5   1.25   10     0.125   -       1024
gpt-5-codex                  400000   272000   128000   o200k       tiles-5   1.25   10     0.125   -       1024
gpt-5-mini                   400000   272000   128000   o200k       patch-1.62 0.25  2      0.025   -       1024
gpt-5-nano                   400000   272000   128000   o200k       patch-2.46 0.05  0.40   0.005   -       1024
gpt-5-pro                    400000   -        272000   o200k       tiles-5   15     120    -       -       -
gpt-5.1                      400000   272000   128000   o200k       tiles-5   1.25   10     0.125   -       1024
gpt-5.1-codex                400000   272000   128000   o200k       tiles-5   1.25   10     0.125   -       1024
gpt-5.1-codex-mini           400000   272000   128000   o200k       patch-1.62 0.25  2      0.025   -       1024
gpt-5.1-codex-max            400000   272000   128000   o200k       tiles-5   1.25   10     0.125   -       1024
gpt-5.2                      400000   272000   128000   o200k       tiles-5   1.75   14     0.175   -       1024
gpt-5.2-codex                400000   272000   128000   o200k       tiles-5   1.75   14     0.175   -       1024
gpt-5.2-pro                  400000   272000   128000   o200k       tiles-5   21     168    -       -       -
gpt-5.3-codex                400000   272000   128000   o200k       tiles-5   1.75   14     0.175   -       1024
gpt-5.4                      1050000  922000   128000   o200k       patch-1   2.50   15     0.25    -       1024
gpt-5.4-mini                 400000   272000   128000   o200k       patch-1.62 0.75  4.50   0.075   -       1024
gpt-5.4-nano                 400000   272000   128000   o200k       patch-1.2  0.20  1.25   0.02    -       1024
gpt-5.4-pro                  1050000  922000   128000   o200k       patch-1   30     180    -       -       -
gpt-5.5                      1050000  922000   128000   o200k       patch-1   5      30     0.50    -       1024
gpt-5.5-pro                  1050000  922000   128000   o200k       patch-1   30     180    -       -       -
gpt-5.6                      1050000  922000   128000   o200k       patch-1   4      20     0.40    5       1024
gpt-5.6-sol                  1050000  922000   128000   o200k       patch-1   4      20     0.40    5       1024
gpt-5.6-terra                1050000  922000   128000   o200k       patch-1   2      12     0.20    2.50    1024
gpt-5.6-luna                 1050000  922000   128000   o200k       patch-1   0.20   1.20   0.02    0.25    1024
gpt-6-astra                  1050000  922000   128000   o200k       patch-1   10     50     1       12.50   1024
gpt-6-sol                    1050000  922000   128000   o200k       patch-1   2      10     0.20    2.50    1024
gpt-6-luna                   1050000  922000   128000   o200k       patch-1   0.10   0.50   0.01    0.125   1024
gpt-6.1-sol                  1050000  922000   128000   o200k       patch-1   2      10     0.10    2.50    1024

azure
# name                       context  prompt   output   family      images    in     out    read    write   cache
grok-4-1-fast-non-reasoning  128000   -        128000   other       other     -      -      -       -       -

google
# name                       context  prompt   output   family      images    in     out    read    write   cache
gemini-1.0-pro               32760    -        8192     gemini      none      -      -      -       -       -
gemini-1.5-flash             1048576  -        8192     gemini      gemini-1  0.075  0.30   0.01875 -       -
gemini-1.5-pro               2097152  -        8192     gemini      gemini-1  1.25   5      -       -       -
gemini-2.0-flash             1048576  -        8192     gemini      gemini-2  0.10   0.40   0.025   -       -
gemini-2.0-flash-lite        1048576  -        8192     gemini      gemini-2  0.075  0.30   -       -       -
gemini-2.5-flash             1048576  -        65536    gemini      gemini-2  0.30   2.50   0.03    -       -
gemini-2.5-flash-lite        1048576  -        65536    gemini      gemini-2  0.10   0.40   0.01    -       -
gemini-2.5-flash-preview-tts 8192     -        16384    gemini      none      0.50   10     -       -       -
gemini-2.5-pro               1048576  -        65536    gemini      gemini-2  1.25   10     0.125   -       -
gemini-3-flash               1048576  -        65536    gemini      gemini-3  0.50   3      0.05    -       -
gemini-3-pro                 1048576  -        65536    gemini      gemini-3  2      12     0.20    -       -
gemini-3.1-flash-lite        1048576  -        65536    gemini      gemini-3  0.25   1.50   0.025   -       -
gemini-3.1-pro               1048576  -        65536    gemini      gemini-3  2      12     0.20    -       -
gemini-3.5-flash             1048576  -        65536    gemini      gemini-3  1.50   9      0.15    -       -
gemini-3.5-flash-lite        1048576  -        65536    gemini      gemini-3  0.30   2.50   0.03    -       -
gemini-3.6-flash             1048576  -        65536    gemini      gemini-3  0.75   3.75   0.075   -       -
gemini-3.7-flash             1048576  -        65536    gemini      gemini-3  0.75   3.75   0.075   -       -
gemini-3.8-flash             1048576  -        65536    gemini      gemini-3  0.75   3.75   0.075   -       -
"""  # noqa: E501 - a table is read across
