#!/usr/bin/env node
// What a step of training costs in two ranks over links of several delays and rates; a model of that,
// checked on links that it was not fitted to; and what it says about many ranks.
//
//   node tools/ranks/scale.mjs [--delays 0,5,20] [--rates 100,300,1000] [--epochs 2] [--from FILE]
//     [--page FILE] PARSIMONY > scale.json
//
// The ranks stand in two network namespaces, joined by link.py (as root). Delays are milliseconds one
// way, rates Mbit/s. The model is fitted to the four corners of the grid, dense and pruned; the other
// links are held back. --from takes the measurements of an earlier run; --page writes them as text.

import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { measured } from '../tables/measured.mjs';
import { page } from './scale_page.mjs';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    delays: { type: 'string', default: '0,5,20' },
    rates: { type: 'string', default: '100,300,1000' },
    epochs: { type: 'string', default: '2' },
    from: { type: 'string' },
    page: { type: 'string' },
  },
});
if (positionals.length !== 1 && !options.from) {
  console.error('usage: scale.mjs [--delays LIST] [--rates LIST] [--epochs N] [--page FILE] PARSIMONY');
  process.exit(2);
}
const here = dirname(fileURLToPath(import.meta.url));
const epochs = Number(options.epochs);
const BATCH = 64;
const STEPS = 8; // in an epoch
const BUCKETS = 2; // of the gradients of `cnn`: the linear layers, the convolutions

const median = (list) => {
  const sorted = [...list].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};
const rounded = (value) => Number(value.toPrecision(4));

// --- measuring

async function measure(parsimony) {
  const spaces = [`scale${process.pid}a`, `scale${process.pid}b`];
  const root = mkdtempSync(join(tmpdir(), 'scale-'));
  const children = new Set();
  const start = (command, args, settings) => {
    const child = spawn(command, args, settings);
    children.add(child);
    child.end = new Promise((done) => child.on('exit', (code) => (children.delete(child), done(code))));
    return child;
  };
  const tidy = () => {
    for (const child of children) child.kill('SIGKILL');
    for (const space of spaces) {
      try {
        execFileSync('ip', ['netns', 'del', space], { stdio: 'ignore' });
      } catch {
        // It was not made.
      }
    }
    rmSync(root, { recursive: true, force: true });
  };
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130));
  process.on('exit', tidy);

  for (const space of spaces) {
    execFileSync('ip', ['netns', 'add', space]);
    // A rank reaches its own address over it.
    execFileSync('ip', ['-n', space, 'link', 'set', 'lo', 'up']);
  }
  const recipe = join(root, 'recipe.json');
  const config_list = [{ op_types: ['Conv2d'], sparse_ratio: 0.5 }];
  writeFileSync(recipe, JSON.stringify({ prune: { warmup_epochs: epochs, criterion: 'l1', config_list } }));

  const links = [];
  for (const delay of options.delays.split(',').map(Number)) {
    for (const rate of options.rates.split(',').map(Number)) {
      const folder = join(root, `${delay}-${rate}`);
      mkdirSync(folder);
      const words = ['--between', ...spaces, '--delay', delay, '--rate', rate, '--queue', 1000, '--mtu', 9000];
      const link = start('/usr/bin/python3', [join(here, 'link.py'), ...words.map(String)]);
      await new Promise((done) => link.stdout.once('data', done));
      const train =
        `train --model cnn --data shapes:${BATCH * STEPS},16 --batch ${BATCH} --config ${recipe} --epochs ${epochs} ` +
        '--evaluate-every 0 --seed 1 --threads 1 --memory-format contiguous --no-verify --rank-timeout 120 ' +
        '-o model.pt --report report.json --profile trace.json --store tcp:10.77.0.1:29500';
      const ranks = [0, 1].map((rank) =>
        start('ip', ['netns', 'exec', spaces[rank], parsimony, ...train.split(' ')], {
          cwd: folder,
          stdio: ['ignore', 'ignore', 'inherit'],
          env: { ...process.env, RANK: rank, WORLD_SIZE: 2, GLOO_SOCKET_IFNAME: 'link0', OMP_NUM_THREADS: 1 },
        }),
      );
      const codes = await Promise.all(ranks.map((rank) => rank.end));
      link.kill('SIGTERM');
      await link.end;
      if (codes.some((code) => code !== 0)) throw new Error(`exit codes ${codes} at ${delay} ms, ${rate} Mbit/s`);
      const params = JSON.parse(readFileSync(join(folder, 'report.json'))).params;
      const steps = stepsOf(JSON.parse(readFileSync(join(folder, 'trace.json'))));
      links.push(
        entry('dense', delay, rate, params.before, steps.slice(0, epochs * STEPS)),
        entry('pruned', delay, rate, params.after, steps.slice(epochs * STEPS)),
      );
    }
  }
  return links;
}

/** Seconds of each step of rank 0: {all, forward}. */
function stepsOf(trace) {
  const steps = [];
  let step = {};
  for (const { name, dur, pid, tid } of trace.traceEvents) {
    if (pid !== trace.traceEvents[0].pid || tid !== trace.traceEvents[0].tid) continue;
    step[name] = (step[name] ?? 0) + dur / 1e6;
    if (name !== 'rest') continue;
    if (step.backward) steps.push({ all: Object.values(step).reduce((a, b) => a + b, 0), forward: step.forward });
    step = {};
  }
  return steps;
}

/** The first steps make buffers and fill caches. */
function entry(network, delay_ms, rate_mbit, parameters, steps) {
  const used = steps.slice(2);
  const seconds = used.map((step) => step.all);
  return {
    network,
    delay_ms,
    rate_mbit,
    bytes: 4 * parameters,
    steps: used.length,
    seconds: rounded(median(seconds)),
    least: rounded(Math.min(...seconds)),
    most: rounded(Math.max(...seconds)),
    forward: rounded(median(used.map((step) => step.forward))),
  };
}

// --- the model

/** Seconds that gradients take: ring all-reduce among n, in buckets. */
function communication({ bytes, buckets, latency, bandwidth, n = 2 }) {
  return latency * 2 * (n - 1) * buckets + ((2 * (n - 1)) / n) * (bytes / bandwidth);
}

/** Backward is taken as twice forward, and both as nearly all that is computed. */
const BACKWARD = 2 / 3;

function step(parameters, { network, delay_ms, rate_mbit, bytes }) {
  const { compute, rounds, perByte, overlap } = parameters;
  const own = compute[network];
  const latency = (rounds * delay_ms) / 1000;
  const seconds = communication({ bytes, buckets: BUCKETS, latency, bandwidth: 1 / (8 / (rate_mbit * 1e6) + perByte) });
  return own + Math.max(0, seconds - overlap * BACKWARD * own);
}

/** A number of the normal distribution, from a generator with a seed. */
function normal(generator) {
  const uniform = () => {
    generator.state = (Math.imul(generator.state, 1664525) + 1013904223) >>> 0;
    return (generator.state + 0.5) / 2 ** 32;
  };
  return Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
}

/**
 * The least sum of relative errors, which a step that was disturbed does not bend. The model has
 * kinks, so by random steps, which shrink.
 */
function fit(entries) {
  const build = ([rounds, perByte, overlap]) => ({ compute, rounds, perByte, overlap });
  const loss = (x) =>
    x[2] > 1
      ? Infinity
      : entries.reduce((sum, e) => sum + Math.abs(Math.log(step(build(x), e) / e.seconds)), 0);
  const forward = (network) => median(entries.filter((e) => e.network === network).map((e) => e.forward));
  const compute = { dense: forward('dense') / (1 - BACKWARD), pruned: forward('pruned') / (1 - BACKWARD) };
  const generator = { state: 1 };
  const start = [1, 1e-8, 0.5];
  let best = { value: loss(start), x: start };
  for (let size = 0.5; size > 1e-5; size *= 0.9) {
    for (let i = 0; i < 2000; ++i) {
      const x = best.x.map((each) => each * Math.exp(size * normal(generator)));
      const value = loss(x);
      if (value < best.value) best = { value, x };
    }
  }
  return build(best.x);
}

const RANKS = [8, 32, 128, 512, 1024];
const RATES = [10, 100, 400]; // Gbit/s
// A network of the size of ResNet-50; messages through TCP on one switch.
const ASSUMED = { parameters: 25.6e6, latency: 25e-6, bucket: 25 * 2 ** 20 };

function many() {
  return RANKS.flatMap((n) =>
    RATES.map((gbit) => {
      const of = (share) => {
        const bytes = 4 * ASSUMED.parameters * share;
        const buckets = Math.ceil(bytes / ASSUMED.bucket) + 1;  // a small one goes first
        return communication({ bytes, buckets, latency: ASSUMED.latency, bandwidth: (gbit * 1e9) / 8, n });
      };
      return { ranks: n, gbit, dense: rounded(of(1)), pruned: rounded(of(0.5)) };
    }),
  );
}

// --- what is told

const earlier = options.from ? JSON.parse(readFileSync(options.from)) : null;
const links = earlier?.links ?? (await measure(resolve(positionals[0])));
const edges = (key) => [Math.min(...links.map((e) => e[key])), Math.max(...links.map((e) => e[key]))];
for (const link of links) {
  link.fitted = edges('delay_ms').includes(link.delay_ms) && edges('rate_mbit').includes(link.rate_mbit);
}
const model = fit(links.filter((link) => link.fitted));
for (const link of links) {
  link.computed = rounded(step(model, link));
  link.error = rounded(link.computed / link.seconds - 1);
}
const sizes = (list) => list.map((link) => Math.abs(link.error));
const held = sizes(links.filter((link) => !link.fitted));
const result = {
  ...(earlier ? { date: earlier.date, commit: earlier.commit, machine: earlier.machine } : measured()),
  links,
  model: {
    compute: { dense: rounded(model.compute.dense), pruned: rounded(model.compute.pruned) },
    rounds: rounded(model.rounds),
    perByte: rounded(model.perByte),
    overlap: rounded(model.overlap),
    buckets: BUCKETS,
  },
  errors: {
    fitted: { median: rounded(median(sizes(links.filter((link) => link.fitted)))) },
    held_back: held.length ? { median: rounded(median(held)), most: rounded(Math.max(...held)) } : null,
  },
  assumed: ASSUMED,
  many: many(),
};
console.log(JSON.stringify(result, null, 1));
if (options.page) writeFileSync(options.page, page(result));
