// Probes: inputs on which the original is known to run.

import { RuntimeRefusal } from './errors.mjs';
import { atBatch, candidates, draw } from './inputs.mjs';
import { mixSeeds } from './random.mjs';
import { Session } from './runtime.mjs';

// Few numbers may leave no channel alive behind a ReLU, and cost little: more of them are tried.
const PROBES = 3;
const PROBES_IF_SMALL = 8;
const SMALL_ELEMENTS = 1e4;

const OTHER_BATCH = 3;
const OTHER_BATCH_ELEMENTS = 1e6; // beyond this a second batch size costs more than it shows

/**
 * Finds sizes at which the model runs and draws the probes. Where the batch is open, one more probe
 * has another batch size: a batch written into the small model by mistake shows there alone.
 * @returns {feeds, batches, inputs}: the drawn values; what to report of them
 */
export async function chooseProbes(path, model, specs, options) {
  const session = await Session.open(path, 'all', options.threads);
  try {
    const candidate = await firstThatRuns(session, candidates(model.inputs, specs), options);
    const probe = (i, shapes) => draw(shapes, mixSeeds(options.seed, i), options.distribution);
    const count =
      options.probes ?? (elementsOf(candidate) <= SMALL_ELEMENTS ? PROBES_IF_SMALL : PROBES);
    const feeds = Array.from({ length: count }, (_, i) => probe(i, candidate));

    const other = atBatch(candidate, OTHER_BATCH);
    const batches = other ? [batchOf(candidate, other)] : [];
    if (other && elementsOf(other) <= OTHER_BATCH_ELEMENTS && batches[0] !== OTHER_BATCH) {
      const more = probe(count, other);
      if (await runs(session, more)) {
        feeds.push(more);
        batches.push(OTHER_BATCH);
      }
    }
    const inputs = candidate.arguments.map(({ name, type, shape }) => ({ name, type, shape }));
    return { feeds, batches, inputs };
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
  throw new RuntimeRefusal(`the model runs on no inputs tried; give --input. ${refusal.message}`);
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

function batchOf(candidate, other) {
  const changed = candidate.arguments.findIndex(
    ({ shape }, i) => `${shape}` !== `${other.arguments[i].shape}`,
  );
  return changed < 0 ? OTHER_BATCH : candidate.arguments[changed].shape[0];
}

const elementsOf = (candidate) =>
  candidate.arguments.reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1), 0);
