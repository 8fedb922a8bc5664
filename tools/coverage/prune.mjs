// Prunes exported networks by half, with proof, each in a process of its own.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export const FORMATS = ['onnx', 'pt', 'pt2'];
const MINUTES = 60 * 1000;

/**
 * What became of FOLDER/NAME.FORMAT; kept in FOLDER/results/NAME.FORMAT.json, newer than the network.
 *   {params, macs}: shares left;  proven;  note: why not, or why the file could not be pruned
 */
export function pruned(job) {
  const { folder, name, form, again } = job;
  const results = join(folder, 'results');
  mkdirSync(results, { recursive: true });
  const kept = join(results, `${name}.${form}.json`);
  if (again || !existsSync(kept)) writeFileSync(kept, JSON.stringify(run(job, results), null, 1));
  return JSON.parse(readFileSync(kept, 'utf8'));
}

function run({ folder, name, form, command, threads }, results) {
  const fault = join(folder, `${name}.${form}.fault`);
  if (existsSync(fault)) return { exported: false, note: readFileSync(fault, 'utf8').trim() };
  const [small, report] = [join(results, `small.${form}`), join(results, 'report.json')];
  const args = ['prune', join(folder, `${name}.${form}`), '-o', small, '--ratio', '0.5', '-q'];
  args.push('--report', report, '--threads', threads);
  const inputs = readFileSync(join(folder, `${name}.inputs`), 'utf8').trim().split('\n');
  if (form !== 'pt2') args.push(...inputs.flatMap((input) => ['--input', input]));
  rmSync(report, { force: true });
  const { status, signal, stderr } = spawnSync(command, args, { encoding: 'utf8', timeout: 5 * MINUTES });
  rmSync(small, { force: true });
  if (status !== 0) return { exported: true, note: stderr.trim() || `${signal ?? status}` };
  return summary(JSON.parse(readFileSync(report, 'utf8')));
}

function summary({ params, macs, proof, notes, kept_whole: whole }) {
  const share = ({ before, after }) => after / Math.max(before, 1);
  return {
    exported: true,
    params: share(params),
    macs: share(macs),
    counts: { params, macs },
    proven: Boolean(proof.ran && proof.holds),
    note: proof.ran && proof.holds ? '' : (proof.reason ?? 'the proof does not hold'),
    notes,
    whole: whole.map(({ axis, reason }) => `${axis}: ${reason}`),
  };
}
