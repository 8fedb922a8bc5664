// Runs a model on ONNX Runtime on samples one after the other; states go from each run to the next.

import { ARRAYS } from '../ort/inputs.mjs';
import { Model } from '../ort/model.mjs';
import { Session } from '../ort/runtime.mjs';
import { readTensors, writeTensors } from '../ort/safetensors.mjs';

/**
 * @param model a path
 * @param samples a safetensors file: arrays by input name; an array has an axis of samples in front of
 *   the input's shape, or in place of its first size
 * @param outputs the file that is written: for each output that is no state an array with the samples
 *   in front
 * @param states {input: output}; the first run has zeros
 * @param fixed {input: number}
 */
export async function runSamples(model, samples, outputs, { states, fixed }) {
  const inputs = Model.read(model).inputs;
  const tables = new Map(readTensors(samples).map((table) => [table.name, table]));
  const count = Math.min(...[...tables.values()].map(({ shape }) => shape[0]));
  const carried = new Map();
  const feed = (input, k) => {
    const { name, type } = input;
    const table = tables.get(name);
    if (table) return { name, type, ...entry(table, k, input.dims.length) };
    if (carried.has(name)) return { ...carried.get(name), name };
    const shape = input.dims.map((size) => (typeof size === 'number' ? size : 1));
    const data = new ARRAYS[type](shape.reduce((product, size) => product * size, 1));
    return { name, type, shape, data: data.fill(type === 'int64' ? BigInt(fixed[name] ?? 0) : (fixed[name] ?? 0)) };
  };
  const session = await Session.open(model, 'all', 2);
  const results = [];
  for (let k = 0; k < count; ++k) {
    const answers = await session.run(inputs.map((input) => feed(input, k)));
    for (const [input, output] of Object.entries(states)) {
      carried.set(input, answers.find(({ name }) => name === output));
    }
    results.push(answers.filter(({ name }) => !Object.values(states).includes(name)));
  }
  await session.close();
  writeTensors(outputs, joined(results));
}

function entry({ type, shape, bytes }, k, rank) {
  const size = bytes.length / shape[0];
  const own = Uint8Array.from(bytes.subarray(k * size, (k + 1) * size));
  const inner = shape.slice(1);
  return {
    shape: inner.length === rank ? inner : [1, ...inner],
    data: new ARRAYS[type](own.buffer),
  };
}

/** The runs' answers with a new first axis; that of a batch of one is taken away. */
function joined(results) {
  return results[0].map(({ name, shape }, i) => {
    const size = results[0][i].data.length;
    const data = new Float32Array(size * results.length);
    results.forEach((answers, k) => data.set(answers[i].data, k * size));
    return { name, shape: [results.length, ...(shape[0] === 1 ? shape.slice(1) : shape)], data };
  });
}
