// Runs the tools over the networks and writes docs/results/data/rivals.json; see ../rivals.sh.

import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { asData } from '../tables/measured.mjs';
import { Jobs, loadedBy, python } from './jobs.mjs';
import { page } from './page.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    folder: { type: 'string' },
    python: { type: 'string', default: 'python3' },
    'torch-pruning': { type: 'string' },
    onnxsim: { type: 'string' },
    'onnx-python': { type: 'string', default: '/usr/bin/python3' },
    command: { type: 'string', default: join(root, 'build', 'release', 'bin', 'parsimony') },
    again: { type: 'boolean', default: false },
    'no-page': { type: 'boolean', default: false },
  },
});

mkdirSync(values.folder, { recursive: true });
const kinds = python(values.python, ['names'])[0];
const names = positionals.length > 0 ? positionals : Object.keys(kinds);
const jobs = new Jobs({ ...values, names });

const exported = jobs.export(values.python);
const tools = new Map([['parsimony', jobs.parsimony(values.python)]]);
for (const [tool, program] of others()) tools.set(tool, measured(tool, program));

if (!values['no-page']) {
  const quoted = JSON.parse(readFileSync(join(root, 'tools', 'rivals', 'quoted.json'), 'utf8'));
  const data = page({ kinds, names, tools, exported, versions: versions(), loaded: loadedBy(values.command), quoted });
  writeFileSync(join(root, 'docs', 'results', 'data', 'rivals.json'), `${asData(data)}\n`);
  execFileSync(process.execPath, [join(root, 'tools', 'results.mjs')], { stdio: 'inherit' });
}

function measured(tool, program) {
  if (tool === 'onnxsim') {
    jobs.exportOnnx(values['onnx-python']);
    return jobs.onnxsim(program);
  }
  return jobs.live(tool, program);
}

/** [tool, the Python that has it], for those that there are. */
function* others() {
  yield ['torch_ao', values.python];
  const pruning = values['torch-pruning'] ?? values.python;
  if (has(pruning, 'torch_pruning')) yield ['torch_pruning', pruning];
  else if (values['torch-pruning']) throw new Error(`${pruning} does not import torch_pruning`);
  if (values.onnxsim && has(values.onnxsim, 'onnxsim')) yield ['onnxsim', values.onnxsim];
  else if (values.onnxsim) throw new Error(`${values.onnxsim} does not import onnxsim`);
}

function has(program, module) {
  return module in python(program, ['versions'])[0];
}

function versions() {
  const programs = [values.python, values['torch-pruning'], values.onnxsim].filter(Boolean);
  return Object.assign({}, ...programs.map((program) => python(program, ['versions'])[0]).reverse());
}
