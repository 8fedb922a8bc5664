// One run: a file pruned by one recipe, proven by the command itself, and compared by ONNX Runtime.

import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { prunedGroups, reasonsOf, secondsBetween } from '../tables/cells.mjs';

const ORACLE = join(dirname(fileURLToPath(import.meta.url)), '..', 'ort_compare.mjs');
// A session made from bytes, as the oracle makes them, cannot have more.
const ORACLE_BYTES = 2 ** 31 - 1;
// The least of these is the time: other programs of the machine only add to it.
const TIMED_RUNS = 3;
const MINUTES = 60 * 1000;

/** What is asked of every network; `also` where only some have it. */
export const RECIPES = {
  'half-local': ['--ratio', '0.5'],
  'third-global': ['--ratio', '0.3', '--scope', 'global'],
  'half-exact': ['--ratio', '0.5', '--exact-only'],
};

/**
 * @param job {command, original, inputs, recipe, threads}; original lies in a folder of its own
 * @returns what the ledger keeps of it:
 *   status      'exact' (the masked original), 'mixes' (the original with the removed channels absent),
 *               'whole' (nothing to remove), or 'FAILED'
 *   error       of FAILED: what was said
 *   params, macs {before, after};  seconds: between read and write, without the proof
 *   choices     how many operands of choosing nodes (TopK, comparisons) the small network had to take
 *               from the original, for a last bit decides there
 *   groups, pruned: counts;  mixing: how many of the pruned pass a mixing operator
 *   proof, oracle {difference, tolerance}: the command's own and ONNX Runtime's, where they can run
 *               the network; one of them must. The oracle has choices of its own
 *   kept        [[reason, dimensions]]
 */
export function runRecipe(job) {
  const folder = join(dirname(job.original), 'out');
  const at = (name) => join(folder, name);
  const extension = job.original.endsWith('.onnx') ? '.onnx' : '.pt';
  const small = at(`small${extension}`);
  mkdirSync(folder, { recursive: true });
  try {
    const said = prune(job, small, at('plan.json'), at('report.json'));
    if (said.status !== 0) return { status: 'FAILED', error: said.text };
    const reported = () => JSON.parse(readFileSync(at('report.json'), 'utf8'));
    const result = summary(reported());
    if (result.status !== 'FAILED') {
      for (let run = 1; run < TIMED_RUNS; ++run) {
        prune(job, small, at('plan.json'), at('report.json'), ['--no-verify']);
        result.seconds = Math.min(result.seconds, secondsBetween(reported()));
      }
    }
    if (extension === '.onnx' && ['exact', 'mixes'].includes(result.status)) {
      compare(job, small, at('plan.json'), result);
    }
    if (result.status !== 'whole' && !result.proof && !(isComparable(result) && result.oracle)) {
      return { ...result, status: 'FAILED', error: result.error ?? result.notes.join('; ') };
    }
    return result;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * By both engines. ONNX Runtime answers another question where what remains changes with what is
 * removed: there only the command's own proof counts.
 */
export function largestDifference(result) {
  return Math.max(result.proof?.difference ?? 0, isComparable(result) ? (result.oracle?.difference ?? 0) : 0);
}

const isComparable = ({ status }) => status === 'exact';

function prune({ command, original, inputs, recipe, threads }, small, plan, report, more = []) {
  const args = ['prune', original, '-o', small, '--criterion', 'l1', ...RECIPES[recipe]];
  args.push('--plan', plan, '--report', report, '--threads', String(threads), '-q', ...more);
  for (const input of inputs) args.push('--input', input);
  const options = { encoding: 'utf8', timeout: 20 * MINUTES, maxBuffer: 1 << 26 };
  const { status, signal, stdout, stderr, error } = spawnSync(command, args, options);
  const text = `${stdout}${stderr}`.trim() || `${signal ?? error ?? `exit code ${status}`}`;
  return { status, text: text.slice(0, 2000) };
}

function summary(report) {
  const pruned = prunedGroups(report);
  const mixing = pruned.filter((group) => group.mixes).length;
  const { outputs = [], choices = [] } = report.proof;
  const worst = [...outputs, ...choices].reduce(
    (a, b) => (!a || b.difference / b.tolerance > a.difference / a.tolerance ? b : a),
    undefined,
  );
  return {
    status: pruned.length === 0 ? 'whole' : mixing > 0 ? 'mixes' : 'exact',
    params: report.params,
    macs: report.macs,
    seconds: secondsBetween(report),
    groups: report.groups.length,
    pruned: pruned.length,
    mixing,
    choices: choices.length,
    proof: worst && { difference: worst.difference, tolerance: worst.tolerance },
    kept: [...reasonsOf(report)].map(([reason, axes]) => [reason, axes.length]),
    notes: [...report.notes, ...(report.proof.notes ?? [`not proven: ${report.proof.reason}`])],
  };
}

function compare({ original, inputs, threads }, small, plan, result) {
  if (bytesOf(original) > ORACLE_BYTES) return;
  // The command's own proof has three inputs; this one has another batch size besides.
  const args = [ORACLE, original, small, plan, '--json', '--inputs', '1'];
  args.push('--threads', String(threads));
  for (const input of inputs) args.push('--input', input);
  const { stdout, stderr } = spawnSync(process.execPath, args, {
    encoding: 'utf8',
    timeout: 20 * MINUTES,
    maxBuffer: 1 << 28,
  });
  const line = stdout.split('\n').find((text) => text.startsWith('{'));
  if (!line) {
    result.notes.push(`ONNX Runtime: ${stderr.trim().split('\n').at(-1)}`);
    return;
  }
  const { verdict, difference, tolerance, choices, notes } = JSON.parse(line);
  result.oracle = { verdict, difference, tolerance, choices: choices.length };
  result.notes.push(...notes);
  if (verdict !== 'exact' && verdict !== 'mixes') {
    result.status = 'FAILED';
    result.error = `ONNX Runtime: ${[verdict, ...notes].join('; ')}`.slice(0, 2000);
  }
}

/** The weights of a large network lie in files of their own, named after the tensors. */
function bytesOf(original) {
  const folder = dirname(original);
  const others = new Set(['.pt', '.json']);
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && !others.has(extname(entry.name)))
    .reduce((sum, { name }) => sum + statSync(join(folder, name)).size, 0);
}
