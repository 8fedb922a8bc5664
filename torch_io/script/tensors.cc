#include <ATen/ATen.h>

#include "parsimony/torch_io/script/interpreter_impl.h"
#include "parsimony/torch_io/tensor.h"

namespace parsimony::torch_io::script {
namespace {

/// Numbers that lie in memory one after the other, or can be copied so.
bool is_plain(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided && !tensor.is_quantized() &&
         !tensor.is_meta() && dtype_of(tensor.scalar_type()) != DType::kUnknown;
}

}  // namespace

Tensors::Tensors(Builder& builder, const torch::jit::Module& module) : builder_(builder) {
  for (const auto& attribute : module.named_attributes(/*recurse=*/true)) {
    if (!attribute.value.isTensor()) continue;
    builder_.reserve(attribute.name);
    names_.emplace(key_of(attribute.value.toTensor(), attribute.name), attribute.name);
  }
}

std::string Tensors::key_of(const at::Tensor& tensor, const std::string& path) const {
  if (!is_plain(tensor) || tensor.numel() == 0) return path;
  const auto at = reinterpret_cast<uintptr_t>(tensor.data_ptr());
  return std::to_string(at) + to_string(tensor.sizes().vec()) + to_string(tensor.strides().vec());
}

Binding Tensors::define(const at::Tensor& tensor, const std::string& name,
                        torch::jit::Node* constant) {
  if (!is_plain(tensor)) {  // quantised, sparse: nobody knows its numbers
    builder_.begin(name);
    return Binding::tensor(builder_.emit_opaque("tensor", {}, 1, false).front());
  }
  const at::Tensor dense = tensor.detach().cpu().contiguous();
  builder_.origins().homes[name] = {dense, tensor, constant, false};
  return Binding::tensor(builder_.weight(view_of(name, dense)));
}

Binding Tensors::attribute(const at::Tensor& tensor, const std::string& path) {
  if (!tensor.defined()) return Binding::none();
  const std::string key = key_of(tensor, path);
  const auto known = bindings_.find(key);
  if (known != bindings_.end()) return known->second;
  const auto name = names_.find(key);
  return bindings_[key] = define(tensor, name == names_.end() ? path : name->second, nullptr);
}

ValueId Tensors::known(const at::Tensor& tensor, const std::string& path) const {
  const auto found = bindings_.find(key_of(tensor, path));
  return found == bindings_.end() ? kNone : found->second.value;
}

Binding Tensors::constant(torch::jit::Node* node, const at::Tensor& tensor) {
  const auto known = constants_.find(node);
  if (known != constants_.end()) return known->second;
  const std::string name = "constant_" + std::to_string(constants_.size());
  return constants_[node] = define(tensor, name, node);
}

}  // namespace parsimony::torch_io::script
