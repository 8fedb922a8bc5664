#!/usr/bin/env node
// Measures docs/results/data/defaults.json: which criterion and scope leave the most of a network at
// 70 % of its MACs after least squares, for the ten networks of main.mjs.
//
//   node tools/tasks/defaults.mjs [--networks A,B] [--folder DIR] PARSIMONY SHARED
//     > docs/results/data/defaults.json
//   node tools/results.mjs
//
// About a minute for each network and choice. What is measured once stays in the folder, which may be
// that of main.mjs.

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { asData, measured } from '../tables/measured.mjs';
import { ALL, once, Task } from './task.mjs';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { networks: { type: 'string', default: ALL }, folder: { type: 'string' } },
});
const [command, shared] = positionals;
if (!shared) {
  console.error('usage: defaults.mjs [--networks A,B] [--folder DIR] PARSIMONY SHARED');
  process.exit(2);
}

const CHOICES = [
  ['l1', 'local'],
  ['l1', 'global'],
  ['group_norm', 'isomorphic'],
  ['fisher', 'local'],
  ['fisher', 'isomorphic'],
  ['fisher', 'global'],
];
const BUDGET = 'macs=70%';
const root = options.folder ?? mkdtempSync(join(tmpdir(), 'parsimony-defaults-'));
const networks = options.networks.split(',');
const rows = { error: [], value: [] };
for (const name of networks) {
  const task = new Task(name, shared, root);
  const found = [];
  for (const choice of CHOICES) found.push(await result(task, choice));
  const least = Math.min(...found.map(({ error }) => error));
  const three = ({ error }) => (error === least ? `**${error.toPrecision(3)}**` : error.toPrecision(3));
  rows.error.push([name, ...found.map(three)]);
  rows.value.push([name, task.measure, ...found.map(({ value }) => value)]);
}
console.log(asData(data()));

/** {error, value} after least squares. */
async function result(task, [criterion, scope]) {
  const model = `least squares ${criterion} ${scope}`;
  const asked = ['--budget', BUDGET, '--criterion', criterion, '--scope', scope, '--recover', 'least-squares'];
  once(task.at(`${model}.made.json`), () => {
    task.run(command, ['prune', task.model, '-o', task.at(`${model}.onnx`), ...asked], task.samples);
    return true;
  });
  const found = await task.value(model);
  console.error(task.name, criterion, scope, JSON.stringify(found));
  return found;
}

function data() {
  const chosen = options.networks === ALL ? '' : ` --networks ${options.networks}`;
  const common = {
    ...measured(),
    command: [`node tools/tasks/defaults.mjs${chosen} build/release/bin/parsimony SHARED`],
  };
  const heads = CHOICES.map(([criterion, scope]) => `\`${criterion}\`, ${scope}`);
  return {
    title: 'Criteria and scopes compared',
    about:
      'Networks of [networks and their tasks](networks.md) at 70 % of their MACs after least squares, on test ' +
      'data that neither the criterion nor the recovery saw.',
    tables: [
      {
        title: 'Output error',
        about: '‖small − dense‖ / ‖dense‖; the least of a network is bold.',
        ...common,
        columns: ['network', ...heads],
        rows: rows.error,
      },
      { title: 'The task', about: '', ...common, columns: ['network', 'task', ...heads], rows: rows.value },
    ],
  };
}
