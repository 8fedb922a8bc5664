// Prunes torchvision's networks, one after the other, into a ledger; see ../zoo.sh.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { digits, milliseconds } from '../tables/cells.mjs';
import { measured } from '../tables/measured.mjs';
import { largestDifference, runRecipe } from './run.mjs';

const PYTHON = '/usr/bin/python3'; // Debian's, which has Debian's torch
const NO_TORCH = 77;
const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const exporter = join(root, 'tests', 'models', 'export.py');

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    command: { type: 'string', default: join(root, 'build', 'release', 'bin', 'parsimony') },
    cache: { type: 'string' },
    ledger: { type: 'string', default: join(root, 'docs', 'results', 'zoo') },
    runs: { type: 'string', default: 'onnx:half-local,onnx:third-global,pt:half-local,pt:third-global' },
    kind: { type: 'string', default: '' },
    threads: { type: 'string', default: '2' },
    again: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
  },
});
const { ledger } = values;
mkdirSync(ledger, { recursive: true });

const listed = list();
process.exitCode = runAll();

function list() {
  const { status, stdout, stderr } = spawnSync(PYTHON, [exporter, '--list'], { encoding: 'utf8' });
  if (status !== 0) {
    console.error(
      status === NO_TORCH || status === null
        ? 'zoo.sh: needs Debian\'s python3-torchvision: apt-get install python3-torchvision'
        : stderr,
    );
    process.exit(status === null ? NO_TORCH : status);
  }
  const lines = stdout.trim().split('\n').map((line) => line.split('\t'));
  return lines.map(([name, kind]) => ({ name, kind }));
}

function runAll() {
  const unknown = positionals.filter((name) => !listed.some((one) => one.name === name));
  if (unknown.length > 0) {
    console.error(`zoo.sh: torchvision has no ${unknown.join(', ')}`);
    return 2;
  }
  const chosen = positionals.length > 0 ? positionals : ofKind(values.kind);
  const failed = chosen.map(runOne).flat().filter(({ status }) => status === 'FAILED');
  return failed.length > 0 ? 1 : 0;
}

function ofKind(kind) {
  return listed.filter((one) => !kind || one.kind === kind).map(({ name }) => name);
}

/** The runs that the ledger lacks, for one network. Returns what all of those asked for gave. */
function runOne(name) {
  const entry = values.again ? { runs: {} } : read(name);
  const missing = values.runs.split(',').filter((run) => !entry.runs[run]);
  if (missing.length > 0) {
    const folder = join(values.cache, 'models', name);
    try {
      entry.about = exported(name, folder);
      for (const run of missing) {
        const [form] = run.split(':');
        if (entry.about.errors[form]) continue;
        add(entry, name, folder, run);
        // Where what remains changes with what is removed, the masked original is another question.
        if (run === 'onnx:half-local' && entry.runs[run].status === 'mixes') {
          add(entry, name, folder, 'onnx:half-exact');
        }
      }
    } finally {
      if (!values.keep) rmSync(folder, { recursive: true, force: true });
    }
  }
  return values.runs.split(',').flatMap((run) => entry.runs[run] ?? []);
}

function add(entry, name, folder, run) {
  const [form, recipe] = run.split(':');
  const result = runRecipe({
    command: values.command,
    original: join(folder, `${name}.${form}`),
    inputs: entry.about.inputs,
    recipe,
    threads: Number(values.threads),
  });
  entry.runs[run] = { ...result, measured: measured() };
  write(name, entry);
  const { status, seconds, error } = result;
  const facts = error ?? `${digits(largestDifference(result))} ${milliseconds(seconds)}`;
  console.log([name, run, status, facts].join('\t'));
}

function exported(name, folder) {
  const description = join(folder, `${name}.json`);
  if (!existsSync(description)) {
    const { status, stderr } = spawnSync(PYTHON, [exporter, name, folder], {
      encoding: 'utf8',
      env: { ...process.env, OMP_NUM_THREADS: values.threads },
    });
    if (status !== 0) throw new Error(`${name} was not exported: ${stderr}`);
  }
  const { errors, ...about } = JSON.parse(readFileSync(description, 'utf8'));
  return { ...about, errors: { onnx: errors.onnx, pt: errors.torchscript } };
}

function read(name) {
  const path = join(ledger, `${name}.json`);
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : { runs: {} };
}

function write(name, entry) {
  const path = join(ledger, `${name}.json`);
  writeFileSync(`${path}.part`, `${JSON.stringify(entry, null, 1)}\n`);
  renameSync(`${path}.part`, path);
}
