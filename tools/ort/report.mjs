// What a person reads, and what a program reads.

import { basename } from 'node:path';

const number = (value) =>
  value === null ? '-' : Number.isFinite(value) ? value.toExponential(1) : 'infinite';
const shape = (dims) => `[${dims.join(', ')}]`;
const plural = (count, word) => `${count} ${word}${count === 1 ? '' : 's'}`;

export function comparisonText(result) {
  const { outputs, tensors } = result;
  const lines = [
    ...inputLines(result.inputs),
    ...table(
      ['output', 'type', 'shape', 'difference', 'tolerance', 'noise', 'signal'],
      outputs.map((output) => [
        output.name,
        output.type,
        shape(output.shape),
        number(output.difference),
        number(output.tolerance),
        number(output.noise),
        number(output.signal ?? null),
      ]),
    ),
    ...outputs
      .filter(({ difference, tolerance, at }) => difference > tolerance && at !== undefined)
      .map(
        ({ name, at, wanted, found }) => `${name}, element ${at}: found ${found}, wanted ${wanted}`,
      ),
    `tensors: ${tensors.sliced} sliced, ${tensors.as_planned} as planned, ` +
      `${tensors.absent.length} under another name, ${tensors.wrong.length} wrong`,
    ...result.notes.map((note) => `note: ${note}`),
    `${result.verdict}: largest relative difference ${number(result.difference)}, tolerance ` +
      `${number(result.tolerance)}, ${probesText(result)}`,
  ];
  return lines.join('\n');
}

export function smokeText(result) {
  return [
    ...inputLines(result.inputs),
    ...table(
      ['output', 'type', 'shape', 'finite', 'signal'],
      result.outputs.map((output) => [
        output.name,
        output.type,
        shape(output.shape),
        output.finite ? 'yes' : 'NO',
        number(output.signal),
      ]),
    ),
    `${result.verdict}: ${result.model}, ${probesText(result)}`,
  ].join('\n');
}

/** One row of a batch: `exact 2.1e-7 1.0e-4 small.onnx`. */
export function rowText(result) {
  const marks = [result.degenerate ? 'degenerate' : '', ...result.notes].filter(Boolean).join('; ');
  return [
    result.verdict.padEnd(9),
    number(result.difference).padStart(9),
    number(result.tolerance).padStart(9),
    basename(result.small),
    marks,
  ]
    .join('  ')
    .trimEnd();
}

export function summaryText(results) {
  const counts = new Map();
  for (const { verdict } of results) counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
  const parts = [...counts].map(([verdict, n]) => `${n} ${verdict}`);
  return `${plural(results.length, 'model')}: ${parts.join(', ')}`;
}

/** One line; JSON knows no infinity, null stands for it. */
export const json = (result) => JSON.stringify(result);

function probesText({ probes, batches, seed }) {
  const sizes = batches.length > 1 ? ` (batch ${batches.join(' and ')})` : '';
  return `${plural(probes, 'probe')}${sizes}, seed ${seed}`;
}

const inputLines = (inputs) =>
  inputs.map(({ name, type, shape: dims }) => `input ${name} ${type} ${shape(dims)}`);

function table(head, rows) {
  if (rows.length === 0) return [];
  const all = [head, ...rows];
  const widths = head.map((_, c) => Math.max(...all.map((row) => row[c].length)));
  return all.map((row) =>
    row
      .map((cell, c) => cell.padEnd(widths[c]))
      .join('  ')
      .trimEnd(),
  );
}
