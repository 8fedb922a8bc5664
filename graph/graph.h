// The network as the analysis sees it: values, nodes and views of weights. A Graph copies no
// tensor; a front end keeps the file or module alive for as long as the Graph is used.
#pragma once

#include <cstddef>
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
#include "parsimony/graph/host_tensor.h"

namespace parsimony {

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

/// A graph inside a node: a branch of If, the body of Loop or Scan. Its nodes and values stand in
/// the one Graph beside all others, and read what they capture like any operand.
struct Body {
  std::string attribute;         ///< "then_branch"
  BodyId around = kNone;         ///< the body that the owner stands in
  std::vector<ValueId> inputs;   ///< what the operator gives it
  std::vector<ValueId> outputs;  ///< what it gives the operator
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
  bool has_subgraph = false;   ///< If, Loop, Scan: pins what it touches
  std::vector<BodyId> bodies;  ///< of Graph::bodies, where the front end reads them
  BodyId body = kNone;         ///< the one that the node stands in
  int calls = 0;               ///< of a function: how many calls of it the model makes
};

struct Use {
  NodeId node;
  int input;
  bool operator==(const Use&) const = default;
};

/// An edge of the graph: a graph input, the output of a node, or a weight as one or several nodes
/// read it. Two values may show the same weight: vectors that an exporter merged are separated per
/// use (see separate_shared_vectors).
struct Value {
  std::string name;
  DType dtype = DType::kUnknown;
  std::optional<Shape> declared = {};     ///< from the file; -1 marks a symbolic dimension
  std::vector<std::string> symbols = {};  ///< name per declared dimension, "" where none; or empty
  NodeId producer = kNone;
  WeightId weight = kNone;
  bool is_input = false;
  bool is_output = false;
  bool captured = false;     ///< read by more than operands: a result of a body, an annotation
  bool shared_copy = false;  ///< one of several uses of a vector that was separated
  std::vector<Use> uses = {};
};

struct Graph;
struct Patch;

/// What a graph was read from: the memory behind its weights and the program behind its nodes.
class GraphSource {
 public:
  virtual ~GraphSource() = default;

  /// `weight` will not be read for a while: a mapped file need not stay resident.
  virtual void release(const Weight& /*weight*/) const {}
  /// Makes indices [first, first + count) of the first axis of a weight whose `data` is null.
  virtual std::vector<std::byte> make(const Weight& /*weight*/, int64_t /*first*/,
                                      int64_t /*count*/) const {
    return {};
  }
  /// The nodes for which the patches would change a number that the program has in a place where it
  /// cannot be changed, each once.
  virtual std::vector<NodeId> unwritable(const Graph& /*graph*/,
                                         const std::vector<Patch>& /*patches*/) const {
    return {};
  }
};

struct Graph {
  std::string format = "onnx";
  IdVector<WeightId, Weight> weights;
  IdVector<ValueId, Value> values;
  IdVector<NodeId, Node> nodes;  ///< in topological order, those of a body before its owner
  IdVector<BodyId, Body> bodies;
  std::vector<std::pair<ValueId, std::string>> whole;  ///< what the file holds fast, and why
  std::vector<std::string> notes;  ///< what the file holds that the graph does not show
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::shared_ptr<const GraphSource> source = std::make_shared<GraphSource>();

  ValueId find(std::string_view value_name) const;  ///< kNone if there is none; linear

  const Value& value(ValueId id) const { return values[id]; }
  Value& value(ValueId id) { return values[id]; }
  const Node& node(NodeId id) const { return nodes[id]; }
  const Weight& weight(WeightId id) const { return weights[id]; }
};

/// First non-empty output: the name by which plans refer to a node.
const std::string& key_of(const Graph& graph, const Node& node);

/// What people call the node: its name, or its key where it has none.
const std::string& label_of(const Graph& graph, const Node& node);

/// Between the parts of a name inside a body: "y::then_branch::w" is what the then_branch of the
/// node with the first output y calls w.
inline constexpr std::string_view kInside = "::";

/// Sorts `nodes` topologically and fills producers, uses and owners. Front ends call it last.
/// @throws ModelError if the graph has a cycle.
void finish(Graph& graph);

/// Gives every regular use (bias, normalisation, elementwise operand) of a shared vector its own
/// Value, so that an exporter's merging of equal constants does not couple layers. Follows finish.
void separate_shared_vectors(Graph& graph);

/// Values of a weight as HostTensor. @throws UnsupportedError for strings.
HostTensor to_host(const Weight& weight);

}  // namespace parsimony
