#!/usr/bin/env node
// What tools/gpu_check.sh measures: seconds of an epoch on a CUDA device, by phases.
//
//   node tools/gpu_check.mjs PARSIMONY > docs/results/data/gpu.json

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { asData, measured } from './tables/measured.mjs';

const [parsimony] = process.argv.slice(2);
if (!parsimony) {
  console.error('usage: gpu_check.mjs PARSIMONY');
  process.exit(2);
}

const TRAIN = ['train', '--model', 'cnn', '--data', 'shapes:8192,512', '--epochs', '4', '--batch', '256'];
const PHASES = ['wait', 'forward', 'backward', 'optimizer', 'rest'];
const folder = mkdtempSync(join(tmpdir(), 'parsimony-gpu-'));

/** Seconds by phase, over all epochs; a reason in their place where it could not be run. */
function phases(precision, format) {
  const report = join(folder, 'report.json');
  const options = ['--device', 'cuda:0', '--precision', precision, '--memory-format', format];
  try {
    execFileSync(parsimony, [...TRAIN, ...options, '--report', report], { stdio: 'pipe' });
  } catch (error) {
    return [`not run: ${String(error.stderr).trim().split('\n').at(-1)}`];
  }
  const { seconds, accuracy } = JSON.parse(readFileSync(report, 'utf8'));
  return [
    ...PHASES.map((phase) => seconds.train[phase].toFixed(3)),
    `${((100 * accuracy.after.correct) / accuracy.after.total).toFixed(1)} %`,
  ];
}

const rows = [];
for (const precision of ['fp32', 'bf16', 'fp16']) {
  for (const format of ['contiguous', 'channels_last']) {
    rows.push([precision, format, ...phases(precision, format)]);
  }
}
rmSync(folder, { recursive: true });
const device = execFileSync('nvidia-smi', ['--query-gpu=name', '--format=csv,noheader']).toString().trim();
process.stdout.write(
  asData({
    title: 'Training on a CUDA device',
    about: 'The small CNN on 8,192 drawn images, four epochs; seconds in each phase. Accuracy on 512 others.',
    tables: [
      {
        title: device,
        ...measured(),
        command: [`parsimony ${TRAIN.join(' ')} --device cuda:0 --precision P --memory-format F`],
        columns: ['precision', 'memory format', ...PHASES, 'accuracy'],
        rows,
      },
    ],
  }),
);
