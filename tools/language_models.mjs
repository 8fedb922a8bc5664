#!/usr/bin/env node
// Measures docs/results/data/language_models.json: small language models trained on a text, pruned to
// 70 % of their multiply-adds in several ways, recovered without training, then trained for an epoch.
//
//   node tools/language_models.mjs [--models A,B] [--seeds 0,1] [--epochs N] build/release/bin/parsimony
//     TEXT > docs/results/data/language_models.json
//   node tools/results.mjs

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';

import { asData, measured } from './tables/measured.mjs';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    models: { type: 'string', default: 'gpt_tiny,llama_tiny' },
    seeds: { type: 'string', default: '0,1,2' },
    epochs: { type: 'string', default: '4' },
  },
});
const [command, text] = positionals;
if (!text) {
  console.error('usage: language_models.mjs [--models A,B] [--seeds 0,1] [--epochs N] PARSIMONY TEXT');
  process.exit(2);
}

const MODELS = options.models.split(',');
const SEEDS = options.seeds.split(',');
const CUTS = [
  ['all widths', []],
  ['hidden units and heads', ['--granularity', 'head', '--exclude', 'tokens']],
];
const DATA = `text:${text}`;
const TRAIN = ['--epochs', options.epochs, '--batch', '32', '--optimizer', 'adamw', '--lr', '3e-3'];
const TUNE = ['--epochs', '1', '--batch', '32', '--optimizer', 'adamw', '--lr', '1e-3'];
const COSINE = ['--schedule', 'cosine'];
const three = (value) => value.toPrecision(3);
const PRUNE = ['--budget', 'macs=70%', '--input', '1x128'];

const folder = mkdtempSync(join(tmpdir(), 'parsimony-language-'));
try {
  const rows = MODELS.flatMap((model) => SEEDS.flatMap((seed) => row(model, seed)));
  console.log(asData(data(rows)));
} finally {
  rmSync(folder, { recursive: true });
}

function run(...args) {
  execFileSync(command, args, { stdio: ['ignore', 'ignore', 'inherit'] });
}

/** Trains, and says how surprised the network is by the text that it did not see. */
function perplexity(verb, ...args) {
  const report = join(folder, 'report.json');
  run(verb, ...args, '--data', DATA, '--report', report);
  return JSON.parse(readFileSync(report, 'utf8')).accuracy.after.perplexity;
}

function row(model, seed) {
  const at = (name) => join(folder, `${name}.pt`);
  const seeded = ['--seed', seed];
  const dense = perplexity('train', '--model', model, ...TRAIN, ...COSINE, ...seeded, '-o', at('dense'));
  const evaluated = (name) => perplexity('finetune', at(name), '-o', at('again'), '--epochs', '0');
  return CUTS.map(([cut, chosen]) => {
    const report = join(folder, 'prune.json');
    const prune = ['prune', at('dense'), ...PRUNE, ...chosen, '--report', report];
    run(...prune, '-o', at('cut'));
    const plain = evaluated('cut');
    const calibration = ['--calibration', DATA, '--samples', '512'];
    run(...prune, '-o', at('fitted'), '--recover', 'least-squares', ...calibration);
    const { macs } = JSON.parse(readFileSync(report, 'utf8'));
    const fitted = evaluated('fitted');
    const teacher = ['--teacher', at('dense'), '--distill', '0.5'];
    const tuned = perplexity(
      'finetune', at('fitted'), '-o', at('tuned'), ...TUNE, ...COSINE, ...seeded, ...teacher,
    );
    const ratio = (value) => `${three(value)} (${three(value / dense)})`;
    return [
      model, seed, cut, `${((100 * macs.after) / macs.before).toFixed(1)} %`,
      three(dense), ratio(plain), ratio(fitted), ratio(tuned),
    ];
  });
}

function data(rows) {
  const name = basename(text);
  const asked = `--models ${options.models} --seeds ${options.seeds} --epochs ${options.epochs}`;
  return {
    title: 'Language models',
    about:
      'What three tenths less cost a language model that predicts the next byte, and what comes back ' +
      'without training and with a single epoch. The text is the 1.1 MB of Shakespeare that is usual for such models; ' +
      'perplexity is of its last fifth, which neither training nor calibration saw.',
    tables: [
      {
        title: '70 % of the multiply-adds',
        about:
          `In parentheses: times the dense perplexity. Epochs of training: ${options.epochs}. Recovered from ` +
          '512 windows of 128 bytes, then trained for one epoch with the dense network as the teacher. ' +
          'After few epochs the dense network would improve with one more, too.',
        ...measured(),
        command: [`node tools/language_models.mjs ${asked} build/release/bin/parsimony ${name}`],
        columns: [
          'network', 'seed', 'what is pruned', 'MACs left', 'dense', 'cut', 'least squares', 'one epoch',
        ],
        rows,
      },
    ],
  };
}
