// TensorProto: its element types, its values as plain little-endian bytes, and cuts along an axis.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The numbers of TensorProto's fields. */
export const TensorField = {
  dims: 1,
  dataType: 2,
  floatData: 4,
  int32Data: 5,
  stringData: 6,
  int64Data: 7,
  name: 8,
  rawData: 9,
  doubleData: 10,
  uint64Data: 11,
  externalData: 13,
  dataLocation: 14,
};

const EXTERNAL = 1;

// [name, bytes per element, typed field that holds it where raw_data does not, bits in a file]
const F = TensorField;
const ELEMENT_TYPES = {
  1: ['float32', 4, F.floatData],
  2: ['uint8', 1, F.int32Data],
  3: ['int8', 1, F.int32Data],
  4: ['uint16', 2, F.int32Data],
  5: ['int16', 2, F.int32Data],
  6: ['int32', 4, F.int32Data],
  7: ['int64', 8, F.int64Data],
  8: ['string', 0, F.stringData],
  9: ['bool', 1, F.int32Data],
  10: ['float16', 2, F.int32Data],
  11: ['float64', 8, F.doubleData],
  12: ['uint32', 4, F.uint64Data],
  13: ['uint64', 8, F.uint64Data],
  14: ['complex64', 8, F.floatData],
  15: ['complex128', 16, F.doubleData],
  16: ['bfloat16', 2, F.int32Data],
  17: ['float8e4m3fn', 1, F.int32Data],
  18: ['float8e4m3fnuz', 1, F.int32Data],
  19: ['float8e5m2', 1, F.int32Data],
  20: ['float8e5m2fnuz', 1, F.int32Data],
  21: ['uint4', 1, F.int32Data, 4],  // two in a byte
  22: ['int4', 1, F.int32Data, 4],
};

export const typeName = (dataType) => ELEMENT_TYPES[dataType]?.[0] ?? `type ${dataType}`;
export const typeNumber = (name) =>
  Number(Object.keys(ELEMENT_TYPES).find((key) => ELEMENT_TYPES[key][0] === name));

/** A view of one TensorProto; changing it changes the model that the message belongs to. */
export class Tensor {
  constructor(message, folder) {
    this.message = message;
    this.folder = folder;
    this.dims = message.ints(F.dims).map(Number);
    this.type = typeName(message.int(F.dataType));
    const [, width, field, bits] = ELEMENT_TYPES[message.int(F.dataType)] ?? [];
    this.width = width;
    this.typedField = field;
    this.isPacked = bits === 4;
  }

  get name() {
    return this.message.text(F.name);
  }

  get count() {
    return this.dims.reduce((product, dim) => product * dim, 1);
  }

  get isExternal() {
    return this.message.int(F.dataLocation) === EXTERNAL;
  }

  /** The values, little-endian, row-major; a copy that the caller may write to. */
  bytes() {
    if (!this.width) throw new Error(`tensor "${this.name}": ${this.type} elements cannot be cut`);
    const stored = this.#stored();
    const bytes = this.isPacked ? unpacked(stored, this.count, this.type) : Buffer.from(stored);
    const wanted = this.count * this.width;
    if (bytes.length !== wanted) {
      throw new Error(
        `tensor "${this.name}": found ${bytes.length} bytes of data, its shape ` +
          `[${this.dims}] of ${this.type} wants ${wanted}`,
      );
    }
    return bytes;
  }

  /** Stores values as raw_data, wherever they stood before. */
  setBytes(bytes) {
    this.message.remove(
      F.floatData,
      F.int32Data,
      F.int64Data,
      F.doubleData,
      F.uint64Data,
      F.rawData,
      F.externalData,
      F.dataLocation,
    );
    this.message.addBytes(F.rawData, this.isPacked ? packed(bytes) : bytes);
  }

  #storedBytes() {
    return this.isPacked ? Math.ceil(this.count / 2) : this.count * this.width;
  }

  #stored() {
    if (this.isExternal) return this.#external();
    const raw = this.message.bytes(F.rawData);
    if (raw) return raw;
    if (this.typedField === F.floatData || this.typedField === F.doubleData) {
      return this.message.run(this.typedField);
    }
    const values = this.message.ints(this.typedField);
    const bytes = Buffer.alloc(values.length * this.width);
    values.forEach((value, i) => {
      for (let b = 0, rest = BigInt.asUintN(64, value); b < this.width; ++b, rest >>= 8n) {
        bytes[i * this.width + b] = Number(rest & 0xffn);
      }
    });
    return bytes;
  }

  #external() {
    const entries = this.message
      .messages(F.externalData)
      .map((entry) => [entry.text(1), entry.text(2)]);
    const { location, offset = 0, length } = Object.fromEntries(entries);
    const file = readFileSync(join(this.folder, location));
    const start = Number(offset);
    return file.subarray(start, start + Number(length ?? this.#storedBytes()));
  }
}

/** A byte per element of 4 bits, of which the first lies in the low half. */
function unpacked(bytes, count, type) {
  const sign = type === 'int4' ? 8 : 0;
  return Buffer.from(
    Array.from({ length: count }, (_, i) => {
      const code = (bytes[i >> 1] >> ((i % 2) * 4)) & 15;
      return ((code ^ sign) - sign) & 255;
    }),
  );
}

function packed(elements) {
  const bytes = Buffer.alloc(Math.ceil(elements.length / 2));
  elements.forEach((element, i) => {
    bytes[i >> 1] |= (element & 15) << ((i % 2) * 4);
  });
  return bytes;
}

/** Overwrites every index along `axis` that is not in `keep`, in place, with the bytes of `element(i)`. */
export function maskAxis(bytes, dims, width, axis, keep, element) {
  const { outer, size, run } = axisStrides(dims, width, axis);
  const kept = new Set(keep);
  for (let o = 0; o < outer; ++o) {
    for (let i = 0; i < size; ++i) {
      if (kept.has(i)) continue;
      const start = (o * size + i) * run;
      for (let at = start; at < start + run; at += width) {
        bytes.fill(element(at / width), at, at + width);
      }
    }
  }
}

/** Returns only the indices in `keep` along `axis`. */
export function takeAxis(bytes, dims, width, axis, keep) {
  const { outer, size, run } = axisStrides(dims, width, axis);
  const parts = [];
  for (let o = 0; o < outer; ++o) {
    for (const i of keep)
      parts.push(bytes.subarray((o * size + i) * run, (o * size + i + 1) * run));
  }
  return Buffer.concat(parts);
}

// How to read |value| of one element; the magnitudes of 16-bit floats are ordered as their bits.
const MAGNITUDES = {
  float32: (bytes, at) => Math.abs(bytes.readFloatLE(at)),
  float64: (bytes, at) => Math.abs(bytes.readDoubleLE(at)),
  float16: (bytes, at) => bytes.readUInt16LE(at) & 0x7fff,
  bfloat16: (bytes, at) => bytes.readUInt16LE(at) & 0x7fff,
  int8: (bytes, at) => Math.abs(bytes.readInt8(at)),
};

/** Zeroes the `count` elements of least magnitude, in place; ties fall to the lower index. */
export function zeroSmallest(bytes, type, width, count) {
  const magnitude = MAGNITUDES[type];
  if (!magnitude) throw new Error(`${type} elements have no magnitude`);
  const order = Array.from({ length: bytes.length / width }, (_, i) => i);
  const keys = order.map((i) => magnitude(bytes, i * width));
  order.sort((a, b) => keys[a] - keys[b] || a - b);
  for (const i of order.slice(0, count)) bytes.fill(0, i * width, (i + 1) * width);
}

function axisStrides(dims, width, axis) {
  const product = (part) => part.reduce((a, b) => a * b, 1);
  return {
    outer: product(dims.slice(0, axis)),
    size: dims[axis],
    run: product(dims.slice(axis + 1)) * width,
  };
}
