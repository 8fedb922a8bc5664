// Parameters, buffers and constants of an edited program.
#include <ATen/ATen.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "parsimony/torch_io/exported/draft_impl.h"
#include "parsimony/torch_io/exported/words_impl.h"
#include "parsimony/torch_io/script/nodes.h"

namespace parsimony::torch_io::exported {

namespace jit = torch::jit;

namespace {

/// Paths of the tensors that calls read.
std::set<std::string> tensors_read_by(jit::Graph& graph) {
  std::set<std::string> paths;
  script::for_each_node(*graph.block(), [&](const jit::Node* node) {
    for (const jit::Value* input : node->inputs()) {
      if (input->type()->kind() != c10::TypeKind::TensorType) continue;
      std::string path = attribute_path(*input);
      if (!path.empty()) paths.insert(std::move(path));
    }
  });
  return paths;
}

/// Behind the last of its kind, for parameters come before buffers, and these before inputs.
void add_input(Draft& draft, const NamedTensor& added, const std::string& placeholder) {
  const char* kind = added.is_parameter ? "parameter" : "buffer";
  Json spec;
  spec["arg"] = tagged("name", placeholder);
  spec[added.is_parameter ? "parameter_name" : "buffer_name"] = added.name;
  if (!added.is_parameter) spec["persistent"] = true;
  std::set<std::string_view> before{"token", "parameter"};
  if (!added.is_parameter) before.insert("buffer");
  Json& specs = draft.input_specs();
  std::ptrdiff_t offset = 0;
  while (offset < std::ssize(specs) && before.contains(specs[offset].begin().key())) ++offset;
  specs.insert(specs.begin() + offset, tagged(kind, spec));
  Json& inputs = draft.graph()["inputs"];
  inputs.insert(inputs.begin() + offset, tagged("as_tensor", tagged("name", placeholder)));
  Json& values = draft.graph()["tensor_values"];
  Json meta = values.empty() ? Json::object() : values.begin().value();
  meta["dtype"] = type_of(added.tensor.scalar_type())->code;
  meta["requires_grad"] = added.is_parameter;
  values[placeholder] = std::move(meta);
}

/// Tensors that the edits added become parameters or buffers of the program.
std::vector<NamedTensor> add_tensors(Draft& draft, const std::set<std::string>& read) {
  std::vector<NamedTensor> all;
  for (const std::string& path : read) {
    if (draft.placeholders.contains(path)) continue;
    const at::Tensor tensor = draft.tensor(path);
    const auto& type = *draft.small.type();
    const bool is_parameter = type.is_parameter(type.getAttributeSlot(path));
    std::string& placeholder = draft.placeholders[path];
    placeholder = (is_parameter ? "p_" : "b_") + path;
    all.push_back({path, tensor, is_parameter});
    add_input(draft, all.back(), placeholder);
  }
  return all;
}

/// Paths of the tensors that only dropped calls have read; their inputs go.
std::set<std::string> drop_tensors(Draft& draft, const std::set<std::string>& read) {
  std::set<std::string> dropped;
  for (const std::string& path :
       tensors_read_by(*draft.program.module.get_method("forward").graph())) {
    const auto found = draft.placeholders.find(path);
    if (read.contains(path) || found == draft.placeholders.end()) continue;
    dropped.insert(path);
    const Json input = tagged("as_tensor", tagged("name", found->second));
    Json& inputs = draft.graph()["inputs"];
    const auto at = std::find(inputs.begin(), inputs.end(), input) - inputs.begin();
    inputs.erase(at);
    draft.input_specs().erase(at);
    draft.graph()["tensor_values"].erase(found->second);
  }
  return dropped;
}

}  // namespace

std::vector<NamedTensor> settle_tensors(Draft& draft) {
  const std::set<std::string> read = tensors_read_by(*draft.edited.graph);
  const std::vector<NamedTensor> added = add_tensors(draft, read);
  const std::set<std::string> dropped = drop_tensors(draft, read);
  std::set<std::string> parameters;
  for (const Json& spec : draft.input_specs()) {
    if (spec.contains("parameter")) {
      parameters.insert(spec["parameter"]["parameter_name"].get<std::string>());
    }
  }
  // Of the names of one tensor the program reads one: the others follow it.
  std::map<const void*, std::string> first_names;
  for (const auto& [name, placeholder] : draft.program.placeholders) {
    first_names.emplace(draft.archive.tensors().at(name).unsafeGetTensorImpl(), name);
  }
  std::vector<NamedTensor> all;
  for (const std::string& name : draft.archive.names()) {
    const at::Tensor& tensor = draft.archive.tensors().at(name);
    const bool used = draft.program.placeholders.contains(name);
    const auto tied = first_names.find(tensor.unsafeGetTensorImpl());
    const std::string source = used || tied == first_names.end() ? name : tied->second;
    if (dropped.contains(source)) continue;
    const bool follows = used || source != name;
    all.push_back({name, follows ? draft.tensor(source) : tensor, parameters.contains(source)});
  }
  all.insert(all.end(), added.begin(), added.end());
  return all;
}

}  // namespace parsimony::torch_io::exported
