// Where a network chooses: what a last bit decides there is no fault of the small model.

import { runAll } from './runtime.mjs';

// Small changes of their operands may make large ones of what they give.
const CHOOSES = new Set([
  'ArgMax',
  'ArgMin',
  'Cast',
  'CastLike',
  'Ceil',
  'Equal',
  'Floor',
  'Greater',
  'GreaterOrEqual',
  'Hardmax',
  'Less',
  'LessOrEqual',
  'NonMaxSuppression',
  'NonZero',
  'QuantizeLinear',
  'Round',
  'Sign',
  'TopK',
]);

const TELLS_SIZES = new Set(['Shape', 'Size']);

/**
 * Lets both models choose from the numbers that the reference computes on these feeds, so that all of
 * them can be compared: behind a choice what came of it, before it what it was made from.
 * @param reference, small are changed
 * @returns {operands, feeds}: names of what was given, which are outputs too; what to feed then
 */
export async function giveChoices(reference, small, feeds, { threads }) {
  const names = operandsOf(reference).filter((name) => small.canShow(name));
  for (const model of [reference, small]) names.forEach((name) => model.addOutput(name));
  const wanted = await runAll(reference.encode(), 'disabled', feeds, threads);
  const [found] = await runAll(small.encode(), 'disabled', feeds.slice(0, 1), threads);
  const valueOf = (run, name) => run.find((output) => output.name === name);
  const operands = names.filter((name) => {
    const [one, other] = [valueOf(wanted[0], name), valueOf(found, name)];
    return one.type === 'float32' && one.shape.length === other.shape.length;
  });
  for (const model of [reference, small]) operands.forEach((name) => give(model, name));
  return {
    operands,
    feeds: feeds.map((fed, p) => [
      ...fed,
      ...operands.map((name) => ({ ...valueOf(wanted[p], name), name: given(name) })),
    ]),
  };
}

const given = (name) => `given::${name}`;

/** Those of the model's own graph that are computed from numbers, not from constants or sizes. */
function operandsOf(model) {
  const numbers = new Set(model.inputs.map(({ name }) => name));
  for (let before = 0; before < numbers.size; ) {
    before = numbers.size;
    for (const node of model.nodes) {
      if (TELLS_SIZES.has(node.opType)) continue;
      const reads = node.bodies.length > 0 || node.inputs.some((name) => numbers.has(name));
      if (reads) node.outputs.forEach((name) => numbers.add(name));
    }
  }
  const operands = model.nodes
    .filter(({ opType, scope }) => CHOOSES.has(opType) && scope.prefix === '')
    .flatMap(({ inputs }) => inputs)
    .filter((name) => model.canShow(name) && numbers.has(name));
  return [...new Set(operands)];
}

function give(model, name) {
  model.addInput(given(name), 'float32');
  for (const { node, index } of model.consumers(name)) {
    if (CHOOSES.has(node.opType) && node.scope.prefix === '') node.setInput(index, given(name));
  }
}
