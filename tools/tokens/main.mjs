#!/usr/bin/env node
// Makes calibration data of a text for language models whose tokenizer is a tokenizer.json.
//
//   tools/tokens/install.sh      once
//   node tools/tokens/main.mjs [--length 128] [--ids input_ids] [--mask attention_mask] [--labels]
//     TOKENIZER.json TEXT -o TOKENS.safetensors
//   parsimony prune decoder.onnx -o small.onnx --ratio 0.3 --recover least-squares \
//     --calibration safetensors:TOKENS.safetensors
//
// Windows of so many tokens, one behind the other: int64 [windows, length], in an array of that name. With
// --labels the next token of each, for `--metric perplexity`.

import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { pathToFileURL } from 'node:url';

import { cacheFolder } from '../ort/runtime.mjs';
import { writeIntegers } from '../ort/safetensors.mjs';

const USAGE =
  'usage: main.mjs [--length N] [--ids NAME] [--mask NAME] [--labels] TOKENIZER.json TEXT -o TOKENS.safetensors';

function fail(text, code = 1) {
  console.error(`tokens: ${text}`);
  process.exit(code);
}

function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    return fail(`${path}: ${error.message}`);
  }
}

/** Of a tokenizer.json; its tokenizer_config.json may lie beside it. */
async function openTokenizer(path) {
  const folder = join(dirname(cacheFolder()), 'tokens');
  const module = join(folder, 'node_modules/@huggingface/tokenizers/dist/tokenizers.mjs');
  if (!existsSync(module)) fail(`the tokenizer's library is not in ${folder}: run tools/tokens/install.sh`);
  const { Tokenizer } = await import(pathToFileURL(module));
  const config = join(dirname(path), 'tokenizer_config.json');
  const known = readJson(path);
  try {
    return new Tokenizer(known, existsSync(config) ? readJson(config) : {});
  } catch (error) {
    return fail(`${path}: ${error.message}`);
  }
}

function parsed() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        length: { type: 'string', default: '128' },
        ids: { type: 'string', default: 'input_ids' },
        mask: { type: 'string' },
        labels: { type: 'boolean', default: false },
        output: { type: 'string', short: 'o' },
      },
    });
  } catch (error) {
    return fail(`${error.message}\n${USAGE}`, 2);
  }
}

const { values: options, positionals } = parsed();
const [tokenizer, text] = positionals;
const length = Number(options.length);
if (!text || !options.output || !Number.isInteger(length) || length < 1) fail(USAGE, 2);
if (!existsSync(text)) fail(`${text}: no such file`);
const encoded = (await openTokenizer(tokenizer)).encode(readFileSync(text, 'utf8'), { add_special_tokens: false });
const { ids, tokens } = encoded;
const unknown = ids.findIndex((id) => !Number.isInteger(id));
if (unknown >= 0) fail(`${text}: token ${unknown}, ${JSON.stringify(tokens[unknown])}, is not in ${tokenizer}`);
const windows = Math.floor((ids.length - (options.labels ? 1 : 0)) / length);
if (windows < 1) fail(`${text}: ${ids.length} tokens, wanted at least ${length + (options.labels ? 1 : 0)}`);
const shape = [windows, length];
const tensors = [{ name: options.ids, shape, data: ids.slice(0, windows * length) }];
if (options.mask) tensors.push({ name: options.mask, shape, data: new Array(windows * length).fill(1) });
if (options.labels) tensors.push({ name: 'labels', shape, data: ids.slice(1, windows * length + 1) });
writeIntegers(options.output, tensors);
console.log(`${options.output}: ${windows} windows of ${length} tokens`);
