#!/usr/bin/env node
// Measures docs/results/data/networks.json: ten trained networks for ten tasks, pruned and recovered
// without labels: how far their outputs are from the dense network's on data that recovery never saw,
// and what that means for the task.
//
//   node tools/tasks/main.mjs [--networks A,B] [--left 70,50] [--scope local|global] [--minutes M]
//     [--folder DIR] [--pictures DIR] PARSIMONY SHARED > docs/results/data/networks.json
//   node tools/results.mjs
//
// SHARED has models/onnx and data; tasks.py says what else is needed. What is measured once stays in
// the folder and is not measured again.

import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { asData, measured } from '../tables/measured.mjs';
import { ALL, Task } from './task.mjs';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    networks: { type: 'string', default: ALL },
    left: { type: 'string', default: '70,50' },
    scope: { type: 'string', default: 'local' },
    minutes: { type: 'string', default: '10' },
    folder: { type: 'string' },
    pictures: { type: 'string' },
  },
});
const [command, shared] = positionals;
if (!shared) {
  console.error(
    'usage: main.mjs [--networks A,B] [--left 70,50] [--scope local|global] [--minutes M] [--folder DIR] ' +
      '[--pictures DIR] PARSIMONY SHARED',
  );
  process.exit(2);
}

const CRITERION = ['--criterion', 'fisher', '--scope', options.scope];
const STEPS = {
  'plain cut': [],
  cut: CRITERION,
  'least squares': [...CRITERION, '--recover', 'least-squares'],
  outputs: null,
};
const NETWORKS = options.networks.split(',');
const LEFT = options.left.split(',');

const root = options.folder ?? mkdtempSync(join(tmpdir(), 'parsimony-tasks-'));
const entries = [];
for (const name of NETWORKS) {
  const task = new Task(name, shared, root);
  for (const left of LEFT) entries.push(await entry(task, left));
  if (options.pictures && task.shown) {
    const models = ['dense', ...Object.keys(STEPS).map((step) => modelName(LEFT[0], step))];
    await task.draw(join(options.pictures, `${name}.jpg`), models);
  }
}
console.log(asData(data(entries)));

function modelName(left, step) {
  return `${left} ${options.scope} ${step}`;
}

/** One network with so many per cent of its MACs left, recovered in each way. */
async function entry(task, left) {
  const path = task.at(`${left} ${options.scope}.json`);
  if (existsSync(path)) return JSON.parse(readFileSync(path, 'utf8'));
  const result = { name: task.name, left, measure: task.measure, steps: {}, ...measured() };
  for (const [step, choice] of Object.entries(STEPS)) {
    const model = modelName(left, step);
    const out = ['-o', task.at(`${model}.onnx`)];
    const start = Date.now();
    if (choice) {
      const report = task.at(`${model}.json`);
      const asked = ['--budget', `macs=${left}%`, '--report', report, ...choice];
      task.run(command, ['prune', task.model, ...out, ...asked], task.samples);
      result.macs = JSON.parse(readFileSync(report, 'utf8')).macs;
    } else if (Object.keys(task.states).length > 0) {
      // Of what is left of states only the plan of this run knows.
      const recovery = ['--recover', 'least-squares,outputs', '--recover-minutes', options.minutes, '--recover-epochs', '200'];
      task.run(command, ['prune', task.model, ...out, '--budget', `macs=${left}%`, ...CRITERION, ...recovery], task.samples);
    } else {
      const asked = ['--teacher', task.model, '--loss', 'outputs', '--minutes', options.minutes, '--epochs', '200'];
      task.run(command, ['finetune', task.at(`${modelName(left, 'least squares')}.onnx`), ...out, ...asked], task.all);
    }
    const minutes = (Date.now() - start) / 60000;
    result.steps[step] = { ...(await task.value(model)), minutes };
    console.error(task.name, left, step, JSON.stringify(result.steps[step]));
  }
  writeFileSync(path, JSON.stringify(result));
  return result;
}

function data(all) {
  return {
    title: 'Networks and their tasks',
    about:
      'Networks from the repositories of others, pruned and recovered without labels: from photographs ' +
      '(BSDS500), from speech that espeak-ng speaks (with noise), from files of the system. All numbers are of test ' +
      'data that recovery did not see: other photographs, other voices and sentences, other files. Output error is ' +
      '‖small − dense‖ / ‖dense‖; networks with states run over the whole test sound, each with its own states.',
    tables: LEFT.map((left) => table(left, all.filter((one) => one.left === left))),
  };
}

function table(left, rows) {
  const chosen = options.networks === ALL ? '' : ` --networks ${options.networks}`;
  const asked = `--scope ${options.scope} --minutes ${options.minutes} --left ${LEFT.join(',')}${chosen}`;
  return {
    title: `${left} % of the multiply-adds`,
    about:
      'Plain: `prune` without options but the budget. The others choose channels by the criterion `fisher`, ranked ' +
      `${options.scope === 'global' ? 'over the whole network' : 'within each group'}. In parentheses: times smaller ` +
      'than after the plain cut. `outputs` is least squares and then at most ' +
      `${options.minutes} minutes of matching the dense network's outputs, on ${availableParallelism()} of this ` +
      "machine's cores.",
    ...measured(),
    command: [`node tools/tasks/main.mjs ${asked} build/release/bin/parsimony SHARED`],
    columns: [
      'network', 'MACs left', 'output error: plain', '`fisher`', 'least squares', '`outputs`',
      'task', 'plain', '`fisher`', 'least squares', '`outputs`', 'minutes',
    ],
    rows: rows.map(row),
  };
}

function row({ name, macs, measure, steps, date, commit }) {
  const [plain, ...better] = Object.keys(STEPS).map((step) => steps[step]);
  const three = (value) => value.toPrecision(3);
  const times = ({ error }) => `${three(error)} (${(plain.error / error).toFixed(1)})`;
  const cells = [
    name, `${((100 * macs.after) / macs.before).toFixed(1)} %`, three(plain.error), ...better.map(times),
    measure, plain.value, ...better.map(({ value }) => value),
    better.map(({ minutes }) => minutes.toFixed(1)).join(', '),
  ];
  return { date, commit, cells };
}
