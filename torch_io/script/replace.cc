#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "parsimony/torch_io/script/replace_impl.h"

namespace parsimony::torch_io::script {

namespace jit = torch::jit;

bool same_memory(const at::Tensor& a, const at::Tensor& b) {
  if (a.is_same(b)) return true;
  return a.defined() && b.defined() && a.layout() == at::kStrided && b.layout() == at::kStrided &&
         a.numel() > 0 && a.data_ptr() == b.data_ptr() && a.sizes() == b.sizes() &&
         a.strides() == b.strides();
}

namespace {

// Not of at::Tensor: newer libtorch makes a value, None, of an optional one that is empty.
std::optional<c10::IValue> new_tensor(const at::Tensor& old, const TensorPairs& pairs) {
  for (const auto& [source, fresh] : pairs) {
    if (!same_memory(source, old)) continue;
    if (old.requires_grad()) fresh.set_requires_grad(true);
    return c10::IValue(fresh);
  }
  return std::nullopt;
}

/// In lists and tuples too; empty if there is nothing to replace.
std::optional<c10::IValue> new_value(const c10::IValue& old, const TensorPairs& pairs) {
  if (old.isTensor()) return new_tensor(old.toTensor(), pairs);
  if (!old.isList() && !old.isTuple()) return std::nullopt;
  std::vector<c10::IValue> items =
      old.isList() ? old.toListRef().vec() : old.toTupleRef().elements().vec();
  bool any = false;
  for (c10::IValue& item : items) {
    auto fresh = new_value(item, pairs);
    any = any || fresh.has_value();
    if (fresh) item = std::move(*fresh);
  }
  if (!any) return std::nullopt;
  if (old.isTuple()) return c10::IValue(c10::ivalue::Tuple::create(std::move(items)));
  c10::impl::GenericList list(old.toList().elementType());
  for (c10::IValue& item : items) list.push_back(std::move(item));
  return c10::IValue(std::move(list));
}

}  // namespace

void replace_everywhere(const jit::Module& module, const TensorPairs& pairs) {
  for (jit::Module part : module.modules()) {
    std::vector<std::pair<std::string, c10::IValue>> fresh;
    for (const auto& [name, value] : part.named_attributes(/*recurse=*/false)) {
      if (auto changed = new_value(value, pairs)) fresh.emplace_back(name, std::move(*changed));
    }
    for (auto& [name, value] : fresh) part.setattr(name, std::move(value));
  }
}

}  // namespace parsimony::torch_io::script
