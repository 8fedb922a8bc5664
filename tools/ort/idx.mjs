// The idx files of MNIST and its kin, plain or gzipped.

import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';

const UNSIGNED_BYTE = 0x08;

/** Returns {dims, data}; the first dimension counts samples. @throws Error on any other file. */
export function readIdx(path) {
  const stored = readFileSync(path);
  const bytes = stored[0] === 0x1f && stored[1] === 0x8b ? gunzipSync(stored) : stored;
  const rank = bytes[3];
  if (bytes[0] !== 0 || bytes[1] !== 0 || bytes[2] !== UNSIGNED_BYTE || !rank) {
    throw new Error(`${path}: not an idx file of bytes`);
  }
  const dims = Array.from({ length: rank }, (_, i) => bytes.readUInt32BE(4 + 4 * i));
  const data = bytes.subarray(4 + 4 * rank);
  const wanted = dims.reduce((a, b) => a * b, 1);
  if (data.length !== wanted)
    throw new Error(`${path}: found ${data.length} values, [${dims}] wants ${wanted}`);
  return { dims, data };
}
