#!/usr/bin/env node
// Ends ranks of a training by force and by other mishaps, and looks whether all end, whether the
// message names the rank, and whether the run resumes to the same weights, byte for byte.
//
//   node tools/ranks/kills.mjs [--times 20] [--seed 1] [--processes 2] [--only WORD] PARSIMONY
//
// Each time a random rank gets SIGKILL at a random moment of a run that is cut twice. Then, once each:
// a rank that hangs, signals to all and to the process that started them, ranks with other settings,
// networks or data, a full disk (as root, on a small tmpfs), a store that a killed job has left.
// --only runs the checks whose names hold WORD. Exit codes: 0 all passed, 1 not all, 2 usage.

import { execFileSync, spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    times: { type: 'string', default: '20' },
    seed: { type: 'string', default: '1' },
    processes: { type: 'string', default: '2' },
    only: { type: 'string', default: '' },
  },
});
if (positionals.length !== 1) {
  console.error('usage: kills.mjs [--times N] [--seed N] [--processes N] [--only WORD] PARSIMONY');
  process.exit(2);
}
const parsimony = resolve(positionals[0]);
const ranks = Number(options.processes);
const root = mkdtempSync(join(tmpdir(), 'kills-'));

// Seconds that a rank waits for another; that the command waits for the others when one has failed;
// and that a busy machine may take.
const RANK_TIMEOUT = 60;
const GRACE = 20;
const BUSY = 20;

// mulberry32
let state = Number(options.seed) >>> 0;
function random() {
  state = (state + 0x6d2b79f5) >>> 0;
  let t = state;
  t = Math.imul(t ^ (t >>> 15), t | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
}

const RECIPE = {
  prune: {
    warmup_epochs: 1,
    schedule: 'agp',
    steps: 2,
    criterion: 'taylor',
    config_list: [{ op_types: ['Conv2d'], sparse_ratio: 0.5 }],
  },
};
const recipe = join(root, 'recipe.json');
writeFileSync(recipe, JSON.stringify(RECIPE));
const otherRecipe = join(root, 'other.json');
writeFileSync(otherRecipe, JSON.stringify({ prune: { ...RECIPE.prune, criterion: 'l1' } }));

const ALONE = {
  '--model': 'cnn',
  '--data': 'shapes:96,32',
  '--config': recipe,
  '--epochs': '1',
  '--batch': '16',
  '--seed': '1',
  '--threads': '1',
  '--memory-format': 'contiguous',
  '--rank-timeout': String(RANK_TIMEOUT),
  '-o': 'o.pt',
};
const words = (changes) => ['train', '--deterministic', ...Object.entries({ ...ALONE, ...changes }).flat()];
const together = (changes) => words({ '--processes': options.processes, '--checkpoint': 'c', ...changes });

const folderOf = (name) => {
  const folder = join(root, name.replace(/\W+/g, '_'));
  mkdirSync(join(folder, 'tmp'), { recursive: true });
  return folder;
};

/** A command in a process group of its own. */
class Run {
  constructor(folder, args, variables = {}) {
    const env = { ...process.env, TMPDIR: join(folder, 'tmp'), OMP_NUM_THREADS: '1', ...variables };
    this.folder = folder;
    this.begin = Date.now();
    this.said = '';
    this.child = spawn(parsimony, args, { cwd: folder, env, detached: true, stdio: ['ignore', 'ignore', 'pipe'] });
    this.child.stderr.on('data', (text) => (this.said += text));
    this.end = new Promise((done) => {
      this.child.on('exit', (code, signal) => done((this.outcome = signal ?? code)));
    });
  }

  /** Those of its group that are alive: process → rank, or undefined for the one that started them. */
  members() {
    const found = new Map();
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
        const [status, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        if (Number(group) !== this.child.pid || status === 'Z') continue;
        const rank = /(?:^|\0)RANK=(\d+)/.exec(readFileSync(`/proc/${pid}/environ`, 'latin1'))?.[1];
        found.set(Number(pid), rank === undefined ? undefined : Number(rank));
      } catch {
        // It has ended meanwhile.
      }
    }
    return found;
  }

  /** The process of a rank; undefined if the run ends before. */
  async processOf(rank) {
    while (this.outcome === undefined) {
      const found = [...this.members()].find(([, own]) => own === rank);
      if (found) return found[0];
      await sleep(10);
    }
    return undefined;
  }

  async until(condition) {
    while (this.outcome === undefined && !condition()) await sleep(10);
    return this.outcome === undefined;
  }

  /** Seconds until it has ended; Infinity, and its end by force, if that takes more than `limit`. */
  async ended(limit) {
    const begin = Date.now();
    await Promise.race([this.end, sleep(limit * 1000, null, { ref: false })]);
    const late = this.outcome === undefined;
    if (late) this.signal('SIGKILL');
    await this.end;
    return late ? Infinity : (Date.now() - begin) / 1000;
  }

  signal(name) {
    try {
      process.kill(-this.child.pid, name);
    } catch {
      // None is left.
    }
  }

  /** What has outlived it after a moment, by process; they are ended. */
  async orphans() {
    for (let i = 0; i < 50 && this.members().size > 0; ++i) await sleep(100);
    const left = [...this.members().keys()];
    this.signal('SIGKILL');
    return left;
  }

  temporary() {
    return readdirSync(join(this.folder, 'tmp')).filter((name) => name.startsWith('parsimony'));
  }
}

const weights = (folder, name = 'o.pt') =>
  existsSync(join(folder, name)) ? readFileSync(join(folder, name)) : undefined;
const complaints = (text) =>
  text.split('\n').filter((line) => /^(rank \d+: )?parsimony: /.test(line)).join(' | ');
const lastLine = (text) => text.trim().split('\n').at(-1) ?? '';

async function finished(folder, args) {
  const run = new Run(folder, args);
  await run.ended(300);
  return run;
}

/** Resumes it and compares; what is wrong, or nothing. */
async function resumed(folder, args = together()) {
  const run = await finished(folder, args);
  if (run.outcome !== 0) return `resuming ended with ${run.outcome}: ${complaints(run.said)}`;
  return weights(folder)?.equals(whole) ? '' : 'the weights differ';
}

// --- the undisturbed run

const plain = folderOf('whole');
const first = await finished(plain, together());
if (first.outcome !== 0) {
  console.error(`the undisturbed run ended with ${first.outcome}: ${first.said}`);
  process.exit(1);
}
const whole = weights(plain);
const seconds = (Date.now() - first.begin) / 1000;
console.log(`undisturbed: ${seconds.toFixed(1)} s, ${ranks} ranks, seed ${options.seed}`);

let bad = 0;
let all = 0;
function tell(name, problem, note = '') {
  ++all;
  if (problem) ++bad;
  console.log(`${name.padEnd(44)} ${problem ? 'FAILED: ' + problem : 'passed'}${note ? '; ' + note : ''}`);
}
const wanted = (name) => name.includes(options.only);

// --- kills

let passed = 0;
let longest = 0;
const times = wanted('kill') ? Number(options.times) : 0;
for (let number = 1; number <= times; ) {
  const rank = Math.floor(random() * ranks);
  const moment = random() * seconds;
  const folder = folderOf(`kill ${number}`);
  const run = new Run(folder, together());
  await sleep(moment * 1000);
  const victim = await run.processOf(rank);
  if (victim === undefined) {
    rmSync(folder, { recursive: true });  // It was quicker this time: another moment.
    continue;
  }
  process.kill(victim, 'SIGKILL');
  const took = await run.ended(RANK_TIMEOUT + GRACE + BUSY);
  const orphans = await run.orphans();
  if (run.outcome === 0) {
    rmSync(folder, { recursive: true });
    continue;
  }
  const began = existsSync(join(folder, 'c')) ? 'resumed' : 'begun again';
  const problems = [];
  if (took === Infinity) problems.push('does not end');
  if (run.outcome !== 128 + 9 && took !== Infinity) problems.push(`exit code ${run.outcome}`);
  const named = `rank ${rank} (process ${victim}) was ended by signal 9`;
  if (!run.said.includes(named)) problems.push('does not name the rank');
  if (orphans.length > 0) problems.push(`processes ${orphans} go on`);
  if (run.temporary().length > 0) problems.push(`leaves ${run.temporary()}`);
  const difference = await resumed(folder);
  if (difference) problems.push(difference);
  if (problems.length === 0) ++passed;
  longest = Math.max(longest, took);
  const said = run.said.split('\n').findLast((line) => /^(warm|before|cut|epoch|pruned|at the)/.test(line)) ?? 'start';
  tell(
    `kill ${number}: rank ${rank} at ${moment.toFixed(2)} s (${said.slice(0, 14)})`,
    problems.join(', '),
    `ended after ${took.toFixed(1)} s, ${began}`,
  );
  rmSync(folder, { recursive: true });
  ++number;
}
if (times > 0) console.log(`${passed} of ${times} kills passed; all processes ended within ${longest.toFixed(1)} s`);

// --- once each

const checks = {};

for (let rank = 0; rank < Math.min(2, ranks); ++rank) {
  checks[`hang: rank ${rank} is stopped`] = async (folder) => {
    const timeout = 5;
    const run = new Run(folder, together({ '--rank-timeout': String(timeout) }));
    const victim = await run.processOf(rank);
    await run.until(() => existsSync(join(folder, 'c')));
    process.kill(victim, 'SIGSTOP');
    const took = await run.ended(timeout + GRACE + BUSY);
    const orphans = await run.orphans();
    const problems = [];
    if (took === Infinity) problems.push('does not end');
    else if (run.outcome !== 4) problems.push(`exit code ${run.outcome}`);
    if (orphans.length > 0) problems.push(`processes ${orphans} go on`);
    const named = new RegExp(`rank \\d of \\d on [^:]*: rank ${rank} is lost or did not come in time`);
    if (!named.test(run.said)) problems.push('does not say so');
    problems.push(await resumed(folder));
    return [problems.filter(Boolean).join(', '), `ended after ${took.toFixed(1)} s`];
  };
}

const signals = {
  'Ctrl-C: SIGINT to all': (run) => run.signal('SIGINT'),
  'SIGTERM to the one that started them': (run) => process.kill(run.child.pid, 'SIGTERM'),
  'SIGKILL to the one that started them': (run) => process.kill(run.child.pid, 'SIGKILL'),
};
for (const [name, send] of Object.entries(signals)) {
  checks[name] = async (folder) => {
    const run = new Run(folder, together());
    await run.until(() => existsSync(join(folder, 'c')));
    send(run);
    const took = await run.ended(BUSY);
    const orphans = await run.orphans();
    const problems = [];
    if (took === Infinity) problems.push('does not end');
    if (orphans.length > 0) problems.push(`processes ${orphans} go on`);
    const left = run.temporary();
    // Nobody can tidy up after SIGKILL.
    if (left.length > 0 && !name.includes('SIGKILL')) problems.push(`leaves ${left.length} temporary folder`);
    problems.push(await resumed(folder));
    return [problems.filter(Boolean).join(', '), `ended after ${took.toFixed(1)} s with ${run.outcome}`];
  };
}

/** Two ranks, as a launcher starts them; the second with other options. @returns both */
async function pair(folder, changes, own = {}) {
  const runs = [0, 1].map((rank) => {
    const place = join(folder, String(rank));
    mkdirSync(join(place, 'tmp'), { recursive: true });
    return new Run(place, words({ ...own, ...(rank === 1 ? changes : {}) }), {
      RANK: String(rank),
      WORLD_SIZE: '2',
      LOCAL_WORLD_SIZE: '2',
      PARSIMONY_STORE: `file:${join(folder, 'store')}`,
    });
  });
  await Promise.all(runs.map((run) => run.ended(RANK_TIMEOUT + BUSY)));
  return runs;
}

const others = {
  seed: [{ '--seed': '2' }, 'the settings'],
  recipe: [{ '--config': otherRecipe }, 'the settings'],
  network: [{ '--model': 'resnet20' }, 'the network'],
  'data set': [{ '--data': 'shapes:112,32' }, 'the data'],
};
for (const [name, [changes, what]] of Object.entries(others)) {
  checks[`another ${name} on rank 1`] = async (folder) => {
    const runs = await pair(folder, changes);
    const said = `rank 1 and rank 0 differ in ${what}`;
    const problems = runs.flatMap((run, rank) => [
      run.outcome === 2 ? '' : `rank ${rank} ended with ${run.outcome}`,
      run.said.includes(said) ? '' : `rank ${rank} says: ${lastLine(run.said)}`,
      weights(run.folder) === undefined ? '' : 'writes a file',
    ]);
    return [problems.filter(Boolean).join(', '), said];
  };
}

/** An array file of `count` images with a seed. */
function images(path, seed, count = 64) {
  const save = (name, type, shape, bytes) => {
    const header = `{'descr': '${type}', 'fortran_order': False, 'shape': (${shape.join(', ')},), }`.padEnd(117) + '\n';
    const size = Buffer.alloc(2);
    size.writeUInt16LE(header.length);
    const magic = Buffer.from('\x93NUMPY\x01\x00', 'latin1');
    writeFileSync(join(path, name), Buffer.concat([magic, size, Buffer.from(header), bytes]));
  };
  const pixels = Uint8Array.from({ length: count * 3 * 32 * 32 }, (_, i) => (i * 7 + seed * (i % 13)) % 256);
  const labels = BigInt64Array.from({ length: count }, (_, i) => BigInt(i % 10));
  save('x.npy', '|u1', [count, 3, 32, 32], pixels);
  save('y.npy', '<i8', [count], Buffer.from(labels.buffer));
}
checks['other bytes in the data of rank 1'] = async (folder) => {
  for (const rank of [0, 1]) {
    mkdirSync(join(folder, String(rank)), { recursive: true });
    images(join(folder, String(rank)), rank);
  }
  const runs = await pair(folder, {}, { '--data': 'npy:x.npy,y.npy' });
  const said = 'rank 1 and rank 0 differ in the data';
  const problems = runs.map((run, rank) =>
    run.outcome === 2 && run.said.includes(said) ? '' : `rank ${rank} ended with ${run.outcome}: ${lastLine(run.said)}`,
  );
  return [problems.filter(Boolean).join(', '), said];
};

if (process.getuid() === 0) {
  checks['a full disk for the checkpoint'] = async (folder) => {
    const disk = join(folder, 'disk');
    mkdirSync(disk);
    // Room for one checkpoint, but not for the next beside it.
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=12m', 'tmpfs', disk]);
    try {
      const args = together({ '--checkpoint': join(disk, 'c') });
      const run = await finished(folder, args);
      const orphans = await run.orphans();
      const problems = [];
      if (run.outcome === 0) problems.push('ends with 0');
      if (orphans.length > 0) problems.push(`processes ${orphans} go on`);
      if (!/No space left on device/.test(run.said)) problems.push('does not say so');
      const left = readdirSync(disk);
      if (left.join() !== 'c') problems.push(`leaves ${left.join() || 'nothing'}`);
      execFileSync('mount', ['-o', 'remount,size=64m', disk]);
      problems.push(await resumed(folder, args));
      const message = (run.said.split('\n').find((line) => line.includes('No space')) ?? '').replaceAll(folder, '');
      return [problems.filter(Boolean).join(', '), `exit code ${run.outcome}: ${message}`];
    } finally {
      execFileSync('umount', [disk]);
    }
  };
}

checks['a store that a killed job has left'] = async (folder) => {
  const start = (job) =>
    [0, 1].map((rank) => {
      const variables = { RANK: String(rank), WORLD_SIZE: '2', LOCAL_WORLD_SIZE: '2', SLURM_JOB_ID: job };
      return new Run(folder, words({ '--checkpoint': 'c', '--store': `file:${join(folder, 'store')}` }), variables);
    });
  const runs = start('1');
  await runs[0].until(() => existsSync(join(folder, 'c')));
  for (const run of runs) run.signal('SIGKILL');
  await Promise.all(runs.map((run) => run.end));
  const again = start('2');
  await Promise.all(again.map((run) => run.ended(RANK_TIMEOUT + BUSY + seconds)));
  if (again.every((run) => run.outcome === 0)) return [weights(folder)?.equals(whole) ? '' : 'the weights differ'];
  return [`the next start with this store ended with ${again.map((run) => run.outcome)}: ${lastLine(again[0].said)}`];
};

for (const [name, check] of Object.entries(checks)) {
  if (!wanted(name)) continue;
  const folder = folderOf(name);
  try {
    tell(name, ...(await check(folder)));
  } catch (error) {
    tell(name, error.message);
  }
}

rmSync(root, { recursive: true, force: true });
console.log(bad === 0 ? `all ${all} passed` : `${bad} of ${all} failed`);
process.exit(bad === 0 ? 0 : 1);
