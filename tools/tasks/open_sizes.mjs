// A copy of a model whose pictures may have any size: the last two sizes of inputs and outputs get names.

import { readFileSync, writeFileSync } from 'node:fs';

import { Message } from '../ort/wire.mjs';

const GRAPH = 7;
const GraphField = { initializer: 5, input: 11, output: 12, inner: 13 };
const TENSOR_NAME = 8;
const VALUE_NAME = 1;
const TYPE = 2;
const TENSOR = 1;
const SHAPE = 2;
const SIZE = 1;
const SizeField = { number: 1, name: 2 };

export function openSizes(from, to, [height, width]) {
  const model = Message.parse(readFileSync(from));
  const graph = model.message(GRAPH);
  const given = new Set(graph.messages(GraphField.initializer).map((tensor) => tensor.text(TENSOR_NAME)));
  const inputs = graph.messages(GraphField.input).filter((value) => !given.has(value.text(VALUE_NAME)));
  open(inputs, [height, width]);
  open(graph.messages(GraphField.output), [`${height}_out`, `${width}_out`]);
  graph.remove(GraphField.inner);
  writeFileSync(to, model.encode());
}

function open(values, names) {
  for (const value of values) {
    const sizes = value.message(TYPE)?.message(TENSOR)?.message(SHAPE)?.messages(SIZE) ?? [];
    if (sizes.length !== 4) continue;
    sizes.slice(2).forEach((size, i) => {
      size.remove(SizeField.number, SizeField.name).addText(SizeField.name, names[i]);
    });
  }
}
