// ONNX Runtime: where it is installed, and how a model is run on it.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';

import { RuntimeRefusal } from './errors.mjs';
import { fromHalf } from './float16.mjs';

/** The same folder as in install.sh. */
export function cacheFolder(environment = process.env) {
  const home = environment.XDG_CACHE_HOME || join(environment.HOME || homedir(), '.cache');
  return join(environment.PARSIMONY_CACHE || join(home, 'parsimony'), 'ort');
}

let runtime;

function loadRuntime() {
  if (runtime) return runtime;
  const folder = cacheFolder();
  if (!existsSync(join(folder, 'node_modules'))) {
    throw new Error(`ONNX Runtime is not in ${folder}: run tools/ort/install.sh`);
  }
  // Where JavaScript has halves, the package hands them to its native part, which takes them for empty.
  delete globalThis.Float16Array;
  runtime = createRequire(join(folder, 'package.json'))('onnxruntime-node');
  return runtime;
}

/** A loaded model. */
export class Session {
  /**
   * @param model a path, or the bytes of a self-contained file
   * @param level graph optimization: 'disabled' or 'all'
   */
  static async open(model, level, threads = 1) {
    const { InferenceSession } = loadRuntime();
    const options = {
      executionProviders: ['cpu'],
      graphOptimizationLevel: level,
      intraOpNumThreads: threads,
      interOpNumThreads: 1,
      logSeverityLevel: 4,
    };
    const session = new Session();
    session.inner = await refusing(InferenceSession.create(model, options));
    return session;
  }

  /** Feeds arrays as drawn by inputs.mjs; returns [{name, type, shape, data}], data as numbers. */
  async run(feeds) {
    const { Tensor } = loadRuntime();
    const tensors = feeds.map(({ name, type, shape, data }) => [
      name,
      new Tensor(type, data, shape),
    ]);
    const results = await refusing(this.inner.run(Object.fromEntries(tensors)));
    return this.inner.outputNames.map((name) => {
      const { type, dims, data } = results[name];
      return { name, type, shape: [...dims], data: plainNumbers(type, data) };
    });
  }

  close() {
    return this.inner.release();
  }
}

/** Opens, runs every set of feeds, closes: one model is held in memory at a time. */
export async function runAll(model, level, feedsList, threads) {
  const session = await Session.open(model, level, threads);
  try {
    const results = [];
    for (const feeds of feedsList) results.push(await session.run(feeds));
    return results;
  } finally {
    await session.close();
  }
}

async function refusing(promise) {
  try {
    return await promise;
  } catch (error) {
    throw new RuntimeRefusal(
      String(error.message ?? error)
        .trim()
        .split('\n')[0],
    );
  }
}

function plainNumbers(type, data) {
  if (type === 'int64' || type === 'uint64') return Float64Array.from(data, Number);
  // Where JavaScript has halves, the runtime already hands out numbers.
  if (type === 'float16' && data instanceof Uint16Array) return Float64Array.from(data, fromHalf);
  return data;
}
