// Reads the graphs and functions of a model into one Graph. Private to the reader.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <onnx/onnx_pb.h>

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/operators/node_view.h"
#include "parsimony/onnx_io/model_file_impl.h"
#include "parsimony/onnx_io/reader.h"

namespace parsimony::onnx_io {

/// State shared by all readers of one model.
struct Reading {
  ModelFile::Impl& impl;
  Graph& graph;
  Functions functions;
  std::map<const void*, WeightId> constants;  ///< of functions that are called several times
  EditedData edited;
  std::map<std::string, const ExternalEdit*> unmade;  ///< by weight, if they are lazy
  std::deque<std::vector<std::byte>> unpacked;        ///< elements that share bytes in the file
};

/// Reads a graph of the model, and those inside its nodes, into one Graph. Function calls are
/// inlined.
class Reader {
 public:
  explicit Reader(Reading& reading);
  void read();

 private:
  /// Reads body `id` of the graph.
  Reader(const Reader& around, const onnx::GraphProto& proto, BodyId id, std::string prefix);
  /// Reads a function for one call in `around`, of which only the operands are visible.
  Reader(Reader& around, const onnx::NodeProto& call, const onnx::FunctionProto& function,
         int calls);

  /// Reads the body of a loop that runs once; its nodes become nodes of the graph around it.
  Reader(Reader& around, const onnx::NodeProto& loop, const onnx::GraphProto& body);

  void add_opsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports);
  void add_nodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes);

  bool is_body() const { return around_ != nullptr && !is_turn_; }
  Body& body() { return graph_.bodies[body_]; }
  std::vector<ValueId>& inputs() { return is_body() ? body().inputs : graph_.inputs; }
  std::vector<ValueId>& outputs() { return is_body() ? body().outputs : graph_.outputs; }

  /// Defines a value; kNone if the name is taken.
  ValueId define(const std::string& name);
  void attach(ValueId id, Weight weight, const void* place = nullptr);
  /// Attaches a constant of known shape but unknown elements, which is pinned with the reason.
  void attach_opaque(ValueId id, DType dtype, Shape dims, std::string why);
  void attach(ValueId id, const onnx::TensorProto& tensor);
  /// Returns the edited view of an external tensor.
  Weight edited_view(const onnx::TensorProto& tensor, const std::string& name,
                     const ExternalEdit& edit);

  void define_initializers();
  /// Defines the inputs, which up to IR version 3 include all initializers, later some.
  void define_inputs();
  void define_outputs();
  ValueId define_output(const onnx::NodeProto& node, const std::string& name);
  void attach_constant(const onnx::NodeProto& node);
  /// Call after `define_outputs`, since a file need not be sorted.
  void define_identities();
  /// Forwards operands that a function returns unchanged.
  void forward_results();

  using Sources = absl::flat_hash_map<std::string_view, std::string_view>;
  using Roots = absl::flat_hash_map<std::string_view, ValueId>;
  /// Returns the weight that `name` refers to through Identity nodes, or kNone. Memoised in
  /// `roots`, since chains may be long.
  ValueId root_weight(std::string_view name, const Sources& sources, Roots& roots) const;

  /// Returns the value that reading `name` yields; kNone if undefined.
  ValueId read_as(std::string_view name) const;
  /// Looks a name up like `read_as`, also in the enclosing graphs.
  ValueId resolve(const std::string& name) const;

  BodyId read_body(const onnx::NodeProto& node, const std::string& attribute,
                   const onnx::GraphProto& proto);
  void read_call(const onnx::NodeProto& call, int function);
  /// Returns a scalar constant visible in this graph; empty if the name is not one.
  std::optional<int64_t> constant(const std::string& name) const;
  /// Returns the body of a Loop with one iteration and no scan outputs; null for other nodes.
  const onnx::GraphProto* only_turn(const onnx::NodeProto& node) const;
  void read_turn(const onnx::NodeProto& loop, const onnx::GraphProto& body);
  /// A node without outputs cannot be named, and neither can anything inside it: their operands are
  /// only pinned.
  /// Pins a value that is read by more than operands of nodes, so that it keeps its shape.
  void hold(ValueId id, std::string why);
  /// Pins the operands of a node without outputs, which cannot be named, nor anything inside it.
  void pin_reads(const onnx::NodeProto& node);
  /// Returns whether the name is known, also for an operand that a call omits.
  bool knows(std::string_view name) const;
  /// Returns the value that writing `name` defines; differs for an Identity that turns a weight
  /// into a graph output.
  ValueId written_as(std::string_view name) const;
  void add_node(size_t n);

  void declare_value(const onnx::ValueInfoProto& info);
  void declare_types();
  /// Scales and zero points in quantization annotations must keep matching the tensors they
  /// describe.
  void mark_annotated();

  Reading& reading_;
  ModelFile::Impl& impl_;
  const onnx::GraphProto& proto_;  ///< empty in a function
  std::vector<const onnx::NodeProto*> nodes_;
  Graph& graph_;
  const Reader* around_ = nullptr;  ///< the enclosing graph
  bool is_turn_ = false;            ///< see `read_turn`
  BodyId body_;
  int calls_ = 0;         ///< of the function that is read; 0: none
  std::string function_;  ///< its name
  CallAttributes attributes_;
  std::string prefix_;  ///< of the names in this body or function
  absl::flat_hash_set<std::string_view> results_;
  std::map<std::string_view, ValueId> given_;  ///< results of a function: the call's
  absl::flat_hash_map<std::string_view, ValueId> ids_;
  absl::flat_hash_map<std::string_view, ValueId> own_outputs_;
  std::vector<bool> left_out_;
  absl::flat_hash_map<std::string, int> opsets_;
};

/// Replaces lists of tensors with known length and elements: SequenceAt becomes an Identity of the
/// element, ConcatFromSequence a Concat, SplitToSequence a Split. Call before `finish`.
void resolve_lists(Graph& graph);

/// Returns the shapes of the node's results, as far as libonnx can infer them. For operator
/// versions newer than libonnx, the latest one that it knows is used.
std::vector<std::optional<Shape>> shapes_by_schema(const NodeView& node);

/// Returns the shapes of the results of a node that libonnx does not know, nor the file declares:
/// as ONNX Runtime, where there is one, computes them from zeros. Empty if that does not know it
/// either.
std::vector<std::optional<Shape>> shapes_by_running(const NodeView& node);

}  // namespace parsimony::onnx_io
