// An ONNX model as far as the oracle must understand it: tensors, nodes, arguments. The rest of the
// file is carried along unread.

import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';

import { Tensor, TensorField, typeName, typeNumber } from './tensor.mjs';
import { Message } from './wire.mjs';

const ModelField = { graph: 7 };
const GraphField = { node: 1, initializer: 5, input: 11, output: 12 };
const NodeField = { input: 1, output: 2, opType: 4, attribute: 5 };
const AttributeField = {
  name: 1,
  int: 3,
  tensor: 5,
  floats: 7,
  ints: 8,
  type: 20, // the values a Constant may have
};
const ATTRIBUTE_IS_TENSOR = 4;
const ValueField = { name: 1, type: 2 };
const TypeField = { tensor: 1 };
const TensorTypeField = { elemType: 1, shape: 2 };

/** One operator of the graph; its message is the model's own. */
class Node {
  constructor(message) {
    this.message = message;
  }

  get opType() {
    return this.message.text(NodeField.opType);
  }

  get inputs() {
    return this.message.texts(NodeField.input);
  }

  get outputs() {
    return this.message.texts(NodeField.output);
  }

  attribute(name) {
    return this.message
      .messages(NodeField.attribute)
      .find((a) => a.text(AttributeField.name) === name);
  }

  setInput(index, name) {
    this.message.all(NodeField.input)[index].payload = new TextEncoder().encode(name);
  }
}

export class Model {
  /** @param folder where the files of external tensors lie */
  constructor(bytes, folder = '.') {
    this.folder = folder;
    this.message = Message.parse(bytes);
    this.graph = this.message.message(ModelField.graph);
    if (!this.graph) throw new Error('no graph in it: is this an ONNX file?');
    this.nodes = this.graph.messages(GraphField.node).map((message) => new Node(message));
    this.producers = new Map();
    for (const node of this.nodes) {
      for (const output of node.outputs) this.producers.set(output, node);
    }
    this.initializers = new Map();
    for (const message of this.graph.messages(GraphField.initializer)) this.#register(message);
  }

  static read(path) {
    const bytes = readFileSync(path);
    try {
      return new Model(bytes, dirname(path));
    } catch (error) {
      throw new Error(`${path}: ${error.message}`);
    }
  }

  /** The model as one self-contained file: ONNX Runtime finds no files beside a buffer. */
  encode() {
    for (const tensor of this.initializers.values()) {
      if (tensor.isExternal) tensor.setBytes(tensor.bytes());
    }
    return this.message.encode();
  }

  /** What the caller must feed: the graph's inputs that no initializer gives a value. */
  get inputs() {
    return this.graph
      .messages(GraphField.input)
      .map(readArgument)
      .filter(({ name }) => !this.initializers.has(name));
  }

  get outputs() {
    return this.graph.messages(GraphField.output).map(readArgument);
  }

  /** Whether any initializer or argument has elements of this type. */
  usesType(type) {
    const tensors = [...this.initializers.values(), ...this.inputs, ...this.outputs];
    return tensors.some((tensor) => tensor.type === type);
  }

  knows(value) {
    return this.producers.has(value);
  }

  /** The tensor of an initializer, or of a Constant node by its output. */
  tensor(name) {
    const initializer = this.initializers.get(name);
    if (initializer) return initializer;
    const node = this.producers.get(name);
    const message = node?.opType === 'Constant' ? constantTensor(node) : undefined;
    return message && new Tensor(message, this.folder);
  }

  /** Where a value comes from, seen through Identity nodes. */
  origin(name) {
    const node = this.producers.get(name);
    return node?.opType === 'Identity' ? this.origin(node.inputs[0]) : name;
  }

  /** Every (node, input index) that reads a value. */
  consumers(name) {
    return this.nodes.flatMap((node) =>
      node.inputs.flatMap((input, index) => (input === name ? [{ node, index }] : [])),
    );
  }

  /** Adds an initializer with the type, shape and values of another tensor. */
  addCopy(name, of) {
    const tensor = new Message().addInt(TensorField.dataType, typeNumber(of.type));
    of.dims.forEach((dim) => tensor.addInt(TensorField.dims, dim));
    tensor.addText(TensorField.name, name).addBytes(TensorField.rawData, of.bytes());
    this.graph.addMessage(GraphField.initializer, tensor);
    this.#register(tensor);
  }

  /** Adds an operator of one output; ONNX Runtime brings nodes into order. */
  addNode(opType, inputs, output) {
    const message = this.graph.addMessage(GraphField.node);
    for (const input of inputs) message.addText(NodeField.input, input);
    message.addText(NodeField.output, output).addText(NodeField.opType, opType);
    const node = new Node(message);
    this.nodes.push(node);
    this.producers.set(output, node);
  }

  /** Makes an inner value visible; ONNX Runtime infers its type and shape. */
  addOutput(name) {
    this.graph.addMessage(GraphField.output).addText(ValueField.name, name);
  }

  #register(message) {
    const tensor = new Tensor(message, this.folder);
    this.initializers.set(tensor.name, tensor);
  }
}

/** A Constant's tensor; a list of numbers is first turned into one, so that it can be masked. */
function constantTensor(node) {
  const value = node.attribute('value');
  if (value) return value.message(AttributeField.tensor);
  return listToTensor(node, 'value_floats', 'float32') ?? listToTensor(node, 'value_ints', 'int64');
}

function listToTensor(node, attributeName, type) {
  const attribute = node.attribute(attributeName);
  if (!attribute) return undefined;
  const floats = attribute.run(AttributeField.floats);
  const ints = BigInt64Array.from(attribute.ints(AttributeField.ints));
  const bytes = type === 'float32' ? floats : Buffer.from(ints.buffer);
  const count = type === 'float32' ? floats.length / 4 : ints.length;
  attribute.fields = [];
  attribute.addText(AttributeField.name, 'value').addInt(AttributeField.type, ATTRIBUTE_IS_TENSOR);
  return attribute
    .addMessage(AttributeField.tensor)
    .addInt(TensorField.dims, count)
    .addInt(TensorField.dataType, typeNumber(type))
    .addBytes(TensorField.rawData, bytes);
}

/** dims: numbers, or names of symbolic dimensions ('' for none); undefined where not a tensor. */
function readArgument(message) {
  const tensorType = message.message(ValueField.type)?.message(TypeField.tensor);
  const dims = tensorType?.message(TensorTypeField.shape)?.messages(1) ?? [];
  return {
    name: message.text(ValueField.name),
    type: tensorType && typeName(tensorType.int(TensorTypeField.elemType)),
    dims: tensorType && dims.map((dim) => (dim.int(1) > 0 ? dim.int(1) : dim.text(2))),
  };
}
