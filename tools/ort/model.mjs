// An ONNX model as far as the oracle must understand it: tensors, nodes, arguments. The rest of the
// file is carried along unread. A name inside a body of If, Loop or Scan, or inside a function that is
// called once, begins with the path to it: "y::then_branch::w" is what the then_branch of the node
// with the first output y calls w, "y::Layer::w" what the function Layer does that this node calls.

import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';

import { Tensor, TensorField, typeName, typeNumber } from './tensor.mjs';
import { Message } from './wire.mjs';

const ModelField = { graph: 7, functions: 25 };
const GraphField = { node: 1, initializer: 5, input: 11, output: 12, inner: 13 };
const NodeField = { input: 1, output: 2, opType: 4, attribute: 5, domain: 7 };
const FunctionField = { name: 1, output: 5, node: 7, domain: 10 };
const AttributeField = {
  name: 1,
  float: 2,
  int: 3,
  tensor: 5,
  graph: 6,
  floats: 7,
  ints: 8,
  graphs: 11,
  type: 20, // the values a Constant may have
};
const ATTRIBUTE_IS_FLOAT = 1;
const ATTRIBUTE_IS_TENSOR = 4;
const ValueField = { name: 1, type: 2 };
const TypeField = { tensor: 1 };
const TensorTypeField = { elemType: 1, shape: 2 };

/** Nodes with names of their own: the model's graph, one inside a node, or a function. */
class Scope {
  names = new Set(); // what a body defines, without the prefix
  results = new Map(); // of a function: the names in the call

  constructor(graph, prefix, around) {
    this.graph = graph;
    this.prefix = prefix;
    this.around = around;
  }

  static ofGraph(graph, prefix, around) {
    const scope = new Scope(graph, prefix, around);
    scope.#define(graph);
    return scope;
  }

  static ofCall(call, message) {
    const own = call.message.texts(NodeField.output).find((output) => output);
    const scope = new Scope(undefined, `${call.scope.prefix}${own}::${call.opType}::`, undefined);
    const outputs = call.outputs;
    message.texts(FunctionField.output).forEach((name, o) => {
      if (outputs[o]) scope.results.set(name, outputs[o]);
    });
    return scope;
  }

  #define(graph) {
    for (const node of graph.messages(GraphField.node)) {
      node.texts(NodeField.output).forEach((name) => this.names.add(name));
    }
    for (const input of graph.messages(GraphField.input)) this.names.add(input.text(ValueField.name));
    for (const tensor of graph.messages(GraphField.initializer)) {
      this.names.add(tensor.text(TensorField.name));
    }
  }

  /** What a name without a path means here. */
  fullName(name) {
    if (name === '' || !this.around || this.names.has(name)) return this.defined(name);
    return this.around.fullName(name);
  }

  /** How a value that is made here is named in full. */
  defined(name) {
    return this.results.get(name) ?? (name && this.prefix + name);
  }

  /** How a value of this graph, or of one around it, is named here. */
  ownName(fullName) {
    return fullName.startsWith(this.prefix)
      ? fullName.slice(this.prefix.length)
      : this.around.ownName(fullName);
  }
}

/** One operator of a graph; its message is the model's own. */
class Node {
  constructor(message, scope) {
    this.message = message;
    this.scope = scope;
  }

  /** The graphs in its attributes: [attribute, message]. */
  get bodies() {
    return this.message.messages(NodeField.attribute).flatMap((attribute) => {
      const name = attribute.text(AttributeField.name);
      const one = attribute.messages(AttributeField.graph).slice(-1);
      const list = attribute.messages(AttributeField.graphs);
      return [
        ...one.map((graph) => [name, graph]),
        ...list.map((graph, i) => [`${name}[${i}]`, graph]),
      ];
    });
  }

  /** What plans call it: its first output. */
  get key() {
    return this.outputs.find((output) => output);
  }

  get functionName() {
    const domain = this.message.text(NodeField.domain);
    return `${domain === 'ai.onnx' ? '' : domain}::${this.opType}`;
  }

  get opType() {
    return this.message.text(NodeField.opType);
  }

  get inputs() {
    return this.message.texts(NodeField.input).map((name) => this.scope.fullName(name));
  }

  get outputs() {
    return this.message.texts(NodeField.output).map((name) => this.scope.defined(name));
  }

  attribute(name) {
    return this.message
      .messages(NodeField.attribute)
      .find((a) => a.text(AttributeField.name) === name);
  }

  integer(name, fallback) {
    return this.attribute(name)?.int(AttributeField.int) ?? fallback;
  }

  /** Gives a floating point attribute another value, or adds it. */
  setNumber(name, value) {
    let attribute = this.attribute(name);
    if (!attribute) {
      attribute = this.message.addMessage(NodeField.attribute);
      attribute.addText(AttributeField.name, name).addInt(AttributeField.type, ATTRIBUTE_IS_FLOAT);
    }
    attribute.remove(AttributeField.float).addFloat(AttributeField.float, value);
  }

  setInput(index, name) {
    const own = this.scope.ownName(name);
    this.message.all(NodeField.input)[index].payload = new TextEncoder().encode(own);
  }
}

export class Model {
  /** @param folder where the files of external tensors lie */
  constructor(bytes, folder = '.') {
    this.folder = folder;
    this.message = Message.parse(bytes);
    this.graph = this.message.message(ModelField.graph);
    if (!this.graph) throw new Error('no graph in it: is this an ONNX file?');
    this.nodes = [];
    this.producers = new Map();
    this.initializers = new Map();
    this.scopes = new Map(); // of an initializer
    this.functions = new Map();
    this.calls = new Map(); // of a function: how often it is called
    for (const message of this.message.messages(ModelField.functions)) {
      const name = `${message.text(FunctionField.domain)}::${message.text(FunctionField.name)}`;
      this.functions.set(name, message);
    }
    this.#countCalls(this.graph.messages(GraphField.node));
    this.#indexGraph(Scope.ofGraph(this.graph, '', undefined));
  }

  #countCalls(messages) {
    if (this.functions.size === 0) return;
    for (const message of messages) {
      const node = new Node(message, new Scope(undefined, '', undefined));
      for (const [, graph] of node.bodies) this.#countCalls(graph.messages(GraphField.node));
      const called = this.functions.get(node.functionName);
      if (!called) continue;
      this.calls.set(called, (this.calls.get(called) ?? 0) + 1);
      this.#countCalls(called.messages(FunctionField.node));
    }
  }

  #indexGraph(scope) {
    for (const message of scope.graph.messages(GraphField.initializer)) {
      this.#register(message, scope);
    }
    this.#indexNodes(scope, scope.graph.messages(GraphField.node));
  }

  #indexNodes(scope, messages) {
    for (const message of messages) {
      const node = new Node(message, scope);
      this.nodes.push(node);
      for (const output of node.outputs) this.producers.set(output, node);
      if (!node.key) continue;
      const own = message.texts(NodeField.output).find((output) => output);
      for (const [attribute, graph] of node.bodies) {
        this.#indexGraph(Scope.ofGraph(graph, `${scope.prefix}${own}::${attribute}::`, scope));
      }
      const called = this.functions.get(node.functionName);
      if (called && this.calls.get(called) === 1) {
        this.#indexNodes(Scope.ofCall(node, called), called.messages(FunctionField.node));
      }
    }
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

  /** Gives the last two sizes of images, which the inputs and outputs fix, names: any size will do. */
  openImageSizes() {
    const given = (value) => this.initializers.has(value.text(ValueField.name));
    const inputs = this.graph.messages(GraphField.input).filter((value) => !given(value));
    const open = (value, names) => {
      const dims = dimsOf(value);
      if (dims.length !== 4) return;
      dims.slice(2).forEach((dim, i) => dim.remove(1, 2).addText(2, names[i]));
    };
    inputs.forEach((value) => open(value, ['height', 'width']));
    for (const value of this.graph.messages(GraphField.output)) open(value, ['height_out', 'width_out']);
    this.graph.remove(GraphField.inner);
  }

  /** Whether any initializer or argument has elements of this type. */
  usesType(type) {
    const tensors = [...this.initializers.values(), ...this.inputs, ...this.outputs];
    return tensors.some((tensor) => tensor.type === type);
  }

  knows(value) {
    return this.producers.has(value);
  }

  /** Whether the value is one of the model's graph, which can become an output of it. */
  canShow(value) {
    return this.producers.get(value)?.scope.prefix === '';
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

  /** Adds an initializer with the type, shape and values of the tensor `of`, beside it. */
  addCopy(name, ofName) {
    const of = this.tensor(ofName);
    const scope = this.scopes.get(ofName) ?? this.producers.get(ofName).scope;
    this.addTensor(name, of.type, of.dims, of.bytes(), { scope });
  }

  addTensor(name, type, dims, bytes, { scope }) {
    const ownName = scope.ownName(name);
    const tensor = new Message().addInt(TensorField.dataType, typeNumber(type));
    dims.forEach((dim) => tensor.addInt(TensorField.dims, dim));
    tensor.addText(TensorField.name, ownName).addBytes(TensorField.rawData, bytes);
    scope.graph.addMessage(GraphField.initializer, tensor);
    scope.names.add(ownName);
    this.#register(tensor, scope);
  }

  /** Adds an operator of one output beside another; ONNX Runtime brings nodes into order. */
  addNode(opType, inputs, output, { scope }) {
    const message = scope.graph.addMessage(GraphField.node);
    for (const input of inputs) message.addText(NodeField.input, scope.ownName(input));
    const ownName = scope.ownName(output);
    message.addText(NodeField.output, ownName).addText(NodeField.opType, opType);
    scope.names.add(ownName);
    const node = new Node(message, scope);
    this.nodes.push(node);
    this.producers.set(output, node);
  }

  /** Makes a value visible; ONNX Runtime infers its type and shape. */
  addOutput(name) {
    if (this.outputs.some((output) => output.name === name)) return;
    this.graph.addMessage(GraphField.output).addText(ValueField.name, name);
  }

  /** Lets the caller feed a value of any shape. */
  addInput(name, type) {
    const argument = this.graph.addMessage(GraphField.input).addText(ValueField.name, name);
    const tensorType = argument.addMessage(ValueField.type).addMessage(TypeField.tensor);
    tensorType.addInt(TensorTypeField.elemType, typeNumber(type));
  }

  #register(message, scope) {
    const tensor = new Tensor(message, this.folder);
    this.initializers.set(scope.prefix + tensor.name, tensor);
    this.scopes.set(scope.prefix + tensor.name, scope);
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
function dimsOf(value) {
  const tensorType = value.message(ValueField.type)?.message(TypeField.tensor);
  return tensorType?.message(TensorTypeField.shape)?.messages(1) ?? [];
}

function readArgument(message) {
  const tensorType = message.message(ValueField.type)?.message(TypeField.tensor);
  const dims = dimsOf(message);
  return {
    name: message.text(ValueField.name),
    type: tensorType && typeName(tensorType.int(TensorTypeField.elemType)),
    dims: tensorType && dims.map((dim) => (dim.int(1) > 0 ? dim.int(1) : dim.text(2))),
  };
}
