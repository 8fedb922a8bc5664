// One of the ten networks with its data in a folder: what was prepared or answered once stays there.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { Model } from '../ort/model.mjs';
import { runSamples } from './run.mjs';

export const ALL = 'yolox_nano,nanodet,ultraface,candy,espcn,SINet,DTLN_model_1,gtcrn,silero,Magika';

const PYTHON = '/usr/bin/python3';
const SCRIPT = join(dirname(fileURLToPath(import.meta.url)), 'tasks.py');

/** Runs tasks.py; its answer. */
function tasks(...args) {
  return execFileSync(PYTHON, [SCRIPT, ...args], { encoding: 'utf8', maxBuffer: 1 << 26 });
}

/** What is done once stays in a file. */
export function once(path, make) {
  if (!existsSync(path)) writeFileSync(path, JSON.stringify(make()));
  return JSON.parse(readFileSync(path, 'utf8'));
}

export class Task {
  constructor(name, shared, root) {
    this.name = name;
    this.shared = shared;
    this.folder = join(root, name);
    mkdirSync(this.folder, { recursive: true });
    const about = once(this.at('about.json'), () => JSON.parse(tasks('prepare', name, shared, this.folder)));
    Object.assign(this, about);
    this.model = join(shared, 'models/onnx', `${about.file}.onnx`);
    if (!about.opened) return;
    const opened = Model.read(this.model);
    opened.openImageSizes();
    this.model = this.at('opened.onnx');
    writeFileSync(this.model, opened.encode());
  }

  at(file) {
    return join(this.folder, file);
  }

  /** The answers of MODEL.onnx in the folder, or of 'dense'; a path. */
  async outputs(model, part) {
    const path = this.at(`${model}.${part}.safetensors`);
    const file = model === 'dense' ? this.model : this.at(`${model}.onnx`);
    if (!existsSync(path)) await runSamples(file, this.at(`${part}.safetensors`), path, this);
    return path;
  }

  /** {error, value} of MODEL.onnx on the test part. */
  async value(model) {
    const dense = await this.outputs('dense', 'test');
    return JSON.parse(tasks('value', this.name, this.shared, dense, await this.outputs(model, 'test')));
  }

  /** Runs the command on so many samples of the calibration part. */
  run(command, args, samples) {
    const data = ['--calibration', `safetensors:${this.at('calibration.safetensors')}`, '--samples', String(samples)];
    if (Object.keys(this.states).length > 0) data.push('--states', 'auto');
    for (const [name, value] of Object.entries(this.fixed)) data.push('--input', `${name}=${value}`);
    execFileSync(command, [...args, ...data], { stdio: ['ignore', 'ignore', 'inherit'] });
  }

  /** Draws what models answer to the picture, side by side. */
  async draw(path, models) {
    const answers = [];
    for (const model of models) answers.push(await this.outputs(model, 'shown'));
    tasks('draw', this.name, path, ...answers);
  }
}
