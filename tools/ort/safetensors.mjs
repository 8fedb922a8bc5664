// The file of values beside a plan.

import { readFileSync } from 'node:fs';

const LENGTH_BYTES = 8;

/** The bytes of each tensor, by name. */
export function readSafetensors(path) {
  const file = readFileSync(path);
  const length = Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.subarray(LENGTH_BYTES, LENGTH_BYTES + length).toString('utf8'));
  const data = file.subarray(LENGTH_BYTES + length);
  return new Map(
    Object.entries(header)
      .filter(([name]) => name !== '__metadata__')
      .map(([name, { data_offsets: [begin, end] }]) => [name, data.subarray(begin, end)]),
  );
}
