#!/usr/bin/env node
// Measures docs/results/data/processes.json: training in several processes against threads and against
// Python's DistributedDataParallel, what ranks send, and what becomes of a network cut on the way.
//
//   node tools/ranks/measure.mjs [--runs 5] [--quick] [--model FILE.onnx] PARSIMONY CIFAR
//     > docs/results/data/processes.json
//   tools/results.py
//
// CIFAR is a folder with CIFAR-10 in its binary layout; --model is pruned and recovered. Needs Debian's
// python3-torch and libmimalloc2.0, and root to count bytes. Times mean something on an idle machine
// only, for about an hour; --quick shows in minutes that all of it runs.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { asData, measured } from '../tables/measured.mjs';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    runs: { type: 'string' },
    quick: { type: 'boolean', default: false },
    model: { type: 'string' },
  },
});
const [command, cifar] = positionals;
if (!cifar) {
  console.error('usage: measure.mjs [--runs 5] [--quick] [--model FILE.onnx] PARSIMONY CIFAR');
  process.exit(2);
}

const QUICK = {
  runs: 1, images: 128, epochs: 2, traced: 320, few: 2, more: 5,
  learnt: 128, seeds: [0], ranks: [1, 2], samples: 32,
};
const FULL = {
  runs: 5, images: 6400, epochs: 3, traced: 6400, few: 10, more: 60,
  learnt: 8000, seeds: [0, 1, 2], ranks: [1, 2, 4], samples: 512,
};
const SIZES = options.quick ? QUICK : FULL;
const RUNS = Number(options.runs ?? SIZES.runs);
const BATCH = 64;
const LAYOUTS = [
  { ranks: 1, threads: 1 },
  { ranks: 1, threads: 2 },
  { ranks: 2, threads: 1 },
];
const BASE = 1;

const PYTHON = '/usr/bin/python3';
const DDP = join(dirname(fileURLToPath(import.meta.url)), 'ddp.py');
const MIMALLOC = { LD_PRELOAD: 'libmimalloc.so.2', MIMALLOC_LARGE_OS_PAGES: '1' };

const HALF = { config_list: [{ op_types: ['Conv2d'], sparse_ratio: 0.5 }] };
const HAS_HALF_GRADIENTS = help('train').includes('--half-gradients');
const NETWORKS = [
  { name: 'dense', recipe: (epochs) => recipe(epochs) },
  { name: 'half', recipe: (epochs) => recipe(epochs, { warmup_epochs: 0, ...HALF }) },
  { name: 'dense, `--half-gradients`', recipe: (epochs) => recipe(epochs), more: ['--half-gradients'] },
].filter(({ more }) => !more || HAS_HALF_GRADIENTS);

const NOTHING = 'not measured';
const folder = mkdtempSync(join(tmpdir(), 'parsimony-processes-'));
const at = (name) => join(folder, name);
let machine; // as the command's reports have it

function headed(title, about, columns, rows) {
  const asked = [
    ...(RUNS === SIZES.runs ? [] : ['--runs', RUNS]), ...(options.quick ? ['--quick'] : []),
    ...(options.model ? ['--model', basename(options.model)] : []),
  ];
  const line = ['node tools/ranks/measure.mjs', ...asked, 'build/release/bin/parsimony CIFAR'].join(' ');
  return { title, about, ...measured(), command: [line], columns, rows };
}

// ---- Running -------------------------------------------------------------------------------------

function run(program, args, env = {}) {
  const all = { ...process.env, ...env };
  const result = spawnSync(program, args, { encoding: 'utf8', env: all, maxBuffer: 1 << 26 });
  if (result.status !== 0) {
    throw new Error(`${program} ${args.join(' ')}: ${result.error?.message ?? result.stderr}`);
  }
  return result.stdout;
}

function help(verb) {
  return run(command, [verb, '--help']);
}

const json = (path) => JSON.parse(readFileSync(path, 'utf8'));

function recipe(epochs, prune) {
  const train = { epochs, batch: BATCH, optimizer: 'adam', lr: 1e-3, evaluate_every: 0 };
  return { model: 'cnn', train, ...(prune && { prune }) };
}

/** Trains; the words of the command. */
function training(ranks, threads, asked, images, ...more) {
  writeFileSync(at('recipe.json'), JSON.stringify(asked));
  return [
    'train', '--config', at('recipe.json'), '--data', `cifar10:${cifar}`, '--train-samples', images,
    '--threads', threads, '-o', at('small.pt'), '--report', at('report.json'), ...processes(ranks), ...more,
  ].map(String);
}

const processes = (ranks) => (ranks > 1 ? ['--processes', ranks] : []);
const FEW_TESTS = ['--test-samples', '64'];

/** What `measure(variant)` gives, for each variant one value a run; the variants alternate. */
function interleaved(what, variants, measure) {
  const values = variants.map(() => []);
  for (let k = 0; k < RUNS; ++k) {
    variants.forEach((variant, i) => {
      values[i].push(measure(variant));
      const [asked, found] = [variant, values[i].at(-1)].map((x) => JSON.stringify(x));
      console.error(`${what}, run ${k + 1} of ${RUNS}: ${asked}: ${found}`);
    });
  }
  return values;
}

// ---- Numbers -------------------------------------------------------------------------------------

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

const mean = (values) => values.reduce((sum, x) => sum + x, 0) / values.length;
const percent = (x) => `${(100 * x).toFixed(1)} %`;
const grouped = (x) => Math.round(x).toLocaleString('en-US');
const range = (values, text) => `${text(Math.min(...values))} to ${text(Math.max(...values))}`;
const spread = (values) => `${median(values).toPrecision(3)} (${range(values, (x) => x.toPrecision(3))})`;
/** The median of the ratios, each within one run. */
const against = (values, others) => `${median(values.map((x, k) => x / others[k])).toFixed(2)} ×`;
const layout = ({ ranks, threads }) => `${ranks} × ${threads}`;

// ---- The time of an epoch ------------------------------------------------------------------------

function times() {
  const programs = ['parsimony', 'plain', 'tuned'];
  const variants = LAYOUTS.flatMap((one) => programs.map((program) => ({ program, ...one })));
  const values = interleaved('epoch', variants, epochTime);
  const rows = LAYOUTS.map((one, i) => {
    const [ours, plain, tuned] = programs.map((_, j) => values[programs.length * i + j]);
    const better = plain.map((x, k) => Math.min(x, tuned[k]));
    return [
      layout(one), spread(ours), against(ours, values[programs.length * BASE]),
      spread(plain), spread(tuned), against(ours, better),
    ];
  });
  return headed(
    `An epoch of ${grouped(SIZES.images)} images`,
    `Seconds: median of ${RUNS} runs that alternate (and their range); ratios are taken within a run. A run ` +
      'is the median of its epochs without the first. PyTorch: `tools/ranks/ddp.py`, two processes by ' +
      'DistributedDataParallel over Gloo; it has the OpenBLAS kernel and the `OMP_WAIT_POLICY` that the command ' +
      'sets. Tuned: channels-last, and mimalloc with large pages, which the command has, too.',
    [
      'processes × threads', 'parsimony', 'against 1 × 2', 'PyTorch', 'PyTorch, tuned',
      'parsimony against the faster',
    ],
    rows,
  );
}

function epochTime({ program, ranks, threads }) {
  return median(epochTimes(program, ranks, threads).slice(1));
}

function epochTimes(program, ranks, threads) {
  if (program === 'parsimony') {
    run(command, training(ranks, threads, recipe(SIZES.epochs), SIZES.images, ...FEW_TESTS));
    const report = json(at('report.json'));
    machine = report.machine;
    return report.epochs.map(({ seconds }) => seconds);
  }
  const [library, kernel] = machine.blas.split(' ');
  const env = {
    OMP_WAIT_POLICY: 'PASSIVE',
    ...(library === 'OpenBLAS' && { OPENBLAS_CORETYPE: kernel }),
    ...(program === 'tuned' && MIMALLOC),
  };
  const asked = { ranks, threads, batch: BATCH, samples: SIZES.images, epochs: SIZES.epochs };
  const words = Object.entries(asked).flatMap(([name, value]) => [`--${name}`, String(value)]);
  if (program === 'tuned') words.push('--channels-last');
  const { seconds, allocator } = JSON.parse(run(PYTHON, [DDP, cifar, ...words], env));
  if (program === 'tuned' && allocator !== 'mimalloc') throw new Error(`no ${MIMALLOC.LD_PRELOAD}`);
  return seconds;
}

// ---- Sums hidden behind the backward pass --------------------------------------------------------

function exposed() {
  const values = interleaved('trace', NETWORKS, ({ recipe: asked, more = [] }) => {
    run(command, training(2, 1, asked(1), SIZES.traced, ...FEW_TESTS, '--profile', at('trace.json'), ...more));
    return overlap(json(at('trace.json')).traceEvents);
  });
  const rows = NETWORKS.map(({ name }, i) => {
    if (values[i].includes(null)) return [name, NOTHING, NOTHING, NOTHING];
    const of = (key) => values[i].map((value) => value[key]);
    return [name, spread(of('backward')), spread(of('exchange')), percent(median(of('hidden')))];
  });
  return headed(
    'What the backward pass hides',
    `From \`--profile\`, two processes with a thread each; median of ${RUNS} runs (and their range), a run's first ` +
      'two steps left out. Half: both convolutions lost half of their channels. The backward pass includes waiting ' +
      'for the last sum. Sums take from when a rank has the gradients of a bucket until their sum is there, so that ' +
      'waiting for the other rank counts; hidden is what lies before the last bucket of a step is ready.',
    ['network', 'backward pass, ms a step', 'sums of gradients, ms a step', 'hidden'],
    rows,
  );
}

/** Milliseconds a step, and the hidden share of the sums; null if the trace has no sums. */
function overlap(events) {
  const sums = events.filter(({ name }) => name === 'all-reduce');
  if (sums.length === 0) return null;
  const ranks = [...new Set(events.map(({ pid }) => pid))];
  const steps = ranks.flatMap((rank) => {
    const passes = events.filter(({ name, pid }) => name === 'backward' && pid === rank);
    return passes.sort((a, b) => a.ts - b.ts).slice(2).map((pass) => {
      const own = sums.filter(({ pid, ts }) => pid === rank && ts >= pass.ts && ts < pass.ts + pass.dur);
      const ready = Math.max(...own.map(({ ts }) => ts));
      return { backward: pass.dur, exchange: covered(own, Infinity), hidden: covered(own, ready) };
    });
  });
  const of = (key) => mean(steps.map((step) => step[key])) / 1000;
  return { backward: of('backward'), exchange: of('exchange'), hidden: of('hidden') / of('exchange') };
}

/** Length of the union of the events before a time. */
function covered(events, until) {
  let length = 0;
  let reached = -Infinity;
  for (const { ts, dur } of [...events].sort((a, b) => a.ts - b.ts)) {
    const end = Math.min(ts + dur, until);
    length += Math.max(0, end - Math.max(ts, reached));
    reached = Math.max(reached, end);
  }
  return length;
}

// ---- Bytes ---------------------------------------------------------------------------------------

// A new namespace counts from 0. /sys would show the interfaces of the namespace that mounted it.
const COUNTED = 'ip link set lo up && "$@" >&2 && grep lo: /proc/net/dev';
const SENT = 8; // the column of bytes that were sent

function sent() {
  const several = SIZES.ranks.filter((ranks) => ranks > 1);
  const variants = several.flatMap((ranks) => NETWORKS.map((network) => ({ ...network, ranks })));
  const possible = spawnSync('unshare', ['-n', 'sh', '-c', 'ip link set lo up']).status === 0;
  const values = possible ? interleaved('bytes', variants, bytesOfStep) : null;
  const params = possible ? counts() : null;
  const rows = variants.map(({ name, ranks, more }, i) => {
    if (!possible) return [name, String(ranks), ...Array(5).fill(NOTHING)];
    const count = name === 'half' ? params.after : params.before;
    const gradients = count * (more ? 2 : 4);
    const least = (gradients * 2 * (ranks - 1)) / ranks;
    const found = median(values[i]);
    return [name, String(ranks), ...[count, gradients, least, found].map(grouped), `${(found / least).toFixed(3)} ×`];
  });
  return headed(
    'Bytes that a rank sends in a step',
    'Counted on the loopback interface of a network namespace, headers and acknowledgements included, as the ' +
      `difference between ${SIZES.more} and ${SIZES.few} steps; a ring of N ranks sends 2(N − 1)/N of the ` +
      `gradients. Median of ${RUNS} runs.`,
    ['network', 'ranks', 'parameters', 'gradients', '2(N − 1)/N of them', 'sent', 'ratio'],
    rows,
  );
}

function bytesOfStep({ ranks, recipe: asked, more = [] }) {
  const [few, many] = [SIZES.few, SIZES.more].map((steps) => {
    const words = training(ranks, 1, asked(1), steps * BATCH, ...FEW_TESTS, ...more);
    const line = run('unshare', ['-n', 'sh', '-c', COUNTED, 'sh', command, ...words]);
    return Number(line.split(':')[1].trim().split(/\s+/)[SENT]);
  });
  return (many - few) / (SIZES.more - SIZES.few) / ranks;
}

/** Parameters of the CNN, before and after the cut. */
function counts() {
  const { recipe: asked } = NETWORKS.find(({ name }) => name === 'half');
  run(command, training(1, 1, asked(1), BATCH, ...FEW_TESTS));
  return json(at('report.json')).params;
}

// ---- What is learnt ------------------------------------------------------------------------------

function learnt() {
  const results = SIZES.ranks.map((ranks) => SIZES.seeds.map((seed) => cutOnTheWay(ranks, seed)));
  const rows = SIZES.ranks.map((ranks, i) => {
    const accuracies = results[i].map(({ accuracy }) => accuracy.after.correct / accuracy.after.total);
    const apart = results[i].map((one, k) => Math.abs(loss(one) - loss(results[0][k])));
    const sizes = new Set(results[i].map(({ params }) => `${grouped(params.before)} → ${grouped(params.after)}`));
    return [
      String(ranks), [...sizes].join(', '), percent(mean(accuracies)), range(accuracies, percent),
      i === 0 ? '–' : Math.max(...apart).toExponential(1),
    ];
  });
  const { total } = results[0][0].accuracy.after;
  return headed(
    'Cut on the way',
    `${grouped(SIZES.learnt)} training images: an epoch, half of the channels of both convolutions removed, ` +
      `${SIZES.epochs} more epochs; ${SIZES.seeds.length} seeds, a thread a rank. Accuracy: mean and range over the ` +
      `seeds, on ${grouped(total)} test images. Difference of losses: the largest between a seed's training loss in the ` +
      'last epoch and that with one rank.',
    ['ranks', 'parameters', 'accuracy', 'range', 'difference of losses'],
    rows,
  );
}

const loss = ({ epochs }) => epochs.at(-1).loss;

function cutOnTheWay(ranks, seed) {
  const asked = recipe(SIZES.epochs, { warmup_epochs: 1, ...HALF });
  const tests = options.quick ? FEW_TESTS : [];
  const same = ['--seed', seed, '--memory-format', 'contiguous', ...tests];
  run(command, training(ranks, 1, asked, SIZES.learnt, ...same));
  const report = json(at('report.json'));
  const { correct } = report.accuracy.after;
  console.error(`learnt: ranks ${ranks}, seed ${seed}: ${correct} correct, loss ${loss(report)}`);
  return report;
}

// ---- Recovery without training -------------------------------------------------------------------

function recovered() {
  if (!options.model) return null;
  const able = help('prune').includes('--processes');
  const layouts = LAYOUTS.filter(({ ranks }) => ranks === 1 || able);
  const values = interleaved('recovery', layouts, leastSquares);
  const rows = LAYOUTS.map((one, i) => {
    if (!values[i]) return [layout(one), ...Array(4).fill(NOTHING)];
    const of = (list, key) => list.map((value) => value[key]);
    const error = (key) => median(of(values[i], key)).toPrecision(4);
    const seconds = of(values[i], 'seconds');
    const ratio = against(seconds, of(values[BASE], 'seconds'));
    return [layout(one), spread(seconds), ratio, error('before'), error('after')];
  });
  return headed(
    `Least squares: ${basename(options.model, '.onnx')}`,
    '`prune --ratio 0.3 --recover least-squares`, the images as they are. Seconds of the recovery: median of ' +
      `${RUNS} runs that alternate (and their range). Output error is ‖small − dense‖ / ‖dense‖ on the ` +
      `${SIZES.samples} images.`,
    ['processes × threads', 'seconds', 'against 1 × 2', 'output error, pruned', 'recovered'],
    rows,
  );
}

function leastSquares({ ranks, threads }) {
  const words = [
    'prune', options.model, '-o', at('small.onnx'), '--report', at('report.json'), '--ratio', '0.3', '--no-verify',
    '--recover', 'least-squares', '--calibration', `cifar10:${cifar}`, '--samples', SIZES.samples, '--threads', threads,
  ];
  run(command, [...words, ...processes(ranks)].map(String));
  const { before, steps } = json(at('report.json')).recovery;
  return { seconds: steps[0].seconds, before: before.output_error, after: steps[0].output_error };
}

// ---- All of it -----------------------------------------------------------------------------------

const about =
  'Training by `--processes` on one machine, over Gloo on the loopback interface: the CIFAR-10 CNN ' +
  `(\`--model cnn\`, 2.1 million parameters), ${BATCH} images a step, all ranks together, Adam. Between machines ` +
  'nothing was measured.';

if (loadavg()[0] > 0.3) {
  const load = loadavg()[0].toFixed(1);
  console.error(`measure: the machine is not idle (load ${load}); do not publish these times`);
}
try {
  const tables = [times, exposed, sent, learnt, recovered].map((table) => table()).filter(Boolean);
  console.log(asData({ title: 'Several processes', about, tables }));
} finally {
  rmSync(folder, { recursive: true });
}
