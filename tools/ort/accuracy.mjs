// Accuracy of a classifier: how often its largest output is the label.

import { toHalf } from './float16.mjs';
import { Model } from './model.mjs';
import { Session } from './runtime.mjs';

const OPEN_BATCH = 100;

// How a transformed pixel is stored in each type of input that images may have.
const STORES = {
  float32: [Float32Array, Number],
  float64: [Float64Array, Number],
  float16: [Uint16Array, toHalf],
  uint8: [Uint8Array, Math.round],
  int32: [Int32Array, Math.round],
};

/**
 * @param images {dims, data}, labels {dims, data}: as read by idx.mjs
 * @param options {scale, mean, std, count, threads}: a pixel p is fed as (p * scale - mean) / std
 * @returns {correct, total}
 */
export async function accuracy(path, images, labels, options) {
  const [input, ...more] = Model.read(path).inputs;
  if (!input?.dims || more.length > 0)
    throw new Error(`${path}: wanted a model with one tensor as input`);
  if (images.dims[0] !== labels.data.length) {
    throw new Error(`found ${images.dims[0]} images, but ${labels.data.length} labels`);
  }
  const sample = images.data.length / images.dims[0];
  const shape = sampleShape(path, input, sample);
  const total = Math.min(images.dims[0], options.count ?? Infinity);
  const batch = typeof input.dims[0] === 'number' ? input.dims[0] : Math.min(OPEN_BATCH, total);
  const session = await Session.open(path, 'all', options.threads);
  try {
    let correct = 0;
    for (let start = 0; start < total; start += batch) {
      const count = Math.min(batch, total - start);
      // A fixed batch is filled up with what lies at hand; the surplus is not counted.
      const size = typeof input.dims[0] === 'number' ? batch : count;
      const pixels = images.data.subarray(start * sample, (start + count) * sample);
      const data = transform(pixels, size * sample, input.type, options);
      const [output] = await session.run([
        { name: input.name, type: input.type, shape: [size, ...shape], data },
      ]);
      const classes = classesOf(output, size);
      for (let i = 0; i < count; ++i) correct += classes[i] === labels.data[start + i] ? 1 : 0;
    }
    return { correct, total };
  } finally {
    await session.close();
  }
}

function sampleShape(path, { name, type, dims }, sample) {
  const shape = dims.slice(1);
  const fits =
    STORES[type] &&
    shape.every((dim) => typeof dim === 'number') &&
    shape.reduce((a, b) => a * b, 1) === sample;
  if (!fits) {
    throw new Error(
      `${path}: input "${name}" is ${type} [${dims.map((dim) => dim || '?')}], ` +
        `the images have ${sample} pixels each`,
    );
  }
  return shape;
}

function transform(pixels, length, type, { scale, mean, std }) {
  const [Values, store] = STORES[type];
  const data = new Values(length);
  pixels.forEach((pixel, i) => {
    data[i] = store((pixel * scale - mean) / std);
  });
  return data;
}

/** Scores give the class of the largest; a model that ends in ArgMax gives the class itself. */
function classesOf({ type, data }, batch) {
  const width = data.length / batch;
  if (width === 1 && /int/.test(type)) return Array.from(data);
  return Array.from({ length: batch }, (_, i) => {
    const scores = data.subarray(i * width, (i + 1) * width);
    return scores.indexOf(Math.max(...scores));
  });
}
