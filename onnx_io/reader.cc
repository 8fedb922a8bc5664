#include "parsimony/onnx_io/reader.h"

#include <absl/container/flat_hash_map.h>

#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "parsimony/onnx_io/attributes_impl.h"
#include "parsimony/onnx_io/constant_impl.h"
#include "parsimony/onnx_io/errors.h"
#include "parsimony/onnx_io/model_file_impl.h"
#include "parsimony/onnx_io/node_impl.h"
#include "parsimony/onnx_io/tensor_impl.h"

namespace parsimony::onnx_io {
namespace {

class Reader {
 public:
  explicit Reader(ModelFile::Impl& impl) : Reader(impl, impl.model.graph(), nullptr) {}

  Graph read() {
    const auto nodes = static_cast<size_t>(proto_.node_size());
    const auto initializers = static_cast<size_t>(proto_.initializer_size());
    graph_.values.reserve(nodes + initializers + 16);
    graph_.weights.reserve(initializers + 16);
    graph_.nodes.reserve(nodes);
    ids_.reserve(2 * nodes + initializers);
    left_out_.resize(nodes);
    for (const auto& import : impl_.model.opset_import()) {
      opsets_[canonical_domain(import.domain())] = static_cast<int>(import.version());
    }
    define_initializers();
    define_inputs();
    define_outputs();
    define_identities();
    for (int n = 0; n < proto_.node_size(); ++n) add_node(n);
    for (const auto& output : proto_.output()) {
      ValueId id = written_as(output.name());
      if (id == kNone) id = resolve(output.name());
      if (id == kNone) throw errors::missing_output(output.name());
      graph_.outputs.push_back(id);
    }
    for (const Capture& capture : captures_) graph_.inputs.push_back(capture.inside);
    declare_types();
    mark_annotated();
    graph_.release = [files = &impl_.external](const Weight& weight) {
      files->release(weight.data, weight.count() * weight.stride);
    };
    finish(graph_);
    return std::move(graph_);
  }

 private:
  struct Capture {
    ValueId inside;
    ValueId outside;
  };

  Reader(ModelFile::Impl& impl, const onnx::GraphProto& proto, Reader* around)
      : impl_(impl), proto_(proto), around_(around) {}

  /// kNone if the name is taken.
  ValueId define(const std::string& name) {
    const auto id = static_cast<ValueId>(graph_.values.size());
    if (!ids_.emplace(name, id).second) return kNone;
    graph_.values.emplace_back().name = name;
    return id;
  }

  void attach(ValueId id, Weight weight) {
    Value& value = graph_.value(id);
    value.weight = static_cast<WeightId>(graph_.weights.size());
    value.dtype = weight.dtype;
    value.declared = weight.dims;
    graph_.weights.push_back(std::move(weight));
  }

  /// A constant of which we know no numbers: nothing may shrink there.
  void attach_opaque(ValueId id, DType dtype, Shape dims) {
    Value& value = graph_.value(id);
    value.dtype = dtype;
    value.declared = std::move(dims);
    value.captured = true;
  }

  void attach(ValueId id, const onnx::TensorProto& tensor) {
    const DType dtype = dtype_of(tensor.data_type());
    if (size_of(dtype) == 0) {
      attach_opaque(id, dtype, dims_of(tensor));
    } else if (const auto edit = impl_.external_edits.find(&tensor);
               edit != impl_.external_edits.end()) {
      attach(id, edited_view(tensor, graph_.value(id).name, edit->second));
    } else {
      attach(id, view_of(tensor, graph_.value(id).name, impl_.external));
    }
  }

  /// What an edit leaves of an external tensor lies nowhere yet.
  Weight edited_view(const onnx::TensorProto& tensor, const std::string& name,
                     const ExternalEdit& edit) {
    const DType dtype = dtype_of(tensor.data_type());
    const auto& bytes = impl_.edited_bytes.emplace_back(edited(edit, dtype, impl_.external));
    return {name, dtype, dims_of(tensor), bytes.data(), size_of(dtype)};
  }

  void define_initializers() {
    for (const auto& tensor : proto_.initializer()) {
      const ValueId id = define(tensor.name());
      if (id == kNone) throw errors::defined_twice("initializer", tensor.name());
      attach(id, tensor);
    }
    for (const auto& sparse : proto_.sparse_initializer()) {
      const ValueId id = define(sparse.values().name());
      if (id == kNone) throw errors::defined_twice("initializer", sparse.values().name());
      attach_opaque(id, dtype_of(sparse.values().data_type()),
                    {sparse.dims().begin(), sparse.dims().end()});
    }
  }

  /// Up to IR version 3 initializers are listed here too, and later ones may be.
  void define_inputs() {
    const auto initializers = static_cast<ValueId>(graph_.values.size());
    for (const auto& input : proto_.input()) {
      const auto known = ids_.find(input.name());
      if (known != ids_.end() && known->second < initializers) continue;
      const ValueId id = define(input.name());
      if (id == kNone) throw errors::defined_twice("graph input", input.name());
      graph_.inputs.push_back(id);
    }
  }

  void define_outputs() {
    for (int n = 0; n < proto_.node_size(); ++n) {
      const onnx::NodeProto& node = proto_.node(n);
      if (is_identity(node)) continue;
      for (const std::string& name : node.output()) {
        if (!name.empty()) define_output(node, name);
      }
      if (is_standard(node, "Constant") && node.output_size() == 1 && !node.output(0).empty()) {
        left_out_[static_cast<size_t>(n)] = true;
        attach_constant(node);
      }
    }
  }

  ValueId define_output(const onnx::NodeProto& node, const std::string& name) {
    const ValueId id = define(name);
    if (id == kNone) throw errors::produced_twice(label_of(node), name);
    return id;
  }

  void attach_constant(const onnx::NodeProto& node) {
    const ValueId id = ids_.at(node.output(0));
    const int at = value_attribute(node);
    if (at >= 0 && node.attribute(at).has_t()) {
      attach(id, node.attribute(at).t());
      return;
    }
    std::optional<Weight> weight;
    if (at >= 0) weight = list_constant(node.attribute(at), impl_.scalars);
    if (!weight) {  // strings, sparse
      graph_.value(id).captured = true;
      return;
    }
    weight->name = node.output(0);
    attach(id, std::move(*weight));
  }

  /// After `define_outputs`, since a file need not be sorted.
  void define_identities() {
    Sources sources;
    Roots roots;
    for (const auto& node : proto_.node()) {
      if (is_identity(node)) sources.emplace(node.output(0), node.input(0));
    }
    if (sources.empty()) return;
    std::unordered_set<std::string_view> outputs;
    for (const auto& output : proto_.output()) outputs.insert(output.name());
    for (int n = 0; n < proto_.node_size(); ++n) {
      const onnx::NodeProto& node = proto_.node(n);
      if (!is_identity(node)) continue;
      const std::string& name = node.output(0);
      const ValueId root = root_weight(node.input(0), sources, roots);
      if (root == kNone || outputs.contains(name)) {
        const ValueId own = define_output(node, name);
        if (root == kNone) continue;
        own_outputs_[name] = own;
        ids_[name] = root;
      } else {
        if (!ids_.emplace(name, root).second) throw errors::produced_twice(label_of(node), name);
        left_out_[static_cast<size_t>(n)] = true;
      }
    }
  }

  using Sources = absl::flat_hash_map<std::string_view, std::string_view>;
  using Roots = absl::flat_hash_map<std::string_view, ValueId>;

  /// The value with a weight that `name` shows through Identity nodes, or kNone. What it learns on
  /// the way goes into `roots`: chains may be long.
  ValueId root_weight(std::string_view name, const Sources& sources, Roots& roots) const {
    std::vector<std::string_view> passed;
    ValueId root = kNone;
    while (passed.size() <= sources.size()) {  // or else a circle
      if (const auto known = roots.find(name); known != roots.end()) {
        root = known->second;
        break;
      }
      if (const auto id = ids_.find(name); id != ids_.end()) {
        root = graph_.value(id->second).weight == kNone ? kNone : id->second;
        break;
      }
      const auto source = sources.find(name);
      if (source == sources.end()) break;
      passed.push_back(name);
      name = source->second;
    }
    for (const std::string_view each : passed) roots.emplace(each, root);
    return root;
  }

  /// What reading `name` means; kNone if it is not there.
  ValueId read_as(std::string_view name) const {
    const auto id = ids_.find(name);
    return id == ids_.end() ? kNone : id->second;
  }

  /// As `read_as`; a name of the graphs around this one becomes an input here.
  ValueId resolve(const std::string& name) {
    const ValueId known = read_as(name);
    if (known != kNone || around_ == nullptr) return known;
    const ValueId outside = around_->resolve(name);
    if (outside == kNone) return kNone;
    Value& source = around_->graph_.value(outside);
    source.captured = true;
    const ValueId inside = define(name);
    graph_.value(inside).dtype = source.dtype;
    captures_.push_back({inside, outside});
    return inside;
  }

  Body body(const onnx::NodeProto& node, const std::string& attribute,
            const onnx::GraphProto& proto) {
    Reader inner(impl_, proto, this);
    Body result{attribute, nullptr, {}};
    try {
      result.graph = std::make_shared<const Graph>(inner.read());
    } catch (const ModelError& error) {
      throw errors::in_subgraph(label_of(node), attribute, error);
    }
    for (const Capture& capture : inner.captures_) result.captures.push_back(capture.outside);
    return result;
  }

  /// What writing `name` means: it differs for an Identity that makes a graph output of a weight.
  ValueId written_as(std::string_view name) const {
    const auto own = own_outputs_.find(name);
    return own == own_outputs_.end() ? read_as(name) : own->second;
  }

  void add_node(int n) {
    if (left_out_[static_cast<size_t>(n)]) return;
    const onnx::NodeProto& from = proto_.node(n);
    Node node;
    node.name = from.name();
    node.op = from.op_type();
    node.domain = canonical_domain(from.domain());
    const auto opset = opsets_.find(node.domain);
    if (opset != opsets_.end()) node.opset = opset->second;
    for (const std::string& name : from.input()) {
      const ValueId id = name.empty() ? kNone : resolve(name);
      if (id == kNone && !name.empty()) throw errors::missing_tensor(label_of(from), name);
      node.inputs.push_back(id);
    }
    for (const std::string& name : from.output()) {
      node.outputs.push_back(name.empty() ? kNone : written_as(name));
    }
    read_attributes(from, impl_.external, node);
    for (const auto& attribute : from.attribute()) {
      if (attribute.has_g()) node.bodies.push_back(body(from, attribute.name(), attribute.g()));
      for (const auto& graph : attribute.graphs()) {
        node.bodies.push_back(body(from, attribute.name(), graph));
      }
    }
    if (!key_of(from).empty()) {
      graph_.nodes.push_back(std::move(node));
      return;
    }
    for (const ValueId id : node.inputs) {  // it cannot be named: only pin what it reads
      if (id != kNone) graph_.value(id).captured = true;
    }
  }

  void declare_value(const onnx::ValueInfoProto& info) {
    const ValueId id = written_as(info.name());
    if (id != kNone && graph_.value(id).weight == kNone) declare(info, graph_.value(id));
  }

  void declare_types() {
    for (const auto& info : proto_.value_info()) declare_value(info);
    for (const auto& info : proto_.output()) declare_value(info);
    for (const auto& info : proto_.input()) declare_value(info);
  }

  /// Scales and zero points beside the graph must go on fitting what they describe.
  void mark_annotated() {
    const auto mark = [&](const std::string& name) {
      const ValueId id = read_as(name);
      if (id != kNone) graph_.value(id).captured = true;
    };
    for (const auto& annotation : proto_.quantization_annotation()) {
      mark(annotation.tensor_name());
      for (const auto& entry : annotation.quant_parameter_tensor_names()) mark(entry.value());
    }
  }

  ModelFile::Impl& impl_;
  const onnx::GraphProto& proto_;
  Reader* around_;  ///< of the graph that this one is a body in
  std::vector<Capture> captures_;
  Graph graph_;
  absl::flat_hash_map<std::string_view, ValueId> ids_;
  absl::flat_hash_map<std::string_view, ValueId> own_outputs_;
  std::vector<bool> left_out_;
  absl::flat_hash_map<std::string, int> opsets_;
};

}  // namespace

Graph to_graph(const ModelFile& file) {
  try {
    return Reader(file.impl()).read();
  } catch (const ModelError& error) {
    throw errors::in_file(file.path(), error);
  }
}

}  // namespace parsimony::onnx_io
