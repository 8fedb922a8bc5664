// The network as the analysis sees it: values, nodes and views of weights, and what is known of
// them. A Graph copies no tensor; a front end keeps the file or module alive for as long as the
// Graph is used.
#pragma once

#include <absl/container/inlined_vector.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "parsimony/base/ids.h"
#include "parsimony/base/types.h"

namespace parsimony {

/// One per dimension of a tensor, or per label of a dimension. Inlined, since a network has many of
/// them and few are longer.
template <typename T>
using Few = absl::InlinedVector<T, 4>;

/// A constant that the analysis computes with. Integers and booleans are stored in `ints`, floating
/// point numbers in `floats`; the other vector is empty. Elements are in row-major order.
struct HostTensor {
  DType dtype = DType::kInt64;
  Shape dims;
  std::vector<int64_t> ints;
  std::vector<double> floats;

  static HostTensor scalar(int64_t value, DType dtype = DType::kInt64);
  /// A scalar; without its fraction if the type is one of integers.
  static HostTensor of(double number, DType dtype);
  static HostTensor vector(std::vector<int64_t> values, DType dtype = DType::kInt64);

  bool floating() const { return is_floating(dtype); }
  int64_t count() const { return static_cast<int64_t>(floating() ? floats.size() : ints.size()); }
  double number(int64_t i) const { return floating() ? floats[i] : static_cast<double>(ints[i]); }

  bool operator==(const HostTensor&) const = default;
};

/// A tensor of the original model. `data` points at element 0; consecutive elements lie
/// `stride` bytes apart, which exceeds the element's size where a file stores small types in wider
/// fields (float16 in int32_data). Values are little-endian, row-major.
struct Weight {
  std::string name;
  DType dtype = DType::kUnknown;
  Shape dims;
  const std::byte* data = nullptr;
  int64_t stride = 0;

  int64_t count() const { return element_count(dims); }
};

using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>,
                               std::vector<double>, std::vector<std::string>>;

/// A graph inside a node: a branch of If, the body of Loop or Scan. Its nodes and values are stored
/// in the same Graph as all others, and read captured values like any operand.
struct Body {
  std::string attribute;         ///< "then_branch"
  BodyId around = kNone;         ///< the body that contains the owner
  std::vector<ValueId> inputs;   ///< passed in by the operator
  std::vector<ValueId> outputs;  ///< handed back to the operator
  NodeId owner = kNone;          ///< the node it belongs to; kNone if that was removed
};

struct Node {
  std::string name;             ///< may be empty; `outputs` identify a node
  std::string op;               ///< canonical operator name: "Conv"
  std::string domain;           ///< "" is ai.onnx
  int opset = 0;                ///< the version of `domain` that the model imports
  std::vector<ValueId> inputs;  ///< kNone where an optional input is absent
  std::vector<ValueId> outputs;
  std::vector<std::pair<std::string, Attribute>> attributes;
  bool has_subgraph = false;   ///< If, Loop, Scan, and what a file may attach a graph to
  std::vector<BodyId> bodies;  ///< of Graph::bodies, where the front end reads them
  BodyId body = kNone;         ///< the one that contains the node
  int calls = 0;               ///< of a function: how often the model calls it
};

struct Use {
  NodeId node;
  int input;
  bool operator==(const Use&) const = default;
};

/// An edge of the graph: a graph input, the output of a node, or a weight as read by one or several
/// nodes. Two values may refer to the same weight: vectors that an exporter merged are separated
/// per use (see separate_shared_vectors).
struct Value {
  std::string name;
  DType dtype = DType::kUnknown;
  std::optional<Shape> declared = {};  ///< from the file; -1 marks a symbolic dimension
  /// Name per declared dimension, "" for those without; may be empty.
  std::vector<std::string> symbols = {};
  NodeId producer = kNone;
  WeightId weight = kNone;
  bool is_input = false;
  bool is_output = false;
  /// Not only an operand: also a result of a body, or named by an annotation.
  bool captured = false;
  bool shared_copy = false;  ///< one of the copies of a vector that was separated per use
  std::vector<Use> uses = {};

  bool is_read() const { return is_output || captured || !uses.empty(); }
};

struct Graph;
struct Patch;
class NodeView;

/// The source of a graph: the memory behind its weights and the program behind its nodes.
class GraphSource {
 public:
  virtual ~GraphSource() = default;

  /// Hints that `weight` will not be read for a while, so that its pages need not stay resident.
  virtual void release(const Weight& /*weight*/) const {}
  /// Materialises indices [first, first + count) along the first axis of a lazy weight, one whose
  /// `data` is null.
  virtual std::vector<std::byte> make(const Weight& /*weight*/, int64_t /*first*/,
                                      int64_t /*count*/) const {
    return {};
  }
  /// Shapes of the results of a node of which the operator table cannot tell them.
  virtual std::vector<std::optional<Shape>> infer(const NodeView& /*node*/) const { return {}; }
  /// The nodes with a number that the patches would change but that cannot be edited in the
  /// program, each once.
  virtual std::vector<NodeId> unwritable(const Graph& /*graph*/,
                                         const std::vector<Patch>& /*patches*/) const {
    return {};
  }
  /// Can experts with layers of their own be removed: can the readers of the sum read this operand
  /// instead, and numbers that name places be changed?
  virtual bool can_bypass(const Graph& /*graph*/, NodeId /*sum*/, int /*kept*/) const {
    return true;
  }
};

struct Graph {
  std::string format = "onnx";
  int64_t file_bytes = 0;  ///< of the model's file; 0: not known
  IdVector<WeightId, Weight> weights;
  IdVector<ValueId, Value> values;
  IdVector<NodeId, Node> nodes;  ///< in topological order, those of a body before its owner
  IdVector<BodyId, Body> bodies;
  /// Values whose dimensions the file does not allow to change, and why.
  std::vector<std::pair<ValueId, std::string>> pinned_values;
  std::vector<std::string> notes;  ///< what the file contains that the graph does not represent
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::shared_ptr<const GraphSource> source = std::make_shared<GraphSource>();

  ValueId find(std::string_view value_name) const;  ///< kNone if there is none; linear

  const Value& value(ValueId id) const { return values[id]; }
  Value& value(ValueId id) { return values[id]; }
  const Node& node(NodeId id) const { return nodes[id]; }
  const Weight& weight(WeightId id) const { return weights[id]; }
  /// Of a value that is one.
  const Weight& weight_of(ValueId id) const { return weights[values[id].weight]; }
};

/// Shapes and elements of all values, as far as known.
using ValueShapes = IdVector<ValueId, std::optional<Shape>>;
using ValueConstants = IdVector<ValueId, std::optional<HostTensor>>;

/// The facts that inference knows about every value: its shape and, if it is small and constant,
/// its elements.
struct Facts {
  ValueShapes shapes;
  ValueConstants constants;
  /// The value is computed from shapes and integers alone; its nodes take no part in coupling.
  IdVector<ValueId, bool> computed;
  /// May rules assume a size that only data tell: how many elements are kept, how often a loop
  /// runs? What lies behind has the same channels with any such size.
  bool may_assume = true;
};

/// First non-empty output: the name by which plans refer to a node.
const std::string& key_of(const Graph& graph, const Node& node);

/// The node's display name: its name, or its key if it has none.
const std::string& label_of(const Graph& graph, const Node& node);

/// Separates the parts of a name inside a body: "y::then_branch::w" is the value w in the
/// then_branch of the node whose first output is y.
inline constexpr std::string_view kInside = "::";

/// Sorts `nodes` topologically and fills producers, uses and owners. Front ends call it last.
/// @throws ModelError if the graph has a cycle.
void finish(Graph& graph);

/// Gives every regular use (bias, normalisation, elementwise operand) of a shared vector its own
/// Value, so that layers are not coupled because an exporter merged equal constants. Call after
/// finish.
void separate_shared_vectors(Graph& graph);

/// Values of a weight as HostTensor. @throws UnsupportedError for strings.
HostTensor to_host(const Weight& weight);

/// "/layer1/layer1.0/conv1/Conv", as torch's exporter names nodes, is module "layer1.0.conv1";
/// empty for other names.
std::string module_of_node_name(std::string_view name);

}  // namespace parsimony
