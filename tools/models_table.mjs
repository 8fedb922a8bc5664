#!/usr/bin/env node
// Measures docs/results/data/models.json: every real model pruned at 50 %, compared in ONNX Runtime,
// and what was not pruned in it.
//
//   node tools/models_table.mjs build/release/bin/parsimony MODELS > docs/results/data/models.json
//   node tools/results.mjs

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { digits, left, prunedGroups, reasonsOf } from './tables/cells.mjs';
import { asData, measured } from './tables/measured.mjs';

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
  console.log(asData(data(runs, verdicts)));
} finally {
  rmSync(folder, { recursive: true });
}

function prune(name) {
  const at = (suffix) => join(folder, name.replace(/onnx$/, suffix));
  const run = { name, original: join(models, name), small: at('small.onnx'), plan: at('plan.json') };
  const report = at('report.json');
  const options = ['--criterion', 'l1', '--ratio', '0.5', '--plan', run.plan, '--report', report];
  execFileSync(command, ['prune', run.original, '-o', run.small, '-q', '--no-verify', ...options]);
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

function data(runs, verdicts) {
  const where = {
    ...measured(),
    command: ['node tools/models_table.mjs build/release/bin/parsimony MODELS > docs/results/data/models.json'],
  };
  return {
    title: 'Real models',
    about:
      'Trained ONNX files of other projects; 50 % of the channels of every group pruned by L1 norm, no fine-tuning.',
    tables: [
      {
        title: 'Pruned by half',
        about:
          'Compared in ONNX Runtime with the original whose removed slices are set to zero. Difference: the largest ' +
          'relative one over all outputs and inputs tried. Limit: 1e-4 (float16: 1e-2), or four times the difference ' +
          "between ONNX Runtime's own two optimisation levels on the original where that is more.",
        ...where,
        columns: 'file,parameters,left,MACs left,groups,result,difference,limit'.split(','),
        rows: runs.map((run) => row(run, verdicts.get(run.name))),
      },
      {
        title: 'Not pruned, and why',
        about:
          'Pinned dimensions of weights. Input channels of first layers and output channels of last ones are graph ' +
          'inputs and outputs.',
        ...where,
        columns: ['file', 'reason', 'dimensions'],
        rows: runs.flatMap(reasons),
      },
    ],
  };
}

function row({ name, report }, verdict) {
  return [
    `\`${name.replace('.onnx', '')}\``,
    report.params.before.toLocaleString('en'),
    left(report.params),
    left(report.macs),
    String(prunedGroups(report).length),
    verdict.verdict,
    digits(verdict.difference),
    digits(verdict.tolerance),
  ];
}

function reasons({ name, report }) {
  return [...reasonsOf(report)].map(([reason, axes]) => {
    const shown = axes.slice(0, 3).map((axis) => `\`${axis}\``).join(', ');
    const more = axes.length > 3 ? ` and ${axes.length - 3} more` : '';
    return [`\`${name.replace('.onnx', '')}\``, reason, shown + more];
  });
}
