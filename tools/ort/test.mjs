// The oracle's own tests: above all, that it does not believe everything.
// Run: node --test tools/ort/test.mjs

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

import { compare, DEFAULTS, verdictOf } from './compare.mjs';
import { floats, int64s, model, ramp, tensor } from './fixture.mjs';
import { fromHalf, toHalf } from './float16.mjs';
import { candidates, draw, parseSpec } from './inputs.mjs';
import { Model } from './model.mjs';
import { maskModel } from './plan.mjs';
import { normal, uniform } from './random.mjs';
import { cacheFolder } from './runtime.mjs';
import { Message } from './wire.mjs';

const folder = mkdtempSync(join(tmpdir(), 'oracle-'));
after(() => rmSync(folder, { recursive: true }));

let files = 0;
function write(content, ending = '.onnx') {
  const path = join(folder, `${files++}${ending}`);
  writeFileSync(
    path,
    typeof content === 'string' || content instanceof Uint8Array
      ? content
      : JSON.stringify(content),
  );
  return path;
}

const slice = (name, axis, role, size, keep) => ({ tensor: name, axis, role, size, keep });
const planOf = (slices, more = {}) => ({
  parsimony_plan: 1,
  groups: [{ id: 'g', mixes: false, slices }],
  ...more,
});

const compareModels = (original, small, plan, options = {}) =>
  compare(
    {
      original: write(original),
      small: write(small),
      plan: write(plan, '.json'),
      specs: options.specs ?? [],
    },
    { ...DEFAULTS, ...options },
  );

// x[N, 3] -> w1[3, 4] + b1 -> activation -> w2[4, 2] -> y[N, 2]; the middle 4 are what is pruned.
const pick = (rows, keep) => keep.map((k) => rows[k]);
const columns = (values, width, keep) => values.filter((_, i) => keep.includes(i % width));
const W1 = ramp(12, 1),
  B1 = ramp(4, 2),
  W2 = ramp(8, 3);

function mlp(keep, { activation = 'Relu', w2 = W2, batch = 'N' } = {}) {
  const n = keep.length;
  return model({
    inputs: { x: ['float32', [batch, 3]] },
    outputs: { y: ['float32', [batch, 2]] },
    nodes: [
      ['MatMul', ['x', 'w1'], ['h']],
      ['Add', ['h', 'b1'], ['hb']],
      [activation, ['hb'], ['a']],
      ['MatMul', ['a', 'w2'], ['y']],
    ],
    tensors: {
      w1: floats([3, n], columns(W1, 4, keep)),
      b1: floats([n], pick(B1, keep)),
      w2: floats(
        [n, 2],
        keep.flatMap((k) => w2.slice(2 * k, 2 * k + 2)),
      ),
    },
  });
}
const ALL = [0, 1, 2, 3];
const outSlices = (keep) => [slice('w1', 1, 'out', 4, keep), slice('b1', 0, 'out', 4, keep)];
const mlpPlan = (keep, more) => planOf([...outSlices(keep), slice('w2', 0, 'in', 4, keep)], more);

test('a rightly pruned network is exact', async () => {
  const result = await compareModels(mlp(ALL), mlp([0, 2]), mlpPlan([0, 2]));
  assert.equal(result.verdict, 'exact');
  assert.ok(result.difference < 1e-6);
  assert.equal(result.degenerate, false);
  assert.deepEqual(result.batches, [1, 3]);
  assert.deepEqual([result.tensors.sliced, result.tensors.as_planned], [3, 3]);
});

test('other channels than the planned ones are found', async () => {
  const result = await compareModels(mlp(ALL), mlp([0, 3]), mlpPlan([0, 2]));
  assert.equal(result.verdict, 'MISMATCH');
  assert.match(result.notes.join(), /"w1" has other values/);
  assert.ok(result.difference > result.tolerance);
});

test('the outputs are compared even where every tensor may have changed', async () => {
  const folds = ['w1', 'b1', 'w2'].map((name) => ({ tensor: name, reason: 'test' }));
  const result = await compareModels(mlp(ALL), mlp([0, 3]), mlpPlan([0, 2], { folds }));
  assert.equal(result.tensors.wrong.length, 0);
  assert.equal(result.verdict, 'MISMATCH');
});

test('a small deviation in one folded tensor is found', async () => {
  const w2 = W2.map((value, i) => (i === 0 ? value * 1.001 : value));
  const folds = [{ tensor: 'w2', reason: 'test' }];
  const result = await compareModels(mlp(ALL), mlp([0, 2], { w2 }), mlpPlan([0, 2], { folds }));
  assert.equal(result.verdict, 'MISMATCH');
  assert.ok(result.difference > 1e-4 && result.difference < 1e-2);
});

test('the masked original itself is no small model', async () => {
  const masked = new Model(mlp(ALL));
  maskModel(masked, mlpPlan([0, 2]));
  const result = await compareModels(mlp(ALL), masked.encode(), mlpPlan([0, 2]));
  assert.equal(result.verdict, 'MISMATCH');
  assert.ok(result.difference <= result.tolerance, 'its outputs alone would have passed');
});

// x[N, 3] -> w1[3, 3] -> h; h + h·w2 -> s; s·w3 -> y[N, 3].
function block(there, w2 = ramp(9, 3)) {
  const branch = [
    ['MatMul', ['h', 'w2'], ['b']],
    ['Add', ['b', 'h'], ['s']],
  ];
  const tensors = { w1: floats([3, 3], ramp(9, 1)), w3: floats([3, 3], ramp(9, 2)) };
  return model({
    inputs: { x: ['float32', ['N', 3]] },
    outputs: { y: ['float32', ['N', 3]] },
    nodes: [
      ['MatMul', ['x', 'w1'], ['h']],
      ...(there ? branch : []),
      ['MatMul', [there ? 's' : 'h', 'w3'], ['y']],
    ],
    tensors: there ? { ...tensors, w2: floats([3, 3], w2) } : tensors,
  });
}
const blockPlan = (kept) => planOf([], { blocks: [{ add: 's', kept_input: kept }] });

test('a removed block adds nothing', async () => {
  assert.equal((await compareModels(block(true), block(false), blockPlan(1))).verdict, 'exact');
  const otherOperand = await compareModels(block(true), block(false), blockPlan(0));
  assert.equal(otherOperand.verdict, 'MISMATCH');
  const nothingPlanned = await compareModels(block(true), block(false), planOf([]));
  assert.equal(nothingPlanned.verdict, 'MISMATCH');
});

test('a block that is only masked is no removed one', async () => {
  const masked = block(true, Array(9).fill(0));
  const result = await compareModels(block(true), masked, blockPlan(1));
  assert.equal(result.verdict, 'MISMATCH');
  assert.match(result.notes.join(), /"s" is still there/);
  assert.ok(result.difference <= result.tolerance, 'its outputs alone would have passed');
});

test('a block that the original does not have is refused', async () => {
  const plan = planOf([], { blocks: [{ add: 'h', kept_input: 0 }] });
  await assert.rejects(compareModels(block(true), block(false), plan), /block "h": the original has no Add/);
  const fault = planOf([], { blocks: [{ add: 's' }] });
  await assert.rejects(compareModels(block(true), block(false), fault), /blocks\[0\]: wanted add/);
});

test('zero is not absence: out slices alone are not enough behind Sigmoid', async () => {
  const activation = 'Sigmoid';
  const right = await compareModels(mlp(ALL, { activation }), mlp([0, 2], { activation }), mlpPlan([0, 2]));
  assert.equal(right.verdict, 'exact');
  const noIn = planOf([...outSlices([0, 2]), slice('w2', 0, 'in', 4, ALL)]);
  const wrong = await compareModels(mlp(ALL, { activation }), mlp([0, 2], { activation }), noIn);
  assert.equal(wrong.verdict, 'MISMATCH');
});

test('a small model that does not run is a mismatch', async () => {
  const broken = model({
    inputs: { x: ['float32', ['N', 3]] },
    outputs: { y: ['float32', ['N', 2]] },
    nodes: [
      ['MatMul', ['x', 'w1'], ['h']],
      ['MatMul', ['h', 'w2'], ['y']],
    ],
    tensors: { w1: floats([3, 2], ramp(6)), w2: floats([3, 2], ramp(6)) },
  });
  const result = await compareModels(mlp(ALL), broken, mlpPlan([0, 2]));
  assert.equal(result.verdict, 'MISMATCH');
  assert.match(result.notes.join(), /does not run/);
});

test('a batch size written into the small model is found', async () => {
  const reshaped = (target) =>
    model({
      inputs: { x: ['float32', ['N', 4]] },
      outputs: { y: ['float32', ['M', 2, 2]] },
      nodes: [
        ['Mul', ['x', 'w'], ['h']],
        ['Reshape', ['h', 's'], ['y']],
      ],
      tensors: { w: floats([4], ramp(4)), s: int64s(target) },
    });
  const plan = planOf([]);
  assert.equal((await compareModels(reshaped([-1, 2, 2]), reshaped([-1, 2, 2]), plan)).verdict, 'exact');
  assert.equal((await compareModels(reshaped([-1, 2, 2]), reshaped([1, 2, 2]), plan)).verdict, 'MISMATCH');
});

test('a missing output and another shape are mismatches', async () => {
  const scale = (output, dims) =>
    model({
      inputs: { x: ['float32', [2, 2]] },
      outputs: { [output]: ['float32', dims] },
      nodes: [['Reshape', ['x', 's'], [output]]],
      tensors: { s: int64s(dims) },
    });
  const renamed = await compareModels(scale('y', [4]), scale('z', [4]), planOf([]));
  assert.match(renamed.notes.join(), /output "y" is missing/);
  const reshaped = await compareModels(scale('y', [4]), scale('y', [4, 1]), planOf([], {}));
  assert.match(reshaped.notes.join(), /gives shape \[4,1\], the original \[4\]/);
  assert.deepEqual([renamed.verdict, reshaped.verdict], ['MISMATCH', 'MISMATCH']);
});

// A vector shared by two additions: behind the first, channel 1 goes; behind the second, channel 0.
function shared({ first, second, b1, b2, throughIdentity = false, irVersion }) {
  const vectors = b2
    ? { b: floats([b1.length], b1), b_2: floats([b2.length], b2) }
    : { b: floats([b1.length], b1) };
  const other = b2 ? 'b_2' : throughIdentity ? 'b_same' : 'b';
  return model({
    inputs: { x: ['float32', [1, 2]] },
    outputs: { y: ['float32', [1, 2]] },
    nodes: [
      ...(throughIdentity ? [['Identity', ['b'], ['b_same']]] : []),
      ['MatMul', ['x', 'w1'], ['h1']],
      ['Add', ['h1', 'b'], ['a1']],
      ['MatMul', ['a1', 'w2'], ['h2']],
      ['Add', ['h2', other], ['a2']],
      ['MatMul', ['a2', 'w3'], ['y']],
    ],
    tensors: {
      ...vectors,
      w1: floats([2, b1.length], first[0]),
      w2: floats([b1.length, (b2 ?? b1).length], first[1]),
      w3: floats([(b2 ?? b1).length, 2], second),
    },
    irVersion,
  });
}
const SHARED_PLAN = planOf(
  [
    slice('w1', 1, 'out', 2, [0]),
    slice('b', 0, 'out', 2, [0]),
    slice('w2', 0, 'in', 2, [0]),
    slice('w2', 1, 'out', 2, [1]),
    slice('b_2', 0, 'out', 2, [1]),
    slice('w3', 0, 'in', 2, [1]),
  ],
  { copies: [{ tensor: 'b_2', of: 'b', consumer: 'a2', input: 1 }] },
);

// Until IR version 4 an initializer had to be listed among the graph's inputs; a copy is not.
for (const how of [{}, { throughIdentity: true }, { irVersion: 3 }]) {
  test(`a copied vector is masked by its own slices ${JSON.stringify(how)}`, async () => {
    const original = shared({
      first: [
        [1, 2, 3, 4],
        [5, 6, 7, 8],
      ],
      second: [1, 2, 3, 4],
      b1: [0.5, 0.7],
      ...how,
    });
    const small = shared({ first: [[1, 3], [6]], second: [3, 4], b1: [0.5], b2: [0.7] });
    assert.equal((await compareModels(original, small, SHARED_PLAN)).verdict, 'exact');
    const mixedUp = shared({ first: [[1, 3], [6]], second: [3, 4], b1: [0.5], b2: [0.5] });
    assert.equal((await compareModels(original, mixedUp, SHARED_PLAN)).verdict, 'MISMATCH');
  });
}

// The mlp with its middle times c: a scale that follows is c' in the reference as well.
function scaled(keep, c) {
  const n = keep.length;
  return model({
    inputs: { x: ['float32', [1, 3]] },
    outputs: { y: ['float32', [1, 2]] },
    nodes: [
      ['MatMul', ['x', 'w1'], ['h']],
      ['Mul', ['h', 'c'], ['s']],
      ['MatMul', ['s', 'w2'], ['m']],
      ['Mul', ['m', 'c'], ['y']],
    ],
    tensors: {
      w1: floats([3, n], columns(W1, 4, keep)),
      c: floats([1], [c]),
      w2: floats(
        [n, 2],
        keep.flatMap((k) => W2.slice(2 * k, 2 * k + 2)),
      ),
    },
  });
}
const scale = (node, value) => ({
  node,
  what: 'operand 1',
  input: 1,
  encodes: '1/sqrt(4)',
  now: '1/sqrt(2)',
  from: { dtype: 'float32', dims: [1], values: [0.5] },
  to: { dtype: 'float32', dims: [1], values: [value] },
});

test('scales that follow are in the reference what they are in the small model', async () => {
  const plan = (scales) =>
    planOf([slice('w1', 1, 'out', 4, [0, 2]), slice('w2', 0, 'in', 4, [0, 2])], { scales });
  const small = scaled([0, 2], 0.7071);
  const both = plan([scale('s', 0.7071), scale('y', 0.7071)]);
  assert.equal((await compareModels(scaled(ALL, 0.5), small, both)).verdict, 'exact');
  const one = plan([scale('s', 0.7071)]);
  assert.equal((await compareModels(scaled(ALL, 0.5), small, one)).verdict, 'MISMATCH');
  await assert.rejects(
    compareModels(scaled(ALL, 0.5), small, plan([scale('nowhere', 1)])),
    /scale "operand 1" of "nowhere": the original has no node/,
  );
});

test('a copy that does not fit the original is refused', async () => {
  const original = shared({
    first: [
      [1, 2, 3, 4],
      [5, 6, 7, 8],
    ],
    second: [1, 2, 3, 4],
    b1: [0.5, 0.7],
  });
  const withCopy = (copy) => ({
    ...SHARED_PLAN,
    copies: [{ tensor: 'b_2', of: 'b', consumer: 'a2', input: 1, ...copy }],
  });
  await assert.rejects(
    compareModels(original, original, withCopy({ consumer: 'nowhere' })),
    /no node with output "nowhere"/,
  );
  await assert.rejects(compareModels(original, original, withCopy({ input: 0 })), /reads "h2", not "b"/);
  await assert.rejects(compareModels(original, original, withCopy({ tensor: 'w3' })), /the name is taken/);
});

test('a plan that does not fit the file, or is no plan, is refused with its place', async () => {
  const refuse = (plan, message) => assert.rejects(compareModels(mlp(ALL), mlp(ALL), plan), message);
  await refuse(
    planOf([slice('w1', 1, 'out', 5, [0])]),
    /"w1" of shape \[3,4\]: found 4 along axis 1, the plan says 5/,
  );
  await refuse(planOf([slice('w9', 1, 'out', 5, [0])]), /no initializer or Constant named "w9"/);
  await refuse(
    planOf([slice('w1', 1, 'both', 4, [0])]),
    /groups\[0\]\.slices\[0\]\.role: found "both"/,
  );
  await refuse(
    planOf([slice('w1', 1, 'out', 4, [2, 1])]),
    /keep: wanted ascending indices below 4/,
  );
  await refuse({ groups: [] }, /wanted 1: is this a plan/);
});

test('a group that mixes needs only finite outputs of the same rank', async () => {
  const plan = (mixes) => ({
    parsimony_plan: 1,
    groups: [{ id: 'g', mixes, slices: mlpPlan([0, 2]).groups[0].slices }],
  });
  const folds = ['w1', 'b1', 'w2'].map((name) => ({ tensor: name, reason: 'test' }));
  const other = await compareModels(mlp(ALL), mlp([0, 3]), { ...plan(true), folds });
  assert.equal(other.verdict, 'mixes');
  assert.ok(other.difference > 1e-3, 'the difference is still told');
  const w2 = W2.map(() => Infinity);
  assert.equal(
    (await compareModels(mlp(ALL), mlp([0, 2], { w2 }), { ...plan(true), folds })).verdict,
    'NONFINITE',
  );
  assert.equal((await compareModels(mlp(ALL), mlp([0, 2, 3]), plan(true))).verdict, 'MISMATCH');
});

test('NaN is told, and whose it is', async () => {
  const root = (batch) =>
    model({
      inputs: { x: ['float32', [batch, 2]] },
      outputs: { y: ['float32', [batch, 2]] },
      nodes: [['Sqrt', ['x'], ['y']]],
    });
  const result = await compareModels(root(4), root(4), planOf([]));
  assert.equal(result.verdict, 'NONFINITE');
  assert.match(result.notes.join(), /the original itself gives NaN/);
});

test('agreement of zero outputs is called degenerate', async () => {
  const plan = mlpPlan([0]);
  const negative = B1.map(() => -100);
  const network = (keep) => {
    const edited = new Model(mlp(keep));
    edited.tensor('b1').setBytes(Buffer.from(Float32Array.from(pick(negative, keep)).buffer));
    return edited.encode();
  };
  const result = await compareModels(network(ALL), network([0]), plan);
  assert.equal(result.verdict, 'exact');
  assert.equal(result.degenerate, true);
  assert.match(result.notes.join(), /is the same for every input/);
});

test('what only rounding excuses is no proof', () => {
  const verdict = (difference, tolerance) =>
    verdictOf({ outputs: [{ difference, tolerance }], tensors: { wrong: [] }, base: 1e-4 });
  assert.equal(verdict(9e-5, 1e-4), 'exact');
  assert.equal(verdict(9e-5, 2.8), 'exact');
  assert.equal(verdict(0.04, 0.1), 'exact');
  assert.equal(verdict(0.7, 2.8), 'weak');
  assert.equal(verdict(3, 2.8), 'MISMATCH');
  assert.equal(verdict(NaN, 2.8), 'MISMATCH');
});

test('the numbers behind a class index are compared', async () => {
  const classifier = (w) =>
    model({
      inputs: { x: ['float32', ['N', 2]] },
      outputs: { c: ['int64', ['N']] },
      nodes: [
        ['MatMul', ['x', 'w'], ['l']],
        ['ArgMax', ['l'], ['c'], { axis: 1, keepdims: 0 }],
      ],
      tensors: { w: floats([2, 2], w) },
    });
  const result = await compareModels(
    classifier([1, 2, 3, 4]),
    classifier([1.1, 2.2, 3.3, 4.4]),
    planOf([]),
  );
  assert.equal(result.outputs[0].difference, 0);
  assert.equal(result.outputs[1].name, 'l');
  assert.equal(result.verdict, 'MISMATCH');
});

// x[N, 2] -> w[2, 3] -> l; the row of the table at l's largest is y[N, 2]. The first two are ties.
// Beside it the shape of x goes through a float, as exporters write it: that is no choice.
function chooser(second = 1, table = ramp(6)) {
  const w = [1, second, 0.5, 2, 2 * second, 0.3];
  return model({
    inputs: { x: ['float32', ['N', 2]] },
    outputs: { y: ['float32', ['N', 2]], n: ['int64', [2]] },
    nodes: [
      ['MatMul', ['x', 'w'], ['l']],
      ['ArgMax', ['l'], ['c'], { axis: 1, keepdims: 0 }],
      ['Gather', ['table', 'c'], ['y']],
      ['Shape', ['x'], ['s']],
      ['Cast', ['s'], ['f'], { to: 1 }],
      ['Cast', ['f'], ['n'], { to: 7 }],
    ],
    tensors: { w: floats([2, 3], w), table: floats([3, 2], table) },
  });
}

test('who chooses otherwise in the last bit is right, and who does so for another reason is not', async () => {
  const folds = ['w', 'table'].map((name) => ({ tensor: name, reason: 'test' }));
  const comparedWith = (small) => compareModels(chooser(), small, planOf([], { folds }));
  const same = await comparedWith(chooser());
  assert.deepEqual([same.verdict, same.choices], ['exact', []]);
  const tie = await comparedWith(chooser(1 + 2e-7));
  assert.deepEqual([tie.verdict, tie.choices], ['exact', ['l']]);
  assert.match(tie.notes.join(), /given the original's numbers \("l"\)/);
  assert.ok(tie.outputs.some(({ name, difference }) => name === 'l' && difference > 0));
  const far = await comparedWith(chooser(1.001));
  assert.deepEqual([far.verdict, far.choices], ['MISMATCH', []]);
  const behind = await comparedWith(chooser(1 + 2e-7, ramp(6, 2)));
  assert.equal(behind.verdict, 'MISMATCH');
});

test('a saturated score does not hide a difference', async () => {
  const scores = (w) =>
    model({
      inputs: { x: ['float32', [1, 2]] },
      outputs: { s: ['float32', [1, 2]] },
      nodes: [
        ['MatMul', ['x', 'w'], ['l']],
        ['Softmax', ['l'], ['s'], { axis: 1 }],
      ],
      tensors: { w: floats([2, 2], w) },
    });
  const result = await compareModels(
    scores([500, -500, 300, -700]),
    scores([550, -550, 330, -770]),
    planOf([]),
  );
  assert.ok(result.outputs[0].difference < result.tolerance);
  assert.equal(result.outputs[1].name, 'l');
  assert.equal(result.verdict, 'MISMATCH');
});

test('an inner value can be compared by name', async () => {
  const result = await compareModels(mlp(ALL), mlp([0, 2]), mlpPlan([0, 2]), { also: ['hb'] });
  assert.equal(result.verdict, 'MISMATCH', 'the pruned value itself has another shape');
  await assert.rejects(
    compareModels(mlp(ALL), mlp([0, 2]), mlpPlan([0, 2]), { also: ['none'] }),
    /both models must compute/,
  );
});

test('every way to store values is masked alike', () => {
  const packed = (...numbers) => Uint8Array.from(numbers);
  const external = write(Buffer.from(Float32Array.from([9, 1, 2, 3]).buffer), '.bin');
  const entry = (key, value) => new Message().addText(1, key).addText(2, value);
  const far = tensor('float32', [3]).addInt(14, 1);
  [
    ['location', external.split('/').pop()],
    ['offset', '4'],
    ['length', '12'],
  ].forEach(([key, value]) => far.addMessage(13, entry(key, value)));
  const tensors = {
    raw: floats([3], [1, 2, 3]),
    typed: tensor('float32', [3]).addBytes(4, Buffer.from(Float32Array.from([1, 2, 3]).buffer)),
    half: tensor('float16', [3]).addInt(5, toHalf(1)).addInt(5, toHalf(2)).addInt(5, toHalf(3)),
    byte: tensor('int8', [3]).addInt(5, -1).addInt(5, -2).addInt(5, 3),
    long: tensor('int64', [3]).addBytes(7, packed(1, 2, 3)),
    double: tensor('float64', [3]).addBytes(10, Buffer.from(Float64Array.from([1, 2, 3]).buffer)),
    far,
  };
  const file = model({
    inputs: {},
    outputs: {},
    tensors,
    nodes: [
      ['Constant', [], ['constant'], { value: floats([3], [1, 2, 3]) }],
      ['Constant', [], ['list'], { value_floats: Float32Array.from([1, 2, 3]) }],
      ['Constant', [], ['ints'], { value_ints: [1, 2, 3] }],
    ],
  });
  const names = [...Object.keys(tensors), 'constant', 'list', 'ints'];
  const edited = new Model(file, folder);
  maskModel(edited, planOf(names.map((name) => slice(name, 0, 'out', 3, [0, 2]))));
  const written = new Model(edited.encode(), folder);
  const values = {
    float32: (bytes) => [
      ...new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + 12)),
    ],
    float64: (bytes) => [0, 8, 16].map((at) => bytes.readDoubleLE(at)),
    float16: (bytes) => [0, 2, 4].map((at) => fromHalf(bytes.readUInt16LE(at))),
    int8: (bytes) => [...bytes].map((byte) => Math.abs((byte << 24) >> 24)),
    int64: (bytes) => [0, 8, 16].map((at) => Number(bytes.readBigInt64LE(at))),
  };
  for (const name of names) {
    const found = written.tensor(name);
    assert.deepEqual(values[found.type](found.bytes()), [1, 0, 3], name);
  }
});

test('an axis within is masked by its own stride', () => {
  const edited = new Model(
    model({ inputs: {}, outputs: {}, nodes: [], tensors: { w: floats([2, 3, 2], ramp(12)) } }),
  );
  maskModel(edited, planOf([slice('w', 1, 'out', 3, [1])]));
  const bytes = edited.tensor('w').bytes();
  const kept = Array.from({ length: 12 }, (_, i) => bytes.readFloatLE(4 * i) !== 0);
  assert.deepEqual(
    kept.flatMap((isKept, i) => (isKept ? [i] : [])),
    [2, 3, 8, 9],
  );
});

test('a removed quantized value is its zero point', async () => {
  const network = (w, keep) =>
    model({
      inputs: { x: ['float32', [1, 2]] },
      outputs: { y: ['float32', [1, 2]] },
      nodes: [
        ['DequantizeLinear', ['q', 's', 'z'], ['w1']],
        ['MatMul', ['x', 'w1'], ['h']],
        ['MatMul', ['h', 'w2'], ['y']],
      ],
      tensors: {
        q: tensor('uint8', [2, keep.length]).addBytes(9, Uint8Array.from(w)),
        s: floats([], [0.1]),
        z: tensor('uint8', []).addBytes(9, Uint8Array.of(128)),
        w2: floats(
          [keep.length, 2],
          keep.flatMap((k) => [k + 1, k - 3]),
        ),
      },
    });
  const original = network([100, 120, 140, 160], [0, 1]);
  const outOnly = planOf([slice('q', 1, 'out', 2, [1]), slice('w2', 0, 'in', 2, [1])]);
  assert.equal((await compareModels(original, network([120, 160], [1]), outOnly)).verdict, 'exact');
  const masked = new Model(original);
  maskModel(masked, outOnly);
  assert.deepEqual([...masked.tensor('q').bytes()], [128, 120, 128, 160]);
});

test('half precision: every number survives, ties go to even', () => {
  for (let bits = 0; bits < 0x10000; ++bits) {
    const value = fromHalf(bits);
    if (!Number.isNaN(value)) assert.equal(toHalf(value), bits);
  }
  assert.equal(toHalf(1 + 2 ** -11), toHalf(1));
  assert.equal(toHalf(1 + 3 * 2 ** -11), toHalf(1 + 2 ** -9));
  assert.equal(toHalf(1e6), 0x7c00);
  assert.ok(Number.isNaN(fromHalf(toHalf(NaN))));
});

test('random numbers are the same for a seed, and normal', () => {
  const sample = normal(uniform(7));
  const values = Array.from({ length: 20000 }, sample);
  const mean = values.reduce((a, b) => a + b) / values.length;
  const variance = values.reduce((a, b) => a + (b - mean) ** 2, 0) / values.length;
  assert.ok(Math.abs(mean) < 0.03 && Math.abs(variance - 1) < 0.05);
  assert.deepEqual(values.slice(0, 5), Array.from({ length: 5 }, normal(uniform(7))));
});

test('input specs', () => {
  assert.deepEqual(parseSpec('1x3x32x32'), {
    shape: [1, 3, 32, 32],
    type: undefined,
    value: undefined,
  });
  assert.deepEqual(parseSpec('2x8:int64'), { shape: [2, 8], type: 'int64', value: undefined });
  assert.deepEqual(parseSpec(':int64=16000'), { shape: [], type: 'int64', value: 16000 });
  for (const wrong of ['', '1x', '3:blob', '2=two', 'a'])
    assert.throws(() => parseSpec(wrong), /--input/);
  const args = [
    { name: 'a', type: 'float32', dims: ['N', 3, 'H'] },
    { name: 'b', type: 'int64', dims: ['H'] },
  ];
  const [first] = candidates(args, [parseSpec('2x3x8')]);
  assert.deepEqual(
    first.arguments.map(({ shape }) => shape),
    [[2, 3, 8], [8]],
    'one name, one size',
  );
  assert.throws(
    () => [...candidates(args, [parseSpec('2x4x8')])],
    /has shape \[N,3,H\], --input says \[2,4,8\]/,
  );
  assert.throws(
    () => [...candidates(args, [parseSpec('2x3x8:int64')])],
    /is float32, --input says int64/,
  );
  assert.deepEqual(draw(first, 1)[1].data.length, 8);
});

test('sizes are tried until the original runs', async () => {
  const network = model({
    inputs: { x: ['float32', ['N', 'L']] },
    outputs: { y: ['float32', ['N', 2]] },
    nodes: [['MatMul', ['x', 'w'], ['y']]],
    tensors: { w: floats([160, 2], ramp(320)) },
  });
  const result = await compareModels(network, network, planOf([]));
  assert.deepEqual(result.inputs[0].shape, [1, 160]);
  const never = model({
    inputs: { x: ['float32', ['N', 'L']] },
    outputs: { y: ['float32', ['N', 2]] },
    nodes: [['MatMul', ['x', 'w'], ['y']]],
    tensors: { w: floats([161, 2], ramp(322)) },
  });
  await assert.rejects(compareModels(never, never, planOf([])), /runs on no inputs tried; give --input/);
});

test('the wire format comes back byte for byte, and garbage is refused', () => {
  const file = mlp(ALL);
  assert.ok(new Model(file).encode().equals(file));
  assert.throws(() => new Model(file.subarray(0, 50)), /beyond its message|ends too early/);
  assert.throws(() => new Model(Buffer.from('not a model')), Error);
});

test('the cache folder follows the environment', () => {
  assert.equal(cacheFolder({ PARSIMONY_CACHE: '/a', XDG_CACHE_HOME: '/b', HOME: '/c' }), '/a/ort');
  assert.equal(cacheFolder({ XDG_CACHE_HOME: '/b', HOME: '/c' }), '/b/parsimony/ort');
  assert.equal(cacheFolder({ HOME: '/c' }), '/c/.cache/parsimony/ort');
});

function command(name, args, environment = {}) {
  const program = fileURLToPath(new URL(`../${name}.mjs`, import.meta.url));
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], {
    encoding: 'utf8',
    env: { ...process.env, ...environment },
  });
  return { status, stdout, stderr };
}

test('command: exit codes, JSON, batch', () => {
  const [original, right, wrong] = [write(mlp(ALL)), write(mlp([0, 2])), write(mlp([0, 3]))];
  const plan = write(mlpPlan([0, 2]), '.json');
  const good = command('ort_compare', [original, right, plan]);
  assert.equal(good.status, 0, good.stderr);
  assert.match(good.stdout, /^exact: largest relative difference/m);

  const bad = command('ort_compare', [original, wrong, plan, '--json']);
  assert.equal(bad.status, 1);
  assert.equal(JSON.parse(bad.stdout).verdict, 'MISMATCH');

  assert.equal(command('ort_compare', []).status, 2);
  assert.equal(command('ort_compare', [original, right, plan, '--nonsense']).status, 2);
  assert.equal(command('ort_compare', [original, right, plan, '--input', '1x4']).status, 2);
  assert.equal(command('ort_compare', [original, right, `${folder}/none.json`]).status, 4);
  assert.equal(command('ort_compare', [`${folder}/none.onnx`, right, plan]).status, 4);

  const row = (...cells) => cells.join('\t');
  const fine = command('ort_compare', [
    '--batch',
    write(row(original, right, plan, '2x3'), '.tsv'),
  ]);
  assert.equal(fine.status, 0, fine.stderr);
  const mixed = command('ort_compare', [
    '--batch',
    write(
      [row(original, right, plan), row(original, wrong, plan), row(original, 'none', plan)].join(
        '\n',
      ),
      '.tsv',
    ),
  ]);
  assert.equal(mixed.status, 1);
  assert.match(mixed.stdout, /3 models: 1 exact, 1 MISMATCH, 1 ERROR/);

  const uninstalled = command('ort_compare', [original, right, plan], {
    PARSIMONY_CACHE: join(folder, 'empty'),
  });
  assert.equal(uninstalled.status, 4);
  assert.match(uninstalled.stderr, /run tools\/ort\/install\.sh/);
});

test('command: smoke run with a table of specs', () => {
  const network = write(mlp(ALL));
  const table = write(`${network.split('/').pop()}\t5x3\n`, '.txt');
  const { status, stdout } = command('ort_compare', ['--run', network, '--specs', table, '--json']);
  assert.equal(status, 0);
  assert.deepEqual(JSON.parse(stdout).inputs, [{ name: 'x', type: 'float32', shape: [5, 3] }]);
  const unusable = command('ort_compare', ['--run', write('nonsense')]);
  assert.equal(unusable.status, 4);
});

test('command: accuracy over idx files', () => {
  const idx = (dims, values) => {
    const head = Buffer.alloc(4 + 4 * dims.length);
    head.set([0, 0, 8, dims.length]);
    dims.forEach((dim, i) => head.writeUInt32BE(dim, 4 + 4 * i));
    return Buffer.concat([head, Uint8Array.from(values)]);
  };
  // The brighter of two pixels is the class; the third label is wrong.
  const images = write(gzipSync(idx([3, 1, 2], [9, 200, 255, 0, 10, 20])), '.gz');
  const labels = write(idx([3], [1, 0, 0]), '.idx');
  for (const batch of ['N', 1, 2]) {
    const network = write(
      model({
        inputs: { x: ['float32', [batch, 1, 1, 2]] },
        outputs: { y: ['float32', [batch, 1, 1, 2]] },
        nodes: [['Identity', ['x'], ['y']]],
      }),
    );
    const { status, stdout, stderr } = command('ort_accuracy', [
      network,
      images,
      labels,
      '--scale',
      '1/255',
    ]);
    assert.equal(status, 0, stderr);
    assert.equal(stdout, '2/3 (66.7%)\n');
  }
  assert.equal(command('ort_accuracy', [images, images, labels]).status, 4);
  assert.equal(command('ort_accuracy', []).status, 2);
});
