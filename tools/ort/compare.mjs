// The proof: the small model against the original with the planned slices set to zero.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

import { giveChoices } from './choices.mjs';
import { RuntimeRefusal, UsageError } from './errors.mjs';
import { differenceOf, hasNaN, isFinite, signalOf } from './metrics.mjs';
import { Model } from './model.mjs';
import { checkTensors, maskModel, planMixes, readPlan } from './plan.mjs';
import { chooseProbes } from './probes.mjs';
import { runAll } from './runtime.mjs';

// Both models run at both levels: 'disabled' is what the file says, 'all' is what users run.
const LEVELS = ['disabled', 'all'];
const BASE_TOLERANCE = { float32: 1e-4, float16: 1e-2 };
const NOISE_MARGIN = 4;
const WEAK_TOLERANCE = 5e-2; // a difference beyond this that rounding allows proves nothing

export const DEFAULTS = { seed: 1, distribution: 'normal', threads: 1, also: [] };

/**
 * Compares one pruned model with its original.
 * @param job {original, small, plan: paths; specs: parsed --input arguments}
 * @returns what --json prints:
 *   verdict     'exact'; 'mixes'; 'weak', if a difference is allowed only because the original itself
 *               rounds as much; 'MISMATCH' or 'NONFINITE'
 *   difference  max|a - b| / max|a|, the largest over probes and both optimization levels, of the
 *               output closest to its tolerance or furthest beyond it; null: infinite, or none
 *   tolerance   what was allowed there
 *   noise       the reference's own difference between the two levels there
 *   degenerate  no output moves by more than its tolerance between inputs: that proves little
 *   inputs      [{name, type, shape}], with probes, batches and seed: what was fed
 *   choices     values from which the small model chooses, and got the reference's instead of its own:
 *               with these it chose otherwise. They are among the outputs
 *   outputs     [{name, type, shape, difference, tolerance, noise, signal, degenerate, ...}]
 *   tensors     {sliced, as_planned, absent, wrong}: the small file's tensors against the plan
 *   notes       sentences for a person
 * @throws Error on an unusable file, RuntimeRefusal where the original cannot be run
 */
export async function compare(job, options) {
  const started = performance.now();
  const plan = readPlan(job.plan);
  const original = Model.read(job.original);
  const small = Model.read(job.small);
  const reference = Model.read(job.original);
  maskModel(reference, plan);
  const tensors = checkTensors(original, small, plan);
  const shown = shownValues(original, small, options.also);
  const probes = await chooseProbes(job.original, original, job.specs, options);

  for (const model of [reference, small]) shown.forEach((name) => model.addOutput(name));

  const base =
    options.tolerance ?? BASE_TOLERANCE[original.usesType('float16') ? 'float16' : 'float32'];
  const mixes = planMixes(plan);
  const models = { reference, small, path: job.small, tensors, mixes, base };
  const alone = await runBoth(models, probes.feeds, options);
  const { wanted, refusal, outputs, verdict, choices } =
    (await runWithChoices(models, probes.feeds, alone, options)) ?? alone;
  const worst = worstOf(outputs);
  return {
    original: job.original,
    small: job.small,
    plan: job.plan,
    verdict,
    difference: worst?.difference ?? null,
    tolerance: worst?.tolerance ?? base,
    noise: worst?.noise ?? null,
    degenerate: outputs.length > 0 && outputs.every(({ degenerate }) => degenerate),
    seed: options.seed,
    probes: probes.feeds.length,
    batches: probes.batches,
    inputs: probes.inputs,
    choices,
    outputs,
    tensors,
    notes: [
      ...sourceNotes(job.original, plan),
      ...(refusal ? [`the small model does not run: ${refusal}`] : []),
      ...(choices.length > 0 ? [choicesNote(choices)] : []),
      ...(outputs.some(({ nan }) => nan)
        ? await blameNaN(job.original, probes.feeds, wanted, options)
        : []),
      ...outputs.flatMap((output) => outputNotes(output, mixes)),
      ...tensors.wrong,
    ],
    seconds: (performance.now() - started) / 1000,
  };
}

/** Runs one model on seeded inputs: does it load, run, and stay finite? */
export async function smoke(path, specs, options) {
  const { feeds, batches, inputs } = await chooseProbes(path, Model.read(path), specs, options);
  const results = await runAll(path, 'all', feeds, options.threads);
  const outputs = results[0].map(({ name, type, shape }, o) => ({
    name,
    type,
    shape,
    finite: results.every((run) => isFinite(run[o].data)),
    signal: signalOf(results.map((run) => run[o])),
  }));
  const verdict = outputs.every(({ finite }) => finite) ? 'finite' : 'NONFINITE';
  return {
    model: path,
    verdict,
    seed: options.seed,
    probes: feeds.length,
    batches,
    inputs,
    outputs,
  };
}

// What keeps no more of its first input than an order or a ratio; and what passes values on.
const HIDES = new Set([
  'ArgMax',
  'ArgMin',
  'TopK',
  'Greater',
  'GreaterOrEqual',
  'Less',
  'LessOrEqual',
  'Softmax',
  'Sigmoid',
]);
const PASSES = new Set([
  'Cast',
  'Squeeze',
  'Unsqueeze',
  'Reshape',
  'Flatten',
  'Transpose',
  'Identity',
]);

/** Inner values to compare too: a class or a saturated score hides what it was made from. */
function shownValues(original, small, also) {
  for (const name of also) {
    if (!original.knows(name) || !small.knows(name)) {
      throw new UsageError(`--also "${name}": both models must compute it`);
    }
  }
  const outputs = original.outputs.map(({ name }) => name);
  const behind = outputs
    .map((name) => hiddenBehind(original, name))
    .filter((name) => small.knows(name));
  return [...new Set([...also, ...behind])].filter((name) => !outputs.includes(name));
}

/** The value that an output only looks at, or undefined where the output tells all there is. */
function hiddenBehind(model, output) {
  let hidden;
  for (let node, value = output; (node = model.producers.get(value)); value = node.inputs[0]) {
    if (HIDES.has(node.opType) && model.knows(node.inputs[0])) hidden = node.inputs[0];
    else if (!PASSES.has(node.opType)) break;
  }
  return hidden;
}

/** Runs the reference and the small model, and compares them. */
async function runBoth({ reference, small, path, tensors, mixes, base }, feeds, options) {
  const wanted = await runLevels(reference.encode(), feeds, options);
  const found = await orRefusal(runSmall(path, small, feeds, options));
  const { refusal } = found;
  const outputs = refusal ? [] : measureOutputs(wanted, found, base);
  const verdict = verdictOf({ mixes, refusal, outputs, tensors, base });
  return { wanted, refusal, outputs, verdict, choices: [] };
}

/** Once more where the two may have chosen differently; undefined where that explains nothing. */
async function runWithChoices(models, feeds, alone, options) {
  const { reference, small, tensors, mixes } = models;
  const doubtful = ['MISMATCH', 'weak'].includes(alone.verdict);
  if (!doubtful || alone.refusal || mixes || tensors.wrong.length > 0) return undefined;
  const given = await orRefusal(giveChoices(reference, small, feeds, options));
  if (given.refusal || given.operands.length === 0) return undefined;
  const again = await orRefusal(runBoth({ ...models, path: undefined }, given.feeds, options));
  return again.verdict === 'exact' ? { ...again, choices: given.operands } : undefined;
}

/** One entry per level, each with one entry per probe, each with one entry per output. */
async function runLevels(model, feeds, { threads }) {
  const results = [];
  for (const level of LEVELS) results.push(await runAll(model, level, feeds, threads));
  return results;
}

/** The file itself, if it takes these feeds, must run as well, as its user will run it. */
async function runSmall(path, model, feeds, options) {
  if (path) await runAll(path, 'all', feeds.slice(0, 1), options.threads);
  return runLevels(model.encode(), feeds, options);
}

async function orRefusal(promise) {
  try {
    return await promise;
  } catch (error) {
    if (error instanceof RuntimeRefusal) return { refusal: error.message };
    throw error;
  }
}

function measureOutputs(wanted, found, base) {
  return wanted[0][0].map(({ name, type, shape }, o) => {
    const match = found[0][0].findIndex((output) => output.name === name);
    const output = { name, type, shape };
    if (match < 0) {
      return { ...output, difference: Infinity, tolerance: base, noise: 0, missing: true };
    }
    const a = wanted.map((probes) => probes.map((run) => run[o]));
    const b = found.map((probes) => probes.map((run) => run[match]));
    return { ...output, ...measure(a, b, base) };
  });
}

/** a, b: one output of the reference and of the small model, [level][probe]. */
function measure(a, b, base) {
  const noise = largest(a[0].map((run, p) => differenceOf(run, a[1][p]))).difference;
  const tolerance = Math.max(base, Number.isFinite(noise) ? NOISE_MARGIN * noise : 0);
  const signal = signalOf(a[0]);
  return {
    ...largest(
      a.flatMap((probes, level) => probes.map((run, p) => differenceOf(run, b[level][p]))),
    ),
    tolerance,
    noise,
    signal,
    degenerate: signal !== null && signal <= tolerance,
    nan: [...a, ...b].flat().some(({ data }) => hasNaN(data)),
    finite: b.flat().every(({ data }) => isFinite(data)),
  };
}

const largest = (entries) => entries.reduce((a, b) => (b.difference > a.difference ? b : a));

const worstOf = (outputs) =>
  outputs.reduce(
    (a, b) => (!a || b.difference / b.tolerance > a.difference / a.tolerance ? b : a),
    undefined,
  );

export function verdictOf({ mixes, refusal, outputs, tensors, base }) {
  const unlike = tensors.wrong.length > 0 || outputs.some(({ missing }) => missing);
  if (refusal || unlike) return 'MISMATCH';
  if (mixes) {
    if (outputs.some(({ rank_differs: differs }) => differs)) return 'MISMATCH';
    return outputs.every(({ finite }) => finite) ? 'mixes' : 'NONFINITE';
  }
  if (outputs.some(({ nan }) => nan)) return 'NONFINITE';
  if (outputs.some(({ difference, tolerance }) => !(difference <= tolerance))) return 'MISMATCH';
  const weak = ({ difference }) => difference > Math.max(base, WEAK_TOLERANCE);
  return outputs.some(weak) ? 'weak' : 'exact';
}

function sourceNotes(path, plan) {
  if (!plan.source?.sha256) return [];
  const hash = createHash('sha256').update(readFileSync(path)).digest('hex');
  return hash === plan.source.sha256 ? [] : ['the plan was made for another file (sha256 differs)'];
}

/** Says whose fault a NaN is: the inputs', the masking's or the small model's. */
async function blameNaN(path, feeds, wanted, { threads }) {
  const anyNaN = (results) => results.flat(2).some(({ data }) => hasNaN(data));
  if (!anyNaN(wanted)) return ['the small model gives NaN where the masked original does not'];
  return [
    anyNaN(await runAll(path, 'all', feeds, threads))
      ? 'the original itself gives NaN on these inputs: choose others'
      : 'the masked original gives NaN, the original does not: a division by what was removed',
  ];
}

const choicesNote = (choices) =>
  `it chose otherwise in the last bits: where it chooses it was given the original's numbers ` +
  `(${choices.map((name) => `"${name}"`).join(', ')}), and its own are compared with them`;

function outputNotes(output, mixes) {
  const which = `output "${output.name}"`;
  if (output.missing) return [`${which} is missing in the small model`];
  const notes = [];
  if (output.shape_found) {
    notes.push(
      `${which}: the small model gives shape [${output.shape_found}], ` +
        `the original [${output.shape_wanted}]`,
    );
  }
  if (!mixes && output.tolerance > WEAK_TOLERANCE) {
    notes.push(
      `${which}: the check is weak, the original itself rounds by ${output.noise.toExponential(1)}`,
    );
  }
  // An index that stays is no wonder in so few probes; the values behind it are measured.
  if (output.degenerate && /float/.test(output.type)) {
    notes.push(
      `${which} of the masked original ${
        output.signal === 0 ? 'is the same for every input' : 'hardly depends on the input'
      }: its agreement proves little`,
    );
  }
  return notes;
}
