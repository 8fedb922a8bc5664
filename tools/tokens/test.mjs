// The windows that main.mjs makes of a text, and its refusals. Needs what install.sh installs.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import test, { after } from 'node:test';
import { fileURLToPath } from 'node:url';

import { readTensors } from '../ort/safetensors.mjs';

const folder = mkdtempSync(join(tmpdir(), 'parsimony-tokens-'));
after(() => rmSync(folder, { recursive: true }));
const at = (name) => join(folder, name);

const WORDS = { to: 1, be: 2, or: 3, not: 4 };
writeFileSync(
  at('tokenizer.json'),
  JSON.stringify({
    version: '1.0',
    added_tokens: [],
    normalizer: { type: 'Lowercase' },
    pre_tokenizer: { type: 'Whitespace' },
    post_processor: null,
    decoder: null,
    model: { type: 'WordLevel', vocab: WORDS },
  }),
);
writeFileSync(at('text.txt'), 'To be or not to be to not');
writeFileSync(at('other.txt'), 'To be that');

function run(...args) {
  const main = join(dirname(fileURLToPath(import.meta.url)), 'main.mjs');
  return spawnSync('node', [main, ...args], { encoding: 'utf8', cwd: folder });
}

const integers = ({ bytes }) => Array.from(new BigInt64Array(Uint8Array.from(bytes).buffer), Number);

test('windows of tokens, with masks and the next tokens', () => {
  const args = ['--length', '3', '--mask', 'mask', '--labels', 'tokenizer.json', 'text.txt', '-o', 'out.safetensors'];
  const { status, stdout, stderr } = run(...args);
  assert.equal(status, 0, stderr);
  assert.equal(stdout, 'out.safetensors: 2 windows of 3 tokens\n');
  const tensors = readTensors(at('out.safetensors'));
  assert.deepEqual(tensors.map(({ name, type, shape }) => [name, type, shape]), [
    ['input_ids', 'int64', [2, 3]],
    ['mask', 'int64', [2, 3]],
    ['labels', 'int64', [2, 3]],
  ]);
  assert.deepEqual(tensors.map(integers), [
    [1, 2, 3, 4, 1, 2],
    [1, 1, 1, 1, 1, 1],
    [2, 3, 4, 1, 2, 1],
  ]);
});

test('refusals name the file', () => {
  const refusal = (...args) => run(...args, '-o', 'out.safetensors').stderr;
  assert.equal(
    refusal('--length', '99', 'tokenizer.json', 'text.txt'),
    'tokens: text.txt: 8 tokens, wanted at least 99\n',
  );
  assert.match(
    refusal('tokenizer.json', 'other.txt'),
    /^tokens: other.txt: token 2, "that", is not in tokenizer.json/,
  );
  assert.match(refusal('text.txt', 'text.txt'), /^tokens: text.txt: .*JSON/);
  assert.equal(refusal('tokenizer.json', 'none.txt'), 'tokens: none.txt: no such file\n');
  assert.equal(run().status, 2);
});
