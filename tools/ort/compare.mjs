// The proof: the small model against the original with the planned slices set to zero.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

import { atBatch, candidates, draw } from './inputs.mjs';
import { hasNaN, isFinite, peak, relativeDifference } from './metrics.mjs';
import { Model } from './model.mjs';
import { checkTensors, maskModel, planMixes, readPlan } from './plan.mjs';
import { mixSeeds } from './random.mjs';
import { runAll, RuntimeRefusal, Session } from './runtime.mjs';

// Both models run at both levels: 'disabled' is what the file says, 'all' is what users run.
const LEVELS = ['disabled', 'all'];
const BASE_TOLERANCE = { float32: 1e-4, float16: 1e-2 };
const NOISE_MARGIN = 4;
const WEAK_TOLERANCE = 5e-2; // beyond this a pass says little, and the report says so
const OTHER_BATCH = 3;
const OTHER_BATCH_ELEMENTS = 1e6; // beyond this the second batch size costs more than it shows

export const DEFAULTS = { probes: 3, seed: 1, distribution: 'normal', threads: 1, also: [] };

/**
 * Compares one pruned model with its original.
 * @param job {original, small, plan}: paths; specs: parsed --input arguments
 * @throws Error on an unusable file, RuntimeRefusal where the original cannot be run
 */
export async function compare(job, options) {
  const started = performance.now();
  const plan = readPlan(job.plan);
  const original = Model.read(job.original);
  const notes = sourceNotes(job.original, plan);
  const tensors = checkTensors(original, Model.read(job.small), plan);
  const feeds = await chooseFeeds(job.original, original, job.specs, options);

  const shown = [...options.also, ...hiddenBehindIntegers(original, job.small)];
  const reference = Model.read(job.original);
  maskModel(reference, plan);
  shown.forEach((name) => reference.addOutput(name));

  const wanted = await runLevels(reference.encode(), feeds.list, options);
  const found = await runSmall(withOutputs(job.small, shown), feeds.list, options);

  const base = options.tolerance ?? BASE_TOLERANCE[original.usesType('float16') ? 'float16' : 'float32'];
  const outputs = found.refusal ? [] : measureOutputs(wanted, found, base, shown);
  const nonfinite = outputs.some((output) => output.nonfinite);
  if (found.refusal) notes.push(`the small model does not run: ${found.refusal}`);
  if (nonfinite) notes.push(...await blameNonfinite(job.original, feeds.list, wanted, options));
  outputs.forEach((output) => notes.push(...outputNotes(output)));
  tensors.wrong.forEach((text) => notes.push(text));

  const worst = worstOf(outputs);
  return {
    original: job.original, small: job.small, plan: job.plan,
    verdict: verdictOf({ mixes: planMixes(plan), refusal: found.refusal, nonfinite, outputs, tensors }),
    difference: worst?.difference ?? null,
    tolerance: worst?.tolerance ?? base,
    noise: outputs.length ? Math.max(...outputs.map(({ noise }) => noise)) : null,
    degenerate: outputs.length > 0 && outputs.every(({ degenerate }) => degenerate),
    seed: options.seed, probes: feeds.list.length, batches: feeds.batches, inputs: feeds.described,
    outputs, tensors, notes,
    seconds: (performance.now() - started) / 1000,
  };
}

/** Runs one model on seeded inputs: does it load, run, and stay finite? */
export async function smoke(path, specs, options) {
  const feeds = await chooseFeeds(path, Model.read(path), specs, options);
  const results = await runAll(path, 'all', feeds.list, options.threads);
  const outputs = results[0].map(({ name, type, shape }, o) => ({
    name, type, shape, finite: results.every((outs) => isFinite(outs[o].data)),
  }));
  return {
    model: path, verdict: outputs.every(({ finite }) => finite) ? 'finite' : 'NONFINITE',
    seed: options.seed, probes: feeds.list.length, batches: feeds.batches, inputs: feeds.described, outputs,
  };
}

function sourceNotes(path, plan) {
  if (!plan.source?.sha256) return [];
  const hash = createHash('sha256').update(readFileSync(path)).digest('hex');
  return hash === plan.source.sha256 ? [] : ['the plan was made for another file (sha256 differs)'];
}

/** Finds sizes at which the original runs, and draws the probes; the last may have another batch size. */
async function chooseFeeds(path, model, specs, options) {
  const session = await Session.open(path, 'all', options.threads);
  try {
    const candidate = await firstThatRuns(session, candidates(model.inputs, specs), options);
    const probe = (i, shape) => draw(shape, mixSeeds(options.seed, i), options.distribution);
    const list = Array.from({ length: options.probes }, (_, i) => probe(i, candidate));
    const batches = candidate.arguments.slice(0, 1).map(({ shape }) => shape[0] ?? 1);

    const other = atBatch(candidate, OTHER_BATCH);
    if (other && elementsOf(other) <= OTHER_BATCH_ELEMENTS && batches[0] !== OTHER_BATCH) {
      const feeds = probe(options.probes, other);
      if (await runs(session, feeds)) {
        list.push(feeds);
        batches.push(OTHER_BATCH);
      }
    }
    return { list, batches, described: candidate.arguments.map(({ name, type, shape }) => ({ name, type, shape })) };
  } finally {
    await session.close();
  }
}

async function firstThatRuns(session, shapes, options) {
  let refusal;
  for (const candidate of shapes) {
    try {
      await session.run(draw(candidate, options.seed, options.distribution));
      return candidate;
    } catch (error) {
      if (!(error instanceof RuntimeRefusal)) throw error;
      refusal ??= error;
    }
  }
  throw new RuntimeRefusal(`the original does not run on any inputs tried; give --input. ${refusal.message}`);
}

async function runs(session, feeds) {
  try {
    await session.run(feeds);
    return true;
  } catch (error) {
    if (error instanceof RuntimeRefusal) return false;
    throw error;
  }
}

const elementsOf = (candidate) =>
  candidate.arguments.reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1), 0);

/** One entry per level, each one entry per probe. */
async function runLevels(model, feeds, { threads }) {
  const results = [];
  for (const level of LEVELS) results.push(await runAll(model, level, feeds, threads));
  return results;
}

async function runSmall(model, feeds, options) {
  try {
    return await runLevels(model, feeds, options);
  } catch (error) {
    if (error instanceof RuntimeRefusal) return { refusal: error.message };
    throw error;
  }
}

/** The file itself where nothing is to be shown: that is what a user will load. */
function withOutputs(path, names) {
  if (names.length === 0) return path;
  const model = Model.read(path);
  names.forEach((name) => model.addOutput(name));
  return model.encode();
}

const ONLY_LOOKS = new Set(['ArgMax', 'ArgMin', 'TopK', 'Cast', 'Squeeze', 'Unsqueeze', 'Reshape', 'Flatten',
  'Identity', 'Greater', 'GreaterOrEqual', 'Less', 'LessOrEqual']);

/** A class index hides the numbers it was made from: they are compared as well. */
function hiddenBehindIntegers(original, smallPath) {
  const small = Model.read(smallPath);
  const outputs = original.outputs.map(({ name }) => name);
  const integers = original.outputs.filter(({ type }) => /int|bool/.test(type)).map(({ name }) => name);
  const sources = integers.map((name) => {
    let value = name;
    for (let node; (node = original.producers.get(value)) && ONLY_LOOKS.has(node.opType); ) [value] = node.inputs;
    return value;
  });
  return [...new Set(sources)].filter((value) =>
    !outputs.includes(value) && original.knows(value) && small.knows(value));
}

function measureOutputs(wanted, found, base, shown) {
  return wanted[0][0].map((first, o) => {
    const output = { name: first.name, type: first.type, shape: first.shape };
    if (shown.includes(first.name)) output.shown = true;
    const match = found[0][0].findIndex(({ name }) => name === first.name);
    if (match < 0) return { ...output, ...MISSING, tolerance: base };

    const a = wanted.map((probes) => probes.map((outs) => outs[o]));
    const b = found.map((probes) => probes.map((outs) => outs[match]));
    const noise = largest(a[0].map((run, p) => relativeDifference(run.data, a[1][p].data)));
    const difference = largest(a.flatMap((probes, l) => probes.map((run, p) => differenceOf(run, b[l][p]))));
    const tolerance = Math.max(base, Number.isFinite(noise.difference) ? NOISE_MARGIN * noise.difference : 0);
    const signal = signalOf(a[0]);
    return {
      ...output, ...difference, noise: noise.difference, tolerance, signal,
      degenerate: signal !== null && signal <= tolerance,
      nonfinite: a.flat().some(({ data }) => hasNaN(data)) || b.flat().some(({ data }) => hasNaN(data)),
      small_finite: b.flat().every(({ data }) => isFinite(data)),
    };
  });
}

const MISSING = { difference: Infinity, noise: 0, signal: null, degenerate: false, nonfinite: false, missing: true };

/** Other shapes are wholly different; their ranks matter by themselves where a plan mixes. */
function differenceOf(wanted, found) {
  if (`${wanted.shape}` === `${found.shape}`) return relativeDifference(wanted.data, found.data);
  return {
    difference: Infinity, shape_found: found.shape, shape_wanted: wanted.shape,
    rank_differs: wanted.shape.length !== found.shape.length,
  };
}

/** The entry of the largest difference. */
const largest = (entries) => entries.reduce((a, b) => (b.difference > a.difference ? b : a));

/** How much an output moves between probes: one that stands still would agree with anything. */
function signalOf(runs) {
  const alike = runs.filter(({ shape }) => `${shape}` === `${runs[0].shape}`);
  if (alike.length < 2) return peak(runs[0].data) === 0 ? 0 : null;
  const scale = Math.max(...alike.map(({ data }) => peak(data)));
  const moves = alike.slice(1).map(({ data }, i) =>
    relativeDifference(alike[i].data, data).difference * peak(alike[i].data));
  return scale === 0 ? 0 : Math.max(...moves) / scale;
}

async function blameNonfinite(path, feeds, wanted, options) {
  const anyNaN = (levels) => levels.flat(2).some(({ data }) => hasNaN(data));
  if (!anyNaN(wanted)) return ['the small model gives NaN where the masked original does not'];
  const unmasked = await runAll(path, 'all', feeds, options.threads);
  return [anyNaN(unmasked)
    ? 'the original itself gives NaN on these inputs: choose others'
    : 'the masked original gives NaN, although the original does not: a division by what was removed'];
}

function outputNotes({ name, noise, tolerance, degenerate, signal, missing, shape_found: found, shape_wanted: wanted }) {
  const notes = [];
  if (missing) notes.push(`output "${name}" is missing in the small model`);
  if (found) notes.push(`output "${name}" has shape [${found}] in the small model, [${wanted}] in the original`);
  if (tolerance > WEAK_TOLERANCE) notes.push(`output "${name}": the original's own rounding is ${noise.toExponential(1)}, so the check is weak`);
  if (degenerate) {
    notes.push(signal === 0
      ? `output "${name}" of the masked original is the same for every input: its agreement proves little`
      : `output "${name}" of the masked original hardly depends on the input: its agreement proves little`);
  }
  return notes;
}

const worstOf = (outputs) =>
  outputs.reduce((a, b) => (!a || b.difference / b.tolerance > a.difference / a.tolerance ? b : a), undefined);

function verdictOf({ mixes, refusal, nonfinite, outputs, tensors }) {
  if (refusal || tensors.wrong.length > 0 || outputs.some(({ missing }) => missing)) return 'MISMATCH';
  if (mixes) {
    if (outputs.some(({ rank_differs: differs }) => differs)) return 'MISMATCH';
    return outputs.every(({ small_finite: finite }) => finite) ? 'mixes' : 'NONFINITE';
  }
  if (nonfinite) return 'NONFINITE';
  return outputs.every(({ difference, tolerance }) => difference <= tolerance) ? 'exact' : 'MISMATCH';
}
