#!/usr/bin/env python3
"""Makes calibration data of a text for language models whose tokenizer is a tokenizer.json.

    tools/tokens.py [--length 128] [--ids input_ids] [--mask attention_mask] [--labels]
      TOKENIZER.json TEXT -o TOKENS.safetensors
    parsimony prune decoder.onnx -o small.onnx --ratio 0.3 --recover least-squares \\
      --calibration safetensors:TOKENS.safetensors

Windows of so many tokens, one behind the other: int64 [windows, length], in an array of that name.
With --labels the next token of each, for `--metric perplexity`.
"""

import pathlib
import sys

import environment  # noqa: F401
import numpy
import tensors
from tables.runs import parser_of
from tokenizers import Tokenizer


def parsed():
    parser = parser_of(__doc__)
    parser.add_argument("tokenizer", metavar="TOKENIZER.json")
    parser.add_argument("text", metavar="TEXT")
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--ids", default="input_ids")
    parser.add_argument("--mask")
    parser.add_argument("--labels", action="store_true")
    parser.add_argument("-o", "--output", metavar="TOKENS.safetensors", required=True)
    asked = parser.parse_args()
    if asked.length < 1:
        parser.error(f"--length {asked.length}: expected a number above 0")
    return asked


def main():
    asked = parsed()
    length = asked.length
    ids = tokens_of(asked.tokenizer, asked.text)
    windows = (len(ids) - asked.labels) // length
    if windows < 1:
        raise SystemExit(f"tokens: {asked.text}: {len(ids)} tokens, expected at least {length + asked.labels}")
    shape = (windows, length)
    arrays = {asked.ids: ids[: windows * length].reshape(shape)}
    if asked.mask:
        arrays[asked.mask] = numpy.ones(shape, numpy.int64)
    if asked.labels:
        arrays["labels"] = ids[1 : windows * length + 1].reshape(shape)
    tensors.save(asked.output, arrays)
    print(f"{asked.output}: {windows} windows of {length} tokens")


def tokens_of(tokenizer_path, text_path):
    if not pathlib.Path(text_path).exists():
        raise SystemExit(f"tokens: {text_path}: no such file")
    try:
        tokenizer = Tokenizer.from_file(tokenizer_path)
    except Exception as error:  # the library's own class is this one
        raise SystemExit(f"tokens: {tokenizer_path}: {error}") from error
    text = pathlib.Path(text_path).read_text(encoding="utf-8")
    tokenizer.no_truncation()
    try:
        encoded = tokenizer.encode(text, add_special_tokens=False)
    except Exception as error:
        raise SystemExit(f"tokens: {text_path}: {error}") from error
    return numpy.array(encoded.ids, numpy.int64)


if __name__ == "__main__":
    sys.exit(main())
