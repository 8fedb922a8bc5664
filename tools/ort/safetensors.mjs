// Files of tensors by name: the values beside a plan, what a network is run on.

import { readFileSync, writeFileSync } from 'node:fs';

const LENGTH_BYTES = 8;
const TYPES = { F32: 'float32', F64: 'float64', I32: 'int32', I64: 'int64' };

/** {dtype, shape, bytes} of each tensor, by name. */
function readRows(path) {
  const file = readFileSync(path);
  const length = Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.subarray(LENGTH_BYTES, LENGTH_BYTES + length).toString('utf8'));
  const data = file.subarray(LENGTH_BYTES + length);
  const { __metadata__, ...tensors } = header;
  return Object.entries(tensors).map(([name, { dtype, shape, data_offsets: [begin, end] }]) => [
    name,
    { dtype, shape, bytes: data.subarray(begin, end) },
  ]);
}

/** The bytes of each tensor, by name. */
export const readSafetensors = (path) =>
  new Map(readRows(path).map(([name, { bytes }]) => [name, bytes]));

/** {name, type, shape, bytes} of each tensor. */
export const readTensors = (path) =>
  readRows(path).map(([name, { dtype, shape, bytes }]) => ({ name, type: TYPES[dtype], shape, bytes }));

/** Writes tensors {name, shape, data}, as float32. */
export function writeTensors(path, tensors) {
  write(path, 'F32', tensors, (data) => Float32Array.from(data));
}

/** The same as int64. */
export function writeIntegers(path, tensors) {
  write(path, 'I64', tensors, (data) => BigInt64Array.from(data, BigInt));
}

function write(path, dtype, tensors, typed) {
  let offset = 0;
  const header = {};
  const all = tensors.map(({ name, shape, data }) => {
    const bytes = new Uint8Array(typed(data).buffer);
    header[name] = { dtype, shape, data_offsets: [offset, offset + bytes.length] };
    offset += bytes.length;
    return bytes;
  });
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeBigUInt64LE(BigInt(text.length));
  writeFileSync(path, Buffer.concat([length, text, ...all]));
}
