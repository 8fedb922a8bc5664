#include "parsimony/onnx_io/editor.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/graph/elements.h"
#include "parsimony/graph/errors.h"
#include "parsimony/graph/slice.h"
#include "parsimony/onnx_io/model_file_impl.h"
#include "parsimony/onnx_io/node_impl.h"
#include "parsimony/onnx_io/tensor_impl.h"

namespace parsimony::onnx_io {
namespace {

ModelError no_such_input(std::string_view node, int input, int inputs) {
  return ModelError("node ", in_quotes(node), ": no input ", input, ", it has ", inputs);
}

ModelError name_taken(std::string_view tensor) {
  return ModelError("tensor ", in_quotes(tensor), ": cannot be added: the name is taken");
}

ModelError not_dense(std::string_view tensor) {
  return ModelError("tensor ", in_quotes(tensor),
                    ": cannot be edited: it is not a dense tensor of numbers");
}

using onnx::AttributeProto;

/// Attributes that are lists even with a single element.
constexpr std::array<std::string_view, 14> kListAttributes = {
    "axes", "dilations", "ends",  "kernel_shape", "output_padding", "output_shape", "pads",
    "perm", "repeats",   "shape", "split",        "starts",         "steps",        "strides"};

/// A constant that can be sliced: its elements, their type and dims.
struct Dense {
  onnx::TensorProto* external = nullptr;  ///< set if the elements are in a file; otherwise in
  onnx::TensorProto* packed = nullptr;    ///< this tensor, sharing bytes, or in
  Field field;                            ///< this field
  DType dtype = DType::kUnknown;
  Shape dims;
};

/// @throws ModelError for strings and the like, for scalars in attributes, and where dims and data
/// disagree
Dense dense(ModelFile::Impl& impl, const std::string& name, const Constant& constant) {
  if (constant.tensor != nullptr) {
    onnx::TensorProto& tensor = *constant.tensor;
    const DType dtype = dtype_of_onnx(tensor.data_type());
    if (size_of(dtype) == 0) throw not_dense(name);
    if (!impl.external_edits.contains(&tensor)) view_of(tensor, name, impl.external);
    if (is_external(tensor)) return {&tensor, nullptr, {}, dtype, dims_of(tensor)};
    if (is_packed(dtype)) return {nullptr, &tensor, {}, dtype, dims_of(tensor)};
    return {nullptr, nullptr, field_of(tensor), dtype, dims_of(tensor)};
  }
  AttributeProto& attribute = *constant.attribute;
  if (attribute.name() == "value_ints") {
    return {nullptr, nullptr, attribute.mutable_ints(), DType::kInt64, {attribute.ints_size()}};
  }
  if (attribute.name() == "value_floats") {
    return {
        nullptr, nullptr, attribute.mutable_floats(), DType::kFloat32, {attribute.floats_size()}};
  }
  throw not_dense(name);
}

void set_dims(onnx::TensorProto& tensor, const Shape& dims) {
  for (size_t d = 0; d < dims.size(); ++d) tensor.set_dims(static_cast<int>(d), dims[d]);
}

ExternalEdit& external_edit(ModelFile::Impl& impl, const onnx::TensorProto& tensor) {
  const auto known = impl.external_edits.find(&tensor);
  if (known != impl.external_edits.end()) return known->second;
  ExternalData::Range source = external_range(tensor, impl.external);
  if (is_packed(dtype_of_onnx(tensor.data_type()))) {
    const auto& elements =
        impl.edited_bytes.emplace_back(unpacked(tensor, tensor.name(), impl.external));
    source = {elements.data(), std::ssize(elements)};
  }
  return impl.external_edits[&tensor] = {source, dims_of(tensor), {}, {}, {}};
}

SmallestElements smallest_of(const ExternalEdit& edit, DType dtype, int64_t count,
                             const ExternalData& external) {
  const int64_t size = size_of(dtype);
  return smallest(dtype, size, count, edit.zeros, [&](const ElementRun& run) {
    for_each_kept_run(edit, size, external, [&](const std::byte* data, int64_t bytes) {
      run(data, bytes / size, (data - edit.source.data) / size);
    });
  });
}

void zero_smallest_of(std::byte* data, int64_t stride, DType dtype, int64_t elements,
                      int64_t count) {
  const SmallestElements chosen = smallest(dtype, stride, count, std::nullopt,
                                           [&](const ElementRun& run) { run(data, elements, 0); });
  set_zero(data, elements, 0, dtype, stride, chosen);
}

onnx::TensorProto tensor_from(const Constant& constant) {
  if (constant.tensor != nullptr) return *constant.tensor;
  onnx::TensorProto tensor;
  const AttributeProto& attribute = *constant.attribute;
  if (attribute.has_f() || attribute.floats_size() > 0) {
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    *tensor.mutable_float_data() = attribute.floats();
    if (attribute.has_f()) tensor.add_float_data(attribute.f());
  } else {
    tensor.set_data_type(onnx::TensorProto::INT64);
    *tensor.mutable_int64_data() = attribute.ints();
    if (attribute.has_i()) tensor.add_int64_data(attribute.i());
  }
  if (attribute.name().ends_with('s')) {
    tensor.add_dims(std::max(attribute.floats_size(), attribute.ints_size()));
  }
  return tensor;
}

/// Finds an attribute; null if there is none.
AttributeProto* find_attribute(onnx::NodeProto& node, const std::string& name) {
  AttributeProto* found = nullptr;
  for (AttributeProto& known : *node.mutable_attribute()) {
    if (known.name() == name) found = &known;
  }
  return found;
}

bool is_list(const AttributeProto& attribute, size_t values) {
  if (attribute.type() != AttributeProto::UNDEFINED) {
    return attribute.type() == AttributeProto::INTS;
  }
  const auto& lists = kListAttributes;
  return attribute.ints_size() > 0 || values != 1 || contains(lists, attribute.name());
}

}  // namespace

OnnxEditor::OnnxEditor(ModelFile& file) : impl_(file.impl()) {
  if (!impl_.index) impl_.index = std::make_unique<ModelIndex>(impl_.model);
}

void OnnxEditor::bypass(std::span<const BypassedNode> nodes) {
  impl_.index->bypass(nodes);
  impl_.edited = true;
}

void OnnxEditor::copy(const std::string& name, const std::string& of, const std::string& consumer,
                      int input) {
  ModelIndex& index = *impl_.index;
  const PlacedNode placed = index.node(consumer);
  const Constant& original = index.constant(of);
  if (input < 0 || input >= placed.node->input_size()) {
    throw no_such_input(consumer, input, placed.node->input_size());
  }
  Scope& scope = *original.scope;
  if (!name.starts_with(scope.prefix)) {
    throw ModelError("tensor ", in_quotes(name), ": cannot be added: a copy of ", in_quotes(of),
                     " must be in the same graph");
  }
  const std::string own_name = name.substr(scope.prefix.size());
  const auto known = impl_.copies.find(name);
  if (known == impl_.copies.end()) {
    if (index.is_used(own_name)) throw name_taken(name);
    onnx::TensorProto tensor = tensor_from(original);
    tensor.set_name(own_name);
    const auto edit = impl_.external_edits.find(original.tensor);
    onnx::TensorProto& added = index.add(std::move(tensor), scope);
    if (edit != impl_.external_edits.end()) {
      impl_.external_edits[&added] = ExternalEdit(edit->second);
    }
    impl_.copies[name] = of;
  } else if (known->second != of) {
    throw name_taken(name);
  }
  index.set_input(placed, input, own_name);
  impl_.edited = true;
}

void OnnxEditor::slice(const std::string& name, std::span<const AxisKeep> axes) {
  const Constant& constant = impl_.index->constant(name);
  const Dense whole = dense(impl_, name, constant);
  check_slices(name, whole.dims, axes);
  if (whole.external != nullptr) {
    compose(external_edit(impl_, *whole.external).axes, merged(axes));
  } else if (whole.packed != nullptr) {
    const auto elements = unpacked(*whole.packed, name, impl_.external);
    set_raw(*whole.packed, sliced_bytes(elements.data(), whole.dims, 1, axes));
  } else {
    slice_field(whole.field, whole.dtype, whole.dims, axes);
  }
  if (constant.tensor != nullptr) set_dims(*constant.tensor, sliced(whole.dims, axes));
  if (constant.is_initializer && constant.tensor != nullptr) {
    impl_.index->declare(name, dims_of(*constant.tensor));
  }
  impl_.edited = true;
}

void OnnxEditor::zero_smallest(const std::string& name, int64_t count) {
  const Dense whole = dense(impl_, name, impl_.index->constant(name));
  const int64_t elements = element_count(whole.dims);
  if (count < 0 || count > elements) {
    throw ModelError("tensor ", in_quotes(name), ": cannot set ", count,
                     " elements to zero: it has ", elements);
  }
  if (count == 0) return;
  if (whole.external != nullptr) {
    ExternalEdit& edit = external_edit(impl_, *whole.external);
    edit.zeros = smallest_of(edit, whole.dtype, count, impl_.external);
  } else if (whole.packed != nullptr) {
    auto own = unpacked(*whole.packed, name, impl_.external);
    zero_smallest_of(own.data(), 1, whole.dtype, elements, count);
    set_raw(*whole.packed, own);
  } else {
    const auto [data, stride] = elements_of(whole.field, whole.dtype);
    zero_smallest_of(data, stride, whole.dtype, elements, count);
  }
  impl_.edited = true;
}

void OnnxEditor::assign(const std::string& name, std::span<const std::byte> values) {
  const Dense whole = dense(impl_, name, impl_.index->constant(name));
  const int64_t size = size_of(whole.dtype);
  const int64_t elements = element_count(whole.dims);
  const auto given = static_cast<int64_t>(values.size());
  if (given != elements * size) throw errors::wrong_bytes(name, elements * size, given);
  if (whole.external != nullptr) {
    impl_.external_edits.erase(whole.external);
    whole.external->clear_external_data();
    whole.external->clear_data_location();
    set_raw(*whole.external, values);
  } else if (whole.packed != nullptr) {
    set_raw(*whole.packed, values);
  } else {
    const auto [data, stride] = elements_of(whole.field, whole.dtype);
    for (int64_t i = 0; i < elements; ++i) {
      std::memcpy(data + i * stride, values.data() + i * size, size);
    }
  }
  impl_.edited = true;
}

void OnnxEditor::change(const std::string& name, const ChangeRows& change) {
  const Dense whole = dense(impl_, name, impl_.index->constant(name));
  if (whole.external != nullptr) {
    external_edit(impl_, *whole.external).change = change;
    impl_.edited = true;
    return;
  }
  std::vector<std::byte> values;
  if (whole.packed != nullptr) {
    values = unpacked(*whole.packed, name, impl_.external);
  } else {
    const auto [data, stride] = elements_of(whole.field, whole.dtype);
    values = dense_bytes({name, whole.dtype, whole.dims, data, stride});
  }
  change(values, {});
  assign(name, values);
}

void OnnxEditor::set_attribute(const std::string& key, const std::string& name,
                               std::span<const int64_t> values) {
  onnx::NodeProto& node = *impl_.index->node(key).node;
  if (values.empty()) {
    remove_if(*node.mutable_attribute(),
              [&](const AttributeProto& known) { return known.name() == name; });
    impl_.edited = true;
    return;
  }
  AttributeProto* attribute = find_attribute(node, name);
  if (attribute != nullptr && attribute->type() != AttributeProto::UNDEFINED &&
      attribute->type() != AttributeProto::INT && attribute->type() != AttributeProto::INTS) {
    throw errors::bad_attribute(key, name, "does not hold integers");
  }
  AttributeProto fresh;
  fresh.set_name(name);
  const bool list = is_list(attribute == nullptr ? fresh : *attribute, values.size());
  if (!list && values.size() != 1) {
    throw errors::bad_attribute(key, name,
                                "expected one integer, found " + std::to_string(values.size()));
  }
  if (attribute == nullptr) {
    attribute = node.add_attribute();
    attribute->set_name(name);
    attribute->set_type(list ? AttributeProto::INTS : AttributeProto::INT);
  }
  attribute->clear_ref_attr_name();  // set in functions that are called once
  if (list) {
    attribute->mutable_ints()->Assign(values.begin(), values.end());
  } else {
    attribute->set_i(values.front());
  }
  impl_.edited = true;
}

void OnnxEditor::set_number(const std::string& key, const std::string& name, double value) {
  onnx::NodeProto& node = *impl_.index->node(key).node;
  AttributeProto* attribute = find_attribute(node, name);
  if (attribute == nullptr) {
    attribute = node.add_attribute();
    attribute->set_name(name);
    attribute->set_type(AttributeProto::FLOAT);
  }
  if (attribute->type() != AttributeProto::FLOAT) {
    throw errors::bad_attribute(key, name, "does not hold a floating point number");
  }
  attribute->clear_ref_attr_name();
  attribute->set_f(static_cast<float>(value));
  impl_.edited = true;
}

void OnnxEditor::set_input(const std::string& key, int input, const HostTensor& constant) {
  ModelIndex& index = *impl_.index;
  const PlacedNode placed = index.node(key);
  onnx::NodeProto& node = *placed.node;
  if (input < 0) throw no_such_input(key, input, node.input_size());
  const std::string expected = key_of(node) + "_input" + std::to_string(input);
  const std::string old = input < node.input_size() ? node.input(input) : std::string();
  const std::string full = placed.scope->own(old);
  // Pruning again replaces constants that pruning added.
  const bool ours = old == expected && index.holds_tensor(full) && index.readers(full) == 1;
  const std::string name = ours ? old : index.fresh_name(expected);
  onnx::TensorProto tensor = tensor_of(name, constant);
  if (ours) {
    impl_.external_edits.erase(index.constant(full).tensor);
    *index.constant(full).tensor = std::move(tensor);
    index.declare(full, constant.dims);
  } else {
    index.add(std::move(tensor), *placed.scope);
    index.set_input(placed, input, name);
  }
  impl_.edited = true;
}

void OnnxEditor::update_shapes(const ChangeOf& change) {
  const auto update = [&](const Scope& scope, onnx::ValueInfoProto& info) {
    if (!info.type().has_tensor_type() || !info.type().tensor_type().has_shape()) return;
    const std::string name = scope.prefix + info.name();
    const std::optional<ShapeChange> shapes = change(impl_.index->root_of(name));
    const int rank = info.type().tensor_type().shape().dim_size();
    if (!shapes || static_cast<int>(shapes->before.size()) != rank ||
        shapes->after.size() != shapes->before.size()) {
      return;
    }
    for (int d = 0; d < rank; ++d) {
      const size_t at = d;
      if (shapes->before[at] == shapes->after[at]) continue;
      auto& dim = *info.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(d);
      if (!dim.has_dim_value() || dim.dim_value() == shapes->after[at]) continue;
      dim.set_dim_value(shapes->after[at]);
      impl_.edited = true;
    }
  };
  for (Scope& scope : impl_.index->scopes()) {
    if (scope.graph == nullptr) continue;
    for (onnx::ValueInfoProto& info : *scope.graph->mutable_value_info()) update(scope, info);
    for (onnx::ValueInfoProto& info : *scope.graph->mutable_input()) update(scope, info);
    for (onnx::ValueInfoProto& info : *scope.graph->mutable_output()) update(scope, info);
  }
}

}  // namespace parsimony::onnx_io
