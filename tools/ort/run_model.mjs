#!/usr/bin/env node
// Runs a model on ONNX Runtime on tensors that lie in files, and writes its outputs to files.
//
//   run_model.mjs MODEL.onnx FOLDER
//
// FOLDER/inputs.txt has one line per input of the model that is no initializer, in order: name,
// type, shape ("1x3x32x32", "-" for a scalar), between tabs; FOLDER/input_0.raw and so on hold
// their elements. FOLDER/outputs.txt and FOLDER/output_0.raw come in the same form, all elements
// as float64.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { EXIT, reportError, UsageError } from './errors.mjs';
import { ARRAYS } from './inputs.mjs';
import { runAll } from './runtime.mjs';

const USAGE = 'usage: run_model.mjs MODEL.onnx FOLDER';

const shapeText = (shape) => (shape.length === 0 ? '-' : shape.join('x'));

function readInputs(folder) {
  const lines = readFileSync(join(folder, 'inputs.txt'), 'utf8').split('\n').filter(Boolean);
  return lines.map((line, i) => {
    const [name, type, shape] = line.split('\t');
    const bytes = Uint8Array.from(readFileSync(join(folder, `input_${i}.raw`)));
    return {
      name,
      type,
      shape: shape === '-' ? [] : shape.split('x').map(Number),
      data: new ARRAYS[type](bytes.buffer),
    };
  });
}

function writeOutputs(folder, outputs) {
  outputs.forEach(({ data }, i) => {
    const numbers = Float64Array.from(data, Number);
    writeFileSync(join(folder, `output_${i}.raw`), new Uint8Array(numbers.buffer));
  });
  const lines = outputs.map(({ name, type, shape }) => `${name}\t${type}\t${shapeText(shape)}\n`);
  writeFileSync(join(folder, 'outputs.txt'), lines.join(''));
}

async function main([model, folder]) {
  if (folder === undefined) throw new UsageError('wanted a model and a folder');
  const [outputs] = await runAll(model, 'disabled', [readInputs(folder)], 1);
  writeOutputs(folder, outputs);
  return EXIT.fine;
}

main(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code;
  },
  (error) => {
    process.exitCode = reportError('run_model.mjs', error, USAGE);
  },
);
