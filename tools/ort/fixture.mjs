// Tiny models for the oracle's own tests, written with nothing but the wire format.

import { typeNumber } from './tensor.mjs';
import { Message } from './wire.mjs';

const OPSET = 13;

/**
 * Builds an ONNX file.
 * @param inputs, outputs {name: [type, dims]}, a dim being a number or a name
 * @param nodes [opType, inputs, outputs, attributes]; an attribute is an integer, integers,
 *   a Float32Array or a TensorProto
 * @param tensors {name: TensorProto}, see tensor()
 */
export function model({ inputs, outputs, nodes, tensors = {}, irVersion = 7 }) {
  const file = new Message().addInt(1, irVersion);
  file.addMessage(8).addInt(2, OPSET);
  const graph = file.addMessage(7);
  graph.addText(2, 'fixture');
  for (const node of nodes) addNode(graph.addMessage(1), node);
  for (const [name, proto] of Object.entries(tensors)) {
    graph.addMessage(5, Message.parse(proto.encode()).remove(8).addText(8, name));
  }
  for (const [name, argument] of Object.entries(inputs))
    addArgument(graph.addMessage(11), name, argument);
  for (const [name, argument] of Object.entries(outputs))
    addArgument(graph.addMessage(12), name, argument);
  return file.encode();
}

/** A TensorProto of float32 values in raw_data. */
export function floats(dims, values) {
  return tensor('float32', dims).addBytes(9, Buffer.from(Float32Array.from(values).buffer));
}

export function int64s(values) {
  return tensor('int64', [values.length]).addBytes(
    9,
    Buffer.from(BigInt64Array.from(values, BigInt).buffer),
  );
}

/** A TensorProto without values. */
export function tensor(type, dims) {
  const proto = new Message().addInt(2, typeNumber(type));
  dims.forEach((dim) => proto.addInt(1, dim));
  return proto;
}

/** Values that are all different and none zero, so that a wrong cut shows. */
export const ramp = (count, from = 1) =>
  Array.from(
    { length: count },
    (_, i) => ((i + from) % 2 ? 1 : -1) * (0.3 + 0.07 * ((i * 5 + from) % 11)),
  );

function addNode(node, [opType, inputs, outputs, attributes = {}]) {
  inputs.forEach((name) => node.addText(1, name));
  outputs.forEach((name) => node.addText(2, name));
  node.addText(4, opType);
  for (const [name, value] of Object.entries(attributes)) {
    const attribute = node.addMessage(5).addText(1, name);
    if (value instanceof Float32Array)
      attribute.addInt(20, 6).addBytes(7, Buffer.from(value.buffer));
    else if (value instanceof Message) attribute.addInt(20, 4).addMessage(5, value);
    else if (Array.isArray(value))
      value.reduce((a, item) => a.addInt(8, item), attribute.addInt(20, 7));
    else attribute.addInt(20, 2).addInt(3, value);
  }
}

function addArgument(argument, name, [type, dims]) {
  const tensorType = argument
    .addText(1, name)
    .addMessage(2)
    .addMessage(1)
    .addInt(1, typeNumber(type));
  const shape = tensorType.addMessage(2);
  for (const dim of dims) {
    if (typeof dim === 'number') shape.addMessage(1).addInt(1, dim);
    else shape.addMessage(1).addText(2, dim);
  }
}
