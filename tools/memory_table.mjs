#!/usr/bin/env node
// Measures docs/results/data/memory.json: what activations take by our count and in ONNX Runtime.
//
//   node tools/memory_table.mjs build/release/bin/parsimony MODELS > docs/results/data/memory.json
//   node tools/results.mjs

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { asData, measured } from './tables/measured.mjs';

const FILES = ['resnet20_cifar10', 'ultraface_RFB-320', 'yolox_nano', 'nanodet_m_320', 'candy', 'mnist-8'];

const [command, models] = process.argv.slice(2);
if (!models) {
  console.error('usage: memory_table.mjs PARSIMONY FOLDER');
  process.exit(2);
}
const folder = mkdtempSync(join(tmpdir(), 'parsimony-memory-'));
const kilobytes = (bytes) => (bytes / 1000).toLocaleString('en', { maximumFractionDigits: 1 });
const ratio = (a, b) => (a / b).toFixed(2);

try {
  const table = {
    title: 'Activations',
    ...measured(),
    command: [
      'parsimony inspect FILE --json                    # peak_memory, arena',
      'parsimony bench FILE --engine onnxruntime --threads 1 --json bench.json    # peak_bytes',
      'parsimony prune FILE -o small.onnx --budget peak_ram=60%',
    ],
    about:
      'Kilobytes for one sample: what is alive at once (`peak_ram`), memory in which every tensor has its place, ' +
      "planned as TensorFlow Lite Micro does, and the most that ONNX Runtime's arena held, which is without the " +
      'inputs and with what its kernels need besides: layouts in blocks of channels, and the windows of convolutions. ' +
      'The last columns are of the network whose `peak_ram` was cut to 60 %, as shares of the same before. An arena ' +
      'follows the count. On a desktop scratch memory can weigh more: where a width is no multiple of 8, ONNX Runtime ' +
      'leaves the layout in blocks and writes out the windows of every convolution. `yolox_nano` cannot be cut that far: ' +
      'its inputs are part of the peak.',
    columns: ['file', 'peak', 'arena', 'ONNX Runtime', 'over the peak', 'peak after', 'arena after', 'ONNX Runtime after'],
    rows: FILES.map(row),
  };
  console.log(asData({ title: 'Memory', tables: [table] }));
} finally {
  rmSync(folder, { recursive: true });
}

function row(file) {
  const model = join(models, `${file}.onnx`);
  const small = join(folder, 'small.onnx');
  run(['prune', model, '-o', small, '--budget', 'peak_ram=60%', '--no-verify', '-q']);
  const before = memory(model);
  const after = memory(small);
  const share = (of) => `${Math.round((100 * after[of]) / before[of])} %`;
  return [
    `\`${file}\``,
    kilobytes(before.peak),
    kilobytes(before.arena),
    kilobytes(before.engine),
    ratio(before.engine, before.peak),
    ...['peak', 'arena', 'engine'].map(share),
  ];
}

function memory(model) {
  const totals = JSON.parse(run(['inspect', model, '--json'])).totals;
  const bench = join(folder, 'bench.json');
  const options = ['--engine', 'onnxruntime', '--threads', '1', '--runs', '2', '--warm-up', '0'];
  run(['bench', model, ...options, '--json', bench]);
  const engine = JSON.parse(readFileSync(bench, 'utf8')).rows[0].peak_bytes;
  return { peak: totals.peak_memory, arena: totals.arena, engine };
}

function run(options) {
  return execFileSync(command, options, { encoding: 'utf8' });
}
