#!/usr/bin/env node
// Accuracy of a classification model over idx images and labels, run by ONNX Runtime.

import { parseArgs } from 'node:util';

import { accuracy } from './ort/accuracy.mjs';
import { reportError, UsageError } from './ort/errors.mjs';
import { readIdx } from './ort/idx.mjs';

const USAGE = `usage: ort_accuracy.mjs MODEL.onnx IMAGES LABELS [options]
  IMAGES, LABELS     idx files, plain or .gz
  --scale S          a number or a fraction like 1/255 (1)
  --mean M, --std D  a pixel p is fed as (p * S - M) / D (0, 1)
  --count N          only the first N images
  --threads N        for ONNX Runtime (1)

Prints correct/total (percent). exit: 0 done, 2 usage, 3 the model cannot be run, 4 files`;

function readNumber(name, text) {
  const [above, below = '1'] = text.split('/');
  const value = Number(above) / Number(below);
  if (text === '' || !Number.isFinite(value))
    throw new UsageError(`--${name} "${text}": wanted a number`);
  return value;
}

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      scale: { type: 'string', default: '1' },
      mean: { type: 'string', default: '0' },
      std: { type: 'string', default: '1' },
      count: { type: 'string' },
      threads: { type: 'string', default: '1' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help) return console.log(USAGE);
  if (positionals.length !== 3) throw new UsageError('wanted MODEL.onnx IMAGES LABELS');
  const { help, ...texts } = values;
  const options = Object.fromEntries(
    Object.entries(texts).map(([name, text]) => [name, readNumber(name, text)]),
  );
  const [model, images, labels] = positionals;
  const { correct, total } = await accuracy(model, readIdx(images), readIdx(labels), options);
  return console.log(`${correct}/${total} (${((100 * correct) / total).toFixed(1)}%)`);
}

main().catch((error) => {
  process.exitCode = reportError('ort_accuracy.mjs', error, USAGE);
});
