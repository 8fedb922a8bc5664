// Resolves the names of a graph: constants, inputs, results of nodes.
#include <optional>
#include <string_view>
#include <utility>

#include "parsimony/graph/errors.h"
#include "parsimony/onnx_io/errors.h"
#include "parsimony/onnx_io/node_impl.h"
#include "parsimony/onnx_io/reader_impl.h"
#include "parsimony/onnx_io/tensor_impl.h"

namespace parsimony::onnx_io {
namespace {

/// Returns the name of a type by its number in onnx.proto; older versions do not have all.
std::string uncut_type(int number) {
  constexpr std::pair<int, std::string_view> kTypes[] = {
      {8, "string"}, {14, "complex64"}, {15, "complex128"}, {24, "float8e8m0"}};
  for (const auto& [known, name] : kTypes) {
    if (known == number) return std::string(name);
  }
  return "type " + std::to_string(number);
}

}  // namespace

ValueId Reader::define(const std::string& name) {
  if (const auto given = given_.find(name); given != given_.end()) {
    return ids_.emplace(name, given->second).second ? given->second : kNone;
  }
  const auto id = graph_.values.next_id();
  if (!ids_.emplace(name, id).second) return kNone;
  graph_.values.emplace_back().name = prefix_.empty() ? name : prefix_ + name;
  return id;
}

void Reader::attach(ValueId id, Weight weight, const void* place) {
  Value& value = graph_.value(id);
  value.weight = graph_.weights.next_id();
  value.dtype = weight.dtype;
  value.declared = weight.dims;
  if (calls_ > 1) {
    const auto [known, fresh] = reading_.constants.emplace(place, value.weight);
    value.weight = known->second;
    graph_.pinned_values.emplace_back(id, "a constant of function " + function_ +
                                              ", which is called " + std::to_string(calls_) +
                                              " times");
    if (!fresh) return;
  } else if (!given_.empty() && !value.name.starts_with(prefix_)) {
    graph_.pinned_values.emplace_back(id, "a result of function " + function_);
  }
  graph_.weights.push_back(std::move(weight));
}

void Reader::attach_opaque(ValueId id, DType dtype, Shape dims, std::string why) {
  Value& value = graph_.value(id);
  value.dtype = dtype;
  value.declared = std::move(dims);
  hold(id, std::move(why));
}

void Reader::attach(ValueId id, const onnx::TensorProto& tensor) {
  const DType dtype = dtype_of_onnx(tensor.data_type());
  if (size_of(dtype) == 0) {
    attach_opaque(id, dtype, dims_of(tensor),
                  "elements of " + uncut_type(tensor.data_type()) + " are not cut");
  } else if (const auto edit = impl_.external_edits.find(&tensor);
             edit != impl_.external_edits.end()) {
    attach(id, edited_view(tensor, graph_.value(id).name, edit->second), &tensor);
  } else if (is_packed(dtype)) {
    const std::string& name = graph_.value(id).name;
    const auto& elements = reading_.unpacked.emplace_back(unpacked(tensor, name, impl_.external));
    attach(id, {name, dtype, dims_of(tensor), elements.data(), 1}, &tensor);
  } else {
    attach(id, view_of(tensor, graph_.value(id).name, impl_.external), &tensor);
  }
}

Weight Reader::edited_view(const onnx::TensorProto& tensor, const std::string& name,
                           const ExternalEdit& edit) {
  const DType dtype = dtype_of_onnx(tensor.data_type());
  if (reading_.edited == EditedData::kLazy) {
    reading_.unmade.emplace(name, &edit);
    return {name, dtype, dims_of(tensor), nullptr, size_of(dtype)};
  }
  const auto& bytes = reading_.unpacked.emplace_back(edited(edit, dtype, impl_.external));
  return {name, dtype, dims_of(tensor), bytes.data(), size_of(dtype)};
}

void Reader::define_initializers() {
  for (const auto& tensor : proto_.initializer()) {
    const ValueId id = define(tensor.name());
    if (id == kNone) throw errors::defined_twice("initializer", tensor.name());
    attach(id, tensor);
  }
  for (const auto& sparse : proto_.sparse_initializer()) {
    const ValueId id = define(sparse.values().name());
    if (id == kNone) throw errors::defined_twice("initializer", sparse.values().name());
    attach_opaque(id, dtype_of_onnx(sparse.values().data_type()),
                  {sparse.dims().begin(), sparse.dims().end()}, "a sparse tensor is not cut");
  }
}

void Reader::define_inputs() {
  const auto initializers = graph_.values.next_id();
  for (const auto& input : proto_.input()) {
    const auto known = ids_.find(input.name());
    if (known != ids_.end() && known->second < initializers) continue;
    const ValueId id = define(input.name());
    if (id == kNone) throw errors::defined_twice("graph input", input.name());
    inputs().push_back(id);
    if (is_body()) graph_.value(id).captured = true;
  }
}

void Reader::define_outputs() {
  for (size_t n = 0; n < nodes_.size(); ++n) {
    const onnx::NodeProto& node = *nodes_[n];
    if (is_identity(node)) continue;
    for (const std::string& name : node.output()) {
      if (!name.empty()) define_output(node, name);
    }
    if (is_standard(node, "Constant") && node.output_size() == 1 && !node.output(0).empty()) {
      left_out_[n] = true;
      attach_constant(node);
    }
  }
}

ValueId Reader::define_output(const onnx::NodeProto& node, const std::string& name) {
  const ValueId id = define(name);
  if (id == kNone) throw errors::produced_twice(label_of(node), name);
  return id;
}

void Reader::attach_constant(const onnx::NodeProto& node) {
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
  weight->name = graph_.value(id).name;
  attach(id, std::move(*weight), &node.attribute(at));
}

void Reader::define_identities() {
  Sources sources;
  Roots roots;
  for (const onnx::NodeProto* each : nodes_) {
    const onnx::NodeProto& node = *each;
    if (is_identity(node)) sources.emplace(node.output(0), node.input(0));
  }
  if (sources.empty()) return;
  for (size_t n = 0; n < nodes_.size(); ++n) {
    const onnx::NodeProto& node = *nodes_[n];
    if (!is_identity(node)) continue;
    const std::string& name = node.output(0);
    const ValueId root = root_weight(node.input(0), sources, roots);
    if (root == kNone || results_.contains(name)) {
      const ValueId own = define_output(node, name);
      if (root == kNone) continue;
      own_outputs_[name] = own;
      ids_[name] = root;
    } else {
      if (!ids_.emplace(name, root).second) throw errors::produced_twice(label_of(node), name);
      left_out_[n] = true;
    }
  }
}

void Reader::forward_results() {
  for (const auto& [name, result] : given_) {
    const ValueId id = read_as(name);
    if (id == kNone) throw errors::missing_output(std::string(name));
    if (id == result || own_outputs_.contains(name)) continue;
    Node& node = graph_.nodes.emplace_back();
    node.op = "Identity";
    node.opset = kLowestOpset;
    node.inputs = {id};
    node.outputs = {result};
    node.body = body_;
    node.calls = calls_;
  }
}

ValueId Reader::root_weight(std::string_view name, const Sources& sources, Roots& roots) const {
  std::vector<std::string_view> passed;
  ValueId root = kNone;
  while (passed.size() <= sources.size()) {  // otherwise a cycle
    if (const auto known = roots.find(name); known != roots.end()) {
      root = known->second;
      break;
    }
    if (const auto id = ids_.find(name); id != ids_.end()) {
      const bool weight = id->second != kNone && graph_.value(id->second).weight != kNone;
      root = weight ? id->second : kNone;
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

}  // namespace parsimony::onnx_io
