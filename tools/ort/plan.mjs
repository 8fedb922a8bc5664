// The plan, and what it says about the original: what is to be zero, and what remains.

import { readFileSync } from 'node:fs';

import { toHalf } from './float16.mjs';
import { readSafetensors } from './safetensors.mjs';
import { maskAxis, takeAxis, zeroSmallest } from './tensor.mjs';

/** Reads and checks a plan. @throws Error naming the faulty entry. */
export function readPlan(path) {
  let plan;
  try {
    plan = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new Error(`${path}: ${error.message}`);
  }
  const fault = planFault(plan);
  if (fault) throw new Error(`${path}: ${fault}`);
  const hasValues = (plan.masks ?? []).length > 0 || (plan.folds ?? []).some(({ dtype }) => dtype);
  plan.values = hasValues ? readSafetensors(`${path}.safetensors`) : new Map();
  return plan;
}

export const slicesOf = (plan) => plan.groups.flatMap((group) => group.slices);
export const planMixes = (plan) => plan.groups.some((group) => group.mixes);

function planFault(plan) {
  if (plan?.parsimony_plan !== 1) return 'parsimony_plan: wanted 1: is this a plan?';
  if (!Array.isArray(plan.groups)) return 'groups: wanted a list';
  for (const [g, group] of plan.groups.entries()) {
    if (!Array.isArray(group.slices)) return `groups[${g}].slices: wanted a list`;
    for (const [s, slice] of group.slices.entries()) {
      const fault = sliceFault(slice);
      if (fault) return `groups[${g}].slices[${s}].${fault}`;
    }
  }
  for (const [b, block] of (plan.blocks ?? []).entries()) {
    if (typeof block.add !== 'string' || ![0, 1].includes(block.kept_input))
      return `blocks[${b}]: wanted add, a name, and kept_input, 0 or 1`;
  }
  for (const [c, copy] of (plan.copies ?? []).entries()) {
    const named = [copy.tensor, copy.of, copy.consumer].every((name) => typeof name === 'string');
    if (!named || !Number.isInteger(copy.input))
      return `copies[${c}]: wanted tensor, of, consumer and input`;
  }
  return undefined;
}

function sliceFault({ tensor, axis, role, size, keep }) {
  if (typeof tensor !== 'string') return 'tensor: wanted a name';
  if (!Number.isInteger(axis) || axis < 0) return `axis: found ${axis}, wanted 0 or more`;
  if (!['in', 'out', 'with'].includes(role))
    return `role: found "${role}", wanted "in", "out" or "with"`;
  if (!Number.isInteger(size) || size < 1) return `size: found ${size}, wanted 1 or more`;
  if (!Array.isArray(keep)) return 'keep: wanted a list';
  const ascending = keep.every(
    (k, i) => Number.isInteger(k) && k >= 0 && k < size && !(k <= keep[i - 1]),
  );
  return ascending ? undefined : `keep: wanted ascending indices below ${size}`;
}

/**
 * Turns the original into the proof's reference: every slice that the plan removes becomes zero,
 * and so do the branches of blocks and the single elements that it names. A divisor (role "with") belongs to its channel but
 * is not zeroed: 0/0 would say nothing. With exact constants it is the masks that become zero.
 */
export function maskModel(model, plan) {
  removeBlocks(model, plan.blocks ?? []);
  if (plan.constants === 'exact') return zeroMasked(model, plan);
  separateCopies(model, plan.copies ?? []);
  setScales(model, plan.scales ?? []);
  for (const { tensor: name, smallest } of plan.zeros ?? []) {
    const tensor = requireTensor(model, name);
    const bytes = tensor.bytes();
    zeroSmallest(bytes, tensor.type, tensor.width, smallest);
    tensor.setBytes(bytes);
  }
  for (const slice of slicesOf(plan)) {
    const tensor = slicedTensor(model, slice);
    if (slice.role === 'with') continue;
    const bytes = tensor.bytes();
    maskAxis(
      bytes,
      tensor.dims,
      tensor.width,
      slice.axis,
      slice.keep,
      zeroOf(model, slice.tensor, tensor),
    );
    tensor.setBytes(bytes);
  }
  assignFolds(model, plan);
}

/** Numbers that follow a pruned size are in the reference what they are in the small model. */
function setScales(model, scales) {
  for (const { node: key, what, input, to } of scales) {
    const node = model.producers.get(key);
    const where = `scale "${what}" of "${key}"`;
    if (!node) throw new Error(`${where}: the original has no node with this output`);
    if (input === undefined) {
      node.setNumber(what, to.values[0]);
      continue;
    }
    if (input >= node.inputs.length) throw new Error(`${where}: it has no such operand`);
    const name = `${key}_rescaled_${input}`;
    model.addTensor(name, to.dtype, to.dims, numberBytes(to.values[0], to.dtype, where), node);
    node.setInput(input, name);
  }
}

function numberBytes(value, type, where) {
  const bytes = Buffer.alloc({ float64: 8, float32: 4, float16: 2 }[type] ?? 0);
  if (type === 'float64') bytes.writeDoubleLE(value);
  else if (type === 'float32') bytes.writeFloatLE(value);
  else if (type === 'float16') bytes.writeUInt16LE(toHalf(value));
  else throw new Error(`${where}: of type ${type}`);
  return bytes;
}

/** A removed block adds nothing: its branch b, which is still computed, becomes b - b. */
function removeBlocks(model, blocks) {
  for (const { add, kept_input: kept } of blocks) {
    const node = model.producers.get(add);
    if (node?.opType !== 'Add')
      throw new Error(`block "${add}": the original has no Add with this output`);
    const branch = node.inputs[1 - kept];
    const zero = `${add}_without_its_branch`;
    model.addNode('Sub', [branch, branch], zero, node);
    node.setInput(1 - kept, zero);
  }
}

function valuesOf(plan, name, bytes) {
  const found = plan.values?.get(name);
  if (!found) throw new Error(`the file beside the plan lacks "${name}"`);
  if (found.length !== bytes)
    throw new Error(`the file beside the plan: "${name}" has ${found.length} bytes, wanted ${bytes}`);
  return found;
}

function zeroMasked(model, plan) {
  for (const { tensor: name } of plan.masks) {
    const tensor = requireTensor(model, name);
    const bytes = tensor.bytes();
    const keep = valuesOf(plan, `${name}:mask`, bytes.length / tensor.width);
    keep.forEach((kept, i) => {
      if (!kept) bytes.fill(0, i * tensor.width, (i + 1) * tensor.width);
    });
    tensor.setBytes(bytes);
  }
}

/** What stays of a tensor takes the new values, in its order. */
function assignFolds(model, plan) {
  const slices = slicesByTensor(plan);
  for (const { tensor: name, dtype } of plan.folds ?? []) {
    if (!dtype) continue;
    const tensor = requireTensor(model, name);
    const bytes = tensor.bytes();
    const places = Buffer.from(Uint32Array.from({ length: bytes.length / tensor.width }, (_, i) => i).buffer);
    const kept = cutAxes(places, tensor.dims, 4, slices.get(name) ?? []).bytes;
    const values = valuesOf(plan, name, (kept.length / 4) * tensor.width);
    for (let i = 0; i < kept.length / 4; i += 1) {
      values.copy(bytes, kept.readUInt32LE(4 * i) * tensor.width, i * tensor.width, (i + 1) * tensor.width);
    }
    tensor.setBytes(bytes);
  }
}

/** Gives each use of a shared vector that the plan treats by itself an initializer of its own. */
function separateCopies(model, copies) {
  const made = new Map();
  for (const { tensor, of, consumer, input } of copies) {
    const where = `copy "${tensor}"`;
    const node = model.producers.get(consumer);
    const read = node?.inputs[input];
    if (!read)
      throw new Error(
        `${where}: the original has no node with output "${consumer}" and input ${input}`,
      );
    if (model.origin(read) !== model.origin(of)) {
      throw new Error(
        `${where}: input ${input} of the node of "${consumer}" reads "${read}", not "${of}"`,
      );
    }
    if (!made.has(tensor)) {
      if (model.tensor(tensor) || model.knows(tensor))
        throw new Error(`${where}: the name is taken`);
      requireTensor(model, model.origin(of));
      model.addCopy(tensor, model.origin(of));
      made.set(tensor, of);
    } else if (made.get(tensor) !== of) {
      throw new Error(`${where}: of "${of}" and of "${made.get(tensor)}"`);
    }
    node.setInput(input, tensor);
  }
}

function requireTensor(model, name) {
  const tensor = model.tensor(name);
  if (!tensor) throw new Error(`the original has no initializer or Constant named "${name}"`);
  return tensor;
}

function slicedTensor(model, { tensor: name, axis, size }) {
  const tensor = requireTensor(model, name);
  if (tensor.dims[axis] !== size) {
    throw new Error(
      `tensor "${name}" of shape [${tensor.dims}]: found ${tensor.dims[axis]} along ` +
        `axis ${axis}, the plan says ${size}`,
    );
  }
  return tensor;
}

// Operators that read quantized values: the input with the values -> the one with their zero point.
const ZERO_POINTS = {
  DequantizeLinear: { 0: 2 },
  ConvInteger: { 0: 2, 1: 3 },
  MatMulInteger: { 0: 2, 1: 3 },
  QLinearConv: { 0: 2, 3: 5 },
  QLinearMatMul: { 0: 2, 3: 5 },
};

// The axis along which there may be several, where it is neither an attribute nor the last.
const POINT_AXES = { ConvInteger: { 1: 0 }, QLinearConv: { 3: 0 } };
const ONE_BYTE = ['int8', 'uint8', 'int4', 'uint4'];

/** Per element of the tensor: the bytes that mean zero to whoever reads it. */
function zeroOf(model, name, { dims, width, type }) {
  const zero = Buffer.alloc(width);
  if (!ONE_BYTE.includes(type)) return () => zero;
  for (const { node, index } of model.consumers(name)) {
    const pointName = node.inputs[ZERO_POINTS[node.opType]?.[index]];
    if (!pointName) continue;
    const points = model.tensor(model.origin(pointName))?.bytes();
    if (!points) throw new Error(`tensor "${name}": its zero point "${pointName}" is computed`);
    if (points.every((point) => point === points[0])) return () => points.subarray(0, 1);
    const axis = (pointAxis(node, index) + dims.length) % dims.length;
    if (dims[axis] !== points.length) {
      throw new Error(`tensor "${name}": zero points that differ by block are not handled`);
    }
    const inner = dims.slice(axis + 1).reduce((product, dim) => product * dim, 1);
    return (i) => {
      const at = Math.floor(i / inner) % points.length;
      return points.subarray(at, at + 1);
    };
  }
  return () => zero;
}

function pointAxis(node, index) {
  if (node.opType === 'DequantizeLinear') return node.integer('axis', 1);
  return POINT_AXES[node.opType]?.[index] ?? -1;
}

/**
 * Holds the small model's tensors against the plan: without it, the masked original itself would
 * pass for a small model. A tensor may be gone (merged with an equal one); one that is there has
 * the planned shape, and the original's values unless it stands in `folds`.
 */
export function checkTensors(original, small, plan) {
  const copied = new Map((plan.copies ?? []).map(({ tensor, of }) => [tensor, of]));
  const folded = new Set((plan.folds ?? []).map(({ tensor }) => tensor));
  const result = { sliced: 0, as_planned: 0, absent: [], wrong: [] };
  for (const { add } of plan.blocks ?? []) {
    if (small.knows(add)) result.wrong.push(`"${add}" is still there, and its block is to go`);
  }
  for (const [name, slices] of slicesByTensor(plan)) {
    result.sliced += 1;
    const found = small.tensor(name);
    if (!found) {
      result.absent.push(name);
      continue;
    }
    const source = requireTensor(original, original.origin(copied.get(name) ?? name));
    const wanted = sliceTensor(source, slices);
    if (`${found.dims}` !== `${wanted.dims}`) {
      result.wrong.push(`"${name}" has shape [${found.dims}], the plan leaves [${wanted.dims}]`);
    } else if (!folded.has(name) && !found.bytes().equals(wanted.bytes)) {
      result.wrong.push(
        `"${name}" has other values than the original's kept ones, and is not in folds`,
      );
    } else {
      result.as_planned += 1;
    }
  }
  return result;
}

function slicesByTensor(plan) {
  const byTensor = new Map();
  for (const slice of slicesOf(plan)) {
    if (!byTensor.has(slice.tensor)) byTensor.set(slice.tensor, []);
    byTensor.get(slice.tensor).push(slice);
  }
  return byTensor;
}

const sliceTensor = (tensor, slices) =>
  cutAxes(tensor.bytes(), tensor.dims, tensor.width, slices);

function cutAxes(whole, wholeDims, width, slices) {
  const keeps = new Map(); // axis -> what all of its slices keep
  for (const { axis, keep } of slices) {
    keeps.set(axis, keeps.has(axis) ? keeps.get(axis).filter((k) => keep.includes(k)) : keep);
  }
  let bytes = whole;
  const dims = [...wholeDims];
  for (const [axis, keep] of keeps) {
    bytes = takeAxis(bytes, dims, width, axis, keep);
    dims[axis] = keep.length;
  }
  return { dims, bytes };
}
