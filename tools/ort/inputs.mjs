// What the models are fed: shapes from the file or from --input, values from a seed.

import { readFileSync } from 'node:fs';
import { basename } from 'node:path';

import { RuntimeRefusal, UsageError } from './errors.mjs';
import { toHalf } from './float16.mjs';
import { mixSeeds, normal, uniform } from './random.mjs';

// Sizes for dimensions the file leaves open, in the order tried: nets that halve their input need
// multiples of 32, speech nets a minimum length; small ones come last because they prove least.
const OPEN_SIZES = [32, 64, 160, 224, 320, 512, 640, 16, 8, 4, 2, 1];

// Upper ends for random integers: the first serves bytes and word indices, the second every mask.
const INTEGER_RANGES = [256, 2];
const FLAG_LIKE = /mask|type|segment|flag|padding/i;

const ALIASES = { float: 'float32', half: 'float16', double: 'float64' };
/** By element type; half precision as its bits. */
export const ARRAYS = {
  float32: Float32Array,
  float64: Float64Array,
  float16: Uint16Array,
  bool: Uint8Array,
  int8: Int8Array,
  uint8: Uint8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
};

export const DISTRIBUTIONS = ['normal', 'uniform', 'pixels'];

/** Reads `1x3x32x32`, `2x8:int64` or `:int64=16000`. */
export function parseSpec(text) {
  const match = /^(\d+(?:x\d+)*)?(?::(\w+))?(?:=(\S+))?$/.exec(text);
  if (!match || text === '') {
    throw new UsageError(
      `--input "${text}": wanted a form like 1x3x32x32, 2x8:int64 or :int64=16000`,
    );
  }
  const [, shape, type, value] = match;
  const spec = {
    shape: shape ? shape.split('x').map(Number) : [],
    type: type && (ALIASES[type] ?? type),
    value: value === undefined ? undefined : Number(value),
  };
  if (spec.type && !ARRAYS[spec.type])
    throw new UsageError(`--input "${text}": unknown type "${type}"`);
  if (Number.isNaN(spec.value)) throw new UsageError(`--input "${text}": "${value}" is no number`);
  return spec;
}

/** Reads lines `file<TAB>SPEC SPEC ...` into a map from file to specs; `#` begins a comment. */
export function readSpecTable(path) {
  const rows = readFileSync(path, 'utf8')
    .split('\n')
    .filter((row) => row.trim() && !row.startsWith('#'));
  return new Map(
    rows.map((row) => {
      const [file, specs = ''] = row.split('\t');
      return [file, specs.split(/\s+/).filter(Boolean)];
    }),
  );
}

export const specsFor = (table, modelPath) => table?.get(basename(modelPath)) ?? [];

/**
 * Every way to fill what the model and the specs leave open, best first. Each is
 * {arguments: [{name, type, dims, shape, value, integers}]}.
 */
export function* candidates(args, specs) {
  if (specs.length > args.length) {
    throw new UsageError(`${specs.length} times --input, but the model has ${args.length} inputs`);
  }
  args.forEach((arg, i) => requireFit(arg, specs[i]));
  const hasIntegers = args.some((arg, i) => /int/.test(arg.type) && specs[i]?.value === undefined);
  const isOpen = args.some(
    (arg, i) => !specs[i] && arg.dims.some((dim, d) => typeof dim === 'string' && d > 0),
  );
  for (const size of isOpen ? OPEN_SIZES : [1]) {
    for (const range of hasIntegers ? INTEGER_RANGES : [0]) yield fill(args, specs, size, range);
  }
}

function requireFit(arg, spec) {
  if (!arg.dims) throw new RuntimeRefusal(`input "${arg.name}" is not a tensor`);
  if (!ARRAYS[arg.type]) throw new RuntimeRefusal(`input "${arg.name}": ${arg.type} cannot be fed`);
  if (!spec) return;
  if (spec.type && spec.type !== arg.type) {
    throw new UsageError(`input "${arg.name}" is ${arg.type}, --input says ${spec.type}`);
  }
  const fits =
    spec.shape.length === arg.dims.length &&
    arg.dims.every((dim, d) => typeof dim === 'string' || dim === spec.shape[d]);
  if (!fits) {
    throw new UsageError(
      `input "${arg.name}" has shape [${arg.dims.map((dim) => dim || '?')}], ` +
        `--input says [${spec.shape}]`,
    );
  }
}

function fill(args, specs, size, range) {
  const symbols = new Map();
  args.forEach(({ dims }, i) =>
    dims.forEach((dim, d) => {
      if (typeof dim === 'string' && dim && specs[i]) symbols.set(dim, specs[i].shape[d]);
    }),
  );
  args.forEach(({ dims }, i) => {
    const dim = dims[0];
    if (!specs[i] && typeof dim === 'string' && dim && !symbols.has(dim)) symbols.set(dim, 1);
  });
  const sizeOf = (dim, d) =>
    typeof dim === 'number' ? dim : (symbols.get(dim) ?? (d === 0 ? 1 : size));
  return {
    arguments: args.map(({ name, type, dims }, i) => ({
      name,
      type,
      dims,
      shape: specs[i]?.shape ?? dims.map(sizeOf),
      value: specs[i]?.value,
      integers: FLAG_LIKE.test(name) ? 2 : range,
    })),
  };
}

/**
 * The same arguments at another batch size; undefined where the batch is fixed or cannot be told.
 */
export function atBatch(candidate, batch) {
  const open = candidate.arguments
    .map(({ dims }) => dims[0])
    .filter((dim) => typeof dim === 'string');
  if (new Set(open).size !== 1) return undefined;
  const isBatch = (dim, d) => dim === open[0] && (dim !== '' || d === 0);
  return {
    ...candidate,
    arguments: candidate.arguments.map((arg) => ({
      ...arg,
      shape: arg.shape.map((size, d) => (isBatch(arg.dims[d], d) ? batch : size)),
    })),
  };
}

/** Draws values: returns [{name, type, shape, data}], the data as plain typed arrays. */
export function draw(candidate, seed, distribution = 'normal') {
  return candidate.arguments.map(({ name, type, shape, value, integers }, i) => {
    const next = uniform(mixSeeds(seed, i));
    const count = shape.reduce((product, dim) => product * dim, 1);
    const data = new ARRAYS[type](count);
    const sample = value !== undefined ? () => value : sampler(type, distribution, integers, next);
    const store = storeAs(type);
    for (let k = 0; k < count; ++k) data[k] = store(sample());
    return { name, type, shape, data };
  });
}

function sampler(type, distribution, integers, next) {
  if (type === 'bool') return () => Math.floor(next() * 2);
  if (/int/.test(type)) {
    const end = /int8/.test(type) ? Math.min(integers, 128) : integers;
    return () => Math.floor(next() * end);
  }
  if (distribution === 'uniform') return next;
  if (distribution === 'pixels') return () => Math.floor(next() * 256);
  return normal(next);
}

function storeAs(type) {
  if (type === 'float16') return toHalf;
  if (type === 'int64' || type === 'uint64') return (value) => BigInt(Math.trunc(value));
  return (value) => value;
}
