// Prunes what export.py has exported and writes docs/results/data/coverage.json; see ../coverage.sh.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { asData } from '../tables/measured.mjs';
import { FORMATS, pruned } from './prune.mjs';
import { lacksReason, page } from './page.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const results = join(root, 'docs', 'results');

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    folder: { type: 'string' },
    command: { type: 'string', default: join(root, 'build', 'release', 'bin', 'parsimony') },
    threads: { type: 'string', default: '1' },
    again: { type: 'boolean', default: false },
    'no-page': { type: 'boolean', default: false },
  },
});

const kinds = json(join(values.folder, 'kinds.json'));
const networks = Object.entries(kinds).filter(([name]) => exported(name)).map(measure);
const faults = networks.filter(({ runs }) => Object.values(runs).some((run) => run.exported && !run.proven));
for (const { name, runs } of faults) {
  for (const [form, { note }] of Object.entries(runs)) if (note) console.log(`${name}.${form}: ${note}`);
}
const unexplained = networks.filter(lacksReason);
for (const { name } of unexplained) console.log(`${name}: tools/coverage/reasons.json has no reason`);
if (!values['no-page']) {
  const data = page(networks, torchvision(), json(join(root, 'tools', 'coverage', 'torch_pruning.json')));
  writeFileSync(join(results, 'data', 'coverage.json'), `${asData(data)}\n`);
  execFileSync(process.execPath, [join(root, 'tools', 'results.mjs')], { stdio: 'inherit' });
}
process.exitCode = unexplained.length > 0 ? 1 : 0;

function exported(name) {
  return existsSync(join(values.folder, `${name}.inputs`));
}

function measure([name, kind]) {
  const again = values.again && (positionals.length === 0 || positionals.includes(name));
  const job = { folder: values.folder, name, command: values.command, threads: values.threads, again };
  const runs = Object.fromEntries(FORMATS.map((form) => [form, pruned({ ...job, form })]));
  const reasons = json(join(root, 'tools', 'coverage', 'reasons.json'));
  return { name, kind, runs, reason: reasons[name] ?? '' };
}

/** From the ledgers of tools/zoo.sh, and from the page of torch.export's programs. */
function torchvision() {
  const ledgers = [join(values.folder, 'zoo'), join(results, 'zoo')].filter(existsSync);
  const rows = json(join(results, 'data', 'exported.json')).tables[0].rows;
  const programs = new Map(rows.map(([name, params, macs]) => [name, { params, macs }]));
  return listed(join(results, 'zoo')).map((name) => {
    const runs = ledgers
      .map((ledger) => join(ledger, `${name}.json`))
      .filter(existsSync)
      .map((path) => json(path).runs);
    const first = (key) => runs.map((run) => run[key]).find((run) => run?.params?.after && run.macs?.after);
    return { name, onnx: first('onnx:half-local'), pt: first('pt:half-local'), pt2: programs.get(name) };
  });
}

function listed(folder) {
  return readdirSync(folder).map((file) => basename(file, '.json')).sort();
}

function json(path) {
  return JSON.parse(readFileSync(path, 'utf8'));
}
