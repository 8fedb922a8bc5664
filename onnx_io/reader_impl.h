// Reads the graphs and functions of a model into one Graph. Private to the reader.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <onnx/onnx_pb.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/onnx_io/functions_impl.h"
#include "parsimony/onnx_io/model_file_impl.h"
#include "parsimony/onnx_io/reader.h"

namespace parsimony::onnx_io {

/// What all readers of one model share.
struct Reading {
  ModelFile::Impl& impl;
  Graph& graph;
  Functions functions;
  std::map<const void*, WeightId> constants;  ///< of functions that are called several times
  EditedData edited;
  std::map<std::string, const ExternalEdit*> unmade;  ///< by weight, if they are made anew
};

/// Reads a graph of the model, and those inside its nodes, into one Graph. A call of a function is
/// read as its nodes in its place.
class Reader {
 public:
  explicit Reader(Reading& reading);
  void read();

 private:
  /// Of body `id` of the graph.
  Reader(const Reader& around, const onnx::GraphProto& proto, BodyId id, std::string prefix);
  /// Of a function in one call, which stands in `around`. Nothing of `around` is seen in it but the
  /// operands.
  Reader(Reader& around, const onnx::NodeProto& call, const onnx::FunctionProto& function,
         int calls);

  void add_opsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports);
  void add_nodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes);

  bool is_body() const { return around_ != nullptr; }
  Body& body() { return graph_.bodies[body_]; }
  std::vector<ValueId>& inputs() { return is_body() ? body().inputs : graph_.inputs; }
  std::vector<ValueId>& outputs() { return is_body() ? body().outputs : graph_.outputs; }

  /// kNone if the name is taken.
  ValueId define(const std::string& name);
  void attach(ValueId id, Weight weight, const void* place = nullptr);
  /// A constant of which we know the shape and no numbers: nothing may shrink there, and why.
  void attach_opaque(ValueId id, DType dtype, Shape dims, std::string why);
  void attach(ValueId id, const onnx::TensorProto& tensor);
  /// What an edit leaves of an external tensor.
  Weight edited_view(const onnx::TensorProto& tensor, const std::string& name,
                     const ExternalEdit& edit);

  void define_initializers();
  /// Up to IR version 3 initializers are listed here too, and later ones may be.
  void define_inputs();
  void define_outputs();
  ValueId define_output(const onnx::NodeProto& node, const std::string& name);
  void attach_constant(const onnx::NodeProto& node);
  /// After `define_outputs`, since a file need not be sorted.
  void define_identities();
  /// A function may hand on an operand as it is.
  void forward_results();

  using Sources = absl::flat_hash_map<std::string_view, std::string_view>;
  using Roots = absl::flat_hash_map<std::string_view, ValueId>;
  /// The value with a weight that `name` shows through Identity nodes, or kNone. What it learns on
  /// the way goes into `roots`: chains may be long.
  ValueId root_weight(std::string_view name, const Sources& sources, Roots& roots) const;

  /// What reading `name` means; kNone if it is not there.
  ValueId read_as(std::string_view name) const;
  /// As `read_as`; names of the graphs around this one are seen here too.
  ValueId resolve(const std::string& name) const;

  BodyId read_body(const onnx::NodeProto& node, const std::string& attribute,
                   const onnx::GraphProto& proto);
  void read_call(const onnx::NodeProto& call, int function);
  /// A node without outputs cannot be named, and neither can what stands inside of it: what they
  /// read is only pinned.
  void pin_reads(const onnx::NodeProto& node);
  /// Also true of an operand that a call does not give.
  bool knows(std::string_view name) const;
  /// What writing `name` means: it differs for an Identity that makes a graph output of a weight.
  ValueId written_as(std::string_view name) const;
  void add_node(size_t n);

  void declare_value(const onnx::ValueInfoProto& info);
  void declare_types();
  /// Scales and zero points beside the graph must go on fitting what they describe.
  void mark_annotated();

  Reading& reading_;
  ModelFile::Impl& impl_;
  const onnx::GraphProto& proto_;  ///< empty in a function
  std::vector<const onnx::NodeProto*> nodes_;
  Graph& graph_;
  const Reader* around_ = nullptr;  ///< of the graph that this one is a body in
  BodyId body_;
  int calls_ = 0;         ///< of the function that this is, or stands in; 0: of none
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

}  // namespace parsimony::onnx_io
