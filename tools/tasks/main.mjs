#!/usr/bin/env node
// Measures docs/results/data/networks.json: ten trained networks for ten tasks, pruned and recovered
// without labels: how far their outputs are from the dense network's on data that recovery never saw,
// and what that means for the task.
//
//   node tools/tasks/main.mjs [--networks A,B] [--left 70,50] [--minutes M] [--folder DIR]
//     [--pictures DIR] PARSIMONY SHARED > docs/results/data/networks.json
//   node tools/results.mjs
//
// SHARED has models/onnx and data; tasks.py says what else is needed. What is measured once stays in
// the folder and is not measured again.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { Model } from '../ort/model.mjs';
import { asData, measured } from '../tables/measured.mjs';
import { runSamples } from './run.mjs';

const ALL = 'yolox_nano,nanodet,ultraface,candy,espcn,SINet,DTLN_model_1,gtcrn,silero,Magika';
const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    networks: { type: 'string', default: ALL },
    left: { type: 'string', default: '70,50' },
    minutes: { type: 'string', default: '10' },
    folder: { type: 'string' },
    pictures: { type: 'string' },
  },
});
const [command, shared] = positionals;
if (!shared) {
  console.error(
    'usage: main.mjs [--networks A,B] [--left 70,50] [--minutes M] [--folder DIR] [--pictures DIR] PARSIMONY SHARED',
  );
  process.exit(2);
}

const PYTHON = '/usr/bin/python3';
const SCRIPT = join(dirname(fileURLToPath(import.meta.url)), 'tasks.py');
const CRITERION = ['--criterion', 'fisher', '--scope', 'global'];
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
  const network = prepared(name);
  for (const left of LEFT) entries.push(await entry(network, left));
  if (options.pictures && network.shown) await draw(network);
}
console.log(asData(data(entries)));

/** Runs tasks.py; its answer. */
function tasks(...args) {
  return execFileSync(PYTHON, [SCRIPT, ...args], { encoding: 'utf8', maxBuffer: 1 << 26 });
}

/** What is done once stays in a file. */
function once(path, make) {
  if (!existsSync(path)) writeFileSync(path, JSON.stringify(make()));
  return JSON.parse(readFileSync(path, 'utf8'));
}

function prepared(name) {
  const folder = join(root, name);
  mkdirSync(folder, { recursive: true });
  const at = (file) => join(folder, file);
  const about = once(at('about.json'), () => JSON.parse(tasks('prepare', name, shared, folder)));
  const file = join(shared, 'models/onnx', `${about.file}.onnx`);
  if (!about.opened) return { ...about, name, at, model: file };
  const opened = Model.read(file);
  opened.openImageSizes();
  writeFileSync(at('opened.onnx'), opened.encode());
  return { ...about, name, at, model: at('opened.onnx') };
}

async function outputs(network, model, part) {
  const path = network.at(`${model}.${part}.safetensors`);
  const file = model === 'dense' ? network.model : network.at(`${model}.onnx`);
  if (!existsSync(path)) await runSamples(file, network.at(`${part}.safetensors`), path, network);
  return path;
}

/** One network with so many per cent of its MACs left, recovered in each way. */
async function entry(network, left) {
  const path = network.at(`${left}.json`);
  if (existsSync(path)) return JSON.parse(readFileSync(path, 'utf8'));
  const result = { name: network.name, left, measure: network.measure, steps: {}, ...measured() };
  const dense = await outputs(network, 'dense', 'test');
  for (const [step, choice] of Object.entries(STEPS)) {
    const model = `${left} ${step}`;
    const report = network.at(`${model}.json`);
    const start = Date.now();
    if (choice) {
      prune(network, left, choice, network.at(`${model}.onnx`), report);
    } else {
      match(network, network.at(`${left} least squares.onnx`), network.at(`${model}.onnx`));
    }
    const minutes = (Date.now() - start) / 60000;
    const small = await outputs(network, model, 'test');
    if (choice) result.macs = JSON.parse(readFileSync(report, 'utf8')).macs;
    result.steps[step] = { ...JSON.parse(tasks('value', network.name, shared, dense, small)), minutes };
    console.error(network.name, left, step, JSON.stringify(result.steps[step]));
  }
  writeFileSync(path, JSON.stringify(result));
  return result;
}

function prune(network, left, choice, output, report) {
  const args = ['prune', network.model, '-o', output, '--budget', `macs=${left}%`, '--report', report];
  run(network, [...args, ...choice], network.samples);
}

function match(network, model, output) {
  const args = ['finetune', model, '-o', output, '--teacher', network.model, '--loss', 'outputs'];
  run(network, [...args, '--minutes', options.minutes, '--epochs', '200'], network.all);
}

/** @param samples so many of those to calibrate with */
function run({ states, fixed, at }, args, samples) {
  const data = ['--calibration', `safetensors:${at('calibration.safetensors')}`, '--samples', String(samples)];
  if (Object.keys(states).length > 0) data.push('--states', 'auto');
  for (const [name, value] of Object.entries(fixed)) data.push('--input', `${name}=${value}`);
  execFileSync(command, [...args, ...data], { stdio: ['ignore', 'ignore', 'inherit'] });
}

/** The dense network's answer, then what each step with the most MACs left gives. */
async function draw(network) {
  const models = ['dense', ...Object.keys(STEPS).map((step) => `${LEFT[0]} ${step}`)];
  const answers = [];
  for (const model of models) answers.push(await outputs(network, model, 'shown'));
  tasks('draw', network.name, join(options.pictures, `${network.name}.jpg`), ...answers);
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
  const asked = `--minutes ${options.minutes} --left ${LEFT.join(',')}${chosen}`;
  return {
    title: `${left} % of the multiply-adds`,
    about:
      "Plain: `prune` without options but the budget. The others choose channels by the criterion `fisher`, ranked over " +
      'the whole network. In parentheses: times smaller than after the plain cut. `outputs` is least squares and then ' +
      `at most ${options.minutes} minutes of matching the dense network's outputs, on this machine.`,
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
