#!/usr/bin/env node
// Writes docs/results/models.md: every real model pruned at 50 %, what the oracle found, and what stayed
// whole and why.
//
//   node tools/models_table.mjs build/release/bin/parsimony ../shared/models/onnx > docs/results/models.md

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import {
  digits,
  left,
  milliseconds,
  prunedGroups,
  reasonsOf,
  secondsBetween,
  tableRow,
} from './tables/cells.mjs';

const [command, models] = process.argv.slice(2);
if (!models) {
  console.error('usage: models_table.mjs PARSIMONY FOLDER');
  process.exit(2);
}
const tools = dirname(fileURLToPath(import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'parsimony-models-'));

try {
  const runs = readdirSync(models)
    .filter((name) => name.endsWith('.onnx'))
    .sort()
    .map((name) => prune(name));
  const verdicts = compare(runs);
  console.log(page(runs, verdicts));
} finally {
  rmSync(folder, { recursive: true });
}

function prune(name) {
  const at = (suffix) => join(folder, name.replace(/onnx$/, suffix));
  const run = { name, original: join(models, name), small: at('small.onnx'), plan: at('plan.json') };
  const report = at('report.json');
  const options = ['--criterion', 'l1', '--ratio', '0.5', '--plan', run.plan, '--report', report];
  execFileSync(command, ['prune', run.original, '-o', run.small, '--timings', '-q', '--no-verify', ...options]);
  return { ...run, report: JSON.parse(readFileSync(report, 'utf8')) };
}

function compare(runs) {
  const list = join(folder, 'list.tsv');
  writeFileSync(list, runs.map((r) => `${r.original}\t${r.small}\t${r.plan}\n`).join(''));
  const specs = join(tools, '..', 'tests', 'models', 'inputs.txt');
  const script = join(tools, 'ort_compare.mjs');
  const args = [script, '--batch', list, '--specs', specs, '--json'];
  let lines;
  try {
    lines = execFileSync(process.execPath, args, { encoding: 'utf8', maxBuffer: 1 << 28 });
  } catch (error) {
    lines = error.stdout; // a mismatch exits with 1, and belongs into the table
  }
  const rows = lines.trim().split('\n').filter((line) => line.startsWith('{'));
  return new Map(rows.map((line) => JSON.parse(line)).map((row) => [basename(row.original), row]));
}

function page(runs, verdicts) {
  const rows = runs.map((run) => row(run, verdicts.get(run.name)));
  return `# Real models

Each file pruned at 50 % of every group's channels, L1, no fine-tuning, then compared in ONNX Runtime with the
original whose removed slices are zero. "Difference" is the largest relative difference over all outputs and
probes; "limit" is 1e-4 (float16: 1e-2), or four times what ONNX Runtime's own two optimisation levels differ by
on the original where that is more. "Between read and write" is the sum of all stages there, on two cores.

    node tools/models_table.mjs build/release/bin/parsimony ../shared/models/onnx > docs/results/models.md

| file | parameters | left | MACs left | groups | oracle | difference | limit | between read and write |
|---|---|---|---|---|---|---|---|---|
${rows.join('\n')}

## Kept whole, and why

Dimensions of matrices and kernels that did not shrink. Every first layer's input channels are the graph's input,
every last layer's output channels its output; these are not listed again where they are the only ones.

${runs.map(reasons).join('\n')}`;
}

function row({ name, report }, verdict) {
  return tableRow([
    `\`${name.replace('.onnx', '')}\``,
    report.params.before.toLocaleString('en'),
    left(report.params),
    left(report.macs),
    prunedGroups(report).length,
    verdict.verdict,
    digits(verdict.difference),
    digits(verdict.tolerance),
    milliseconds(secondsBetween(report)),
  ]);
}

function reasons({ name, report }) {
  const lines = [...reasonsOf(report)].map(([reason, axes]) => {
    const shown = axes.slice(0, 3).map((axis) => `\`${axis}\``).join(', ');
    return `  - ${reason}: ${shown}${axes.length > 3 ? ` and ${axes.length - 3} more` : ''}`;
  });
  return `- **${name.replace('.onnx', '')}**\n${lines.join('\n')}`;
}
