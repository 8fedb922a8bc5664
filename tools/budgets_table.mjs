#!/usr/bin/env node
// Measures docs/results/data/budgets.json: how close to half of the parameters or MACs a budget gets.
//
//   node tools/budgets_table.mjs build/release/bin/parsimony MODELS > docs/results/data/budgets.json
//   node tools/results.mjs

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { asData, measured } from './tables/measured.mjs';

const FILES = ['resnet20_cifar10', 'resnet56_cifar10', 'yolox_nano'];
const SCOPES = ['local', 'global', 'isomorphic'];

const [command, models] = process.argv.slice(2);
if (!models) {
  console.error('usage: budgets_table.mjs PARSIMONY FOLDER');
  process.exit(2);
}
const folder = mkdtempSync(join(tmpdir(), 'parsimony-budgets-'));
const count = (n) => n.toLocaleString('en');

try {
  const rows = FILES.flatMap((file) => ['macs', 'params'].map((budget) => row(file, budget)));
  const table = {
    title: 'Half of the parameters or MACs',
    ...measured(),
    command: ['parsimony prune FILE.onnx -o small.onnx --budget macs=50% --scope SCOPE --no-verify    # and params=50%'],
    about: 'L1 norms. What is left of the whole network, against what is allowed.',
    columns: ['file', 'half of', 'allowed', ...SCOPES],
    rows,
  };
  console.log(asData({ title: 'Budgets', tables: [table] }));
} finally {
  rmSync(folder, { recursive: true });
}

function row(file, budget) {
  const left = SCOPES.map((scope) => prune(file, budget, scope));
  const allowed = Math.floor(left[0].before / 2);
  return [`\`${file}\``, budget, count(allowed), ...left.map(({ after }) => count(after))];
}

function prune(file, budget, scope) {
  const report = join(folder, 'report.json');
  const outputs = ['-o', join(folder, 'small.onnx'), '--report', report, '-q', '--no-verify'];
  const options = ['--budget', `${budget}=50%`, '--scope', scope, ...outputs];
  execFileSync(command, ['prune', join(models, `${file}.onnx`), ...options]);
  return JSON.parse(readFileSync(report, 'utf8'))[budget];
}
