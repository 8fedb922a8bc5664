#include <ATen/core/Tensor.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>

#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "parsimony/base/types.h"
#include "parsimony/torch_io/script/module_tensors_impl.h"

namespace parsimony::torch_io::script {
namespace {

namespace jit = torch::jit;

using Visit = std::function<void(const at::Tensor&)>;

void visit_value(const c10::IValue& value, const Visit& visit) {
  value.visit([&](const c10::IValue& part) {
    if (part.isTensor()) visit(part.toTensor());
    return false;
  });
}

void visit_block(const jit::Block& block, const Visit& visit) {
  for (const jit::Node* node : block.nodes()) {
    if (node->kind() == c10::prim::Constant) {
      if (const auto constant = jit::toIValue(node->output())) visit_value(*constant, visit);
    }
    for (const jit::Block* inner : node->blocks()) visit_block(*inner, visit);
  }
}

}  // namespace

void for_each_tensor(const jit::Module& module, const Visit& visit) {
  visit_value(module._ivalue(), visit);
  for (jit::Function* function : module._ivalue()->compilation_unit()->get_functions()) {
    if (!function->isGraphFunction()) continue;
    visit_block(*jit::toGraphFunction(*function).graph()->block(), visit);
  }
}

std::unordered_set<const c10::StorageImpl*> shared_memory(const Origins& origins) {
  using View = std::tuple<int64_t, std::vector<int64_t>, std::vector<int64_t>>;
  std::unordered_set<const c10::StorageImpl*> shared;
  std::unordered_set<const c10::StorageImpl*> tensor_origins;
  std::unordered_map<const c10::StorageImpl*, View> views;
  for (const auto& [name, origin] : origins.tensor_origins) {
    if (!origin.tensor.defined()) continue;
    const c10::StorageImpl* memory = origin.tensor.storage().unsafeGetStorageImpl();
    if (!tensor_origins.insert(memory).second) shared.insert(memory);
  }
  for_each_tensor(origins.module, [&](const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.has_storage()) return;
    const c10::StorageImpl* memory = tensor.storage().unsafeGetStorageImpl();
    const View view(tensor.storage_offset(), tensor.sizes().vec(), tensor.strides().vec());
    const auto [known, fresh] = views.emplace(memory, view);
    if (!fresh && known->second != view) shared.insert(memory);
  });
  return shared;
}

namespace {

constexpr int64_t kMostExpanded = int64_t{64} << 20;

/// Adds a product. Returns false on overflow.
bool add_product(int64_t a, int64_t b, int64_t& sum) {
  int64_t product = 0;
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(sum, product, &sum);
}

/// Whether it fits into the stored `bytes`.
bool fits(const at::Tensor& tensor, int64_t bytes) {
  const auto width = static_cast<int64_t>(tensor.element_size());
  int64_t last = tensor.storage_offset();
  int64_t all = width;
  bool empty = false;
  if (last < 0) return false;
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    const int64_t size = tensor.sizes()[d];
    const int64_t stride = tensor.strides()[d];
    if (size < 0 || stride < 0) return false;
    empty = empty || size == 0;
    if (size > 0 && !add_product(size - 1, stride, last)) return false;
    if (size > 0 && __builtin_mul_overflow(all, size, &all)) return false;
  }
  if (empty) return true;
  return last < bytes / width && all <= bytes + kMostExpanded;
}

/// Describes the error.
std::optional<std::string> beyond(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.layout() != at::kStrided || !tensor.has_storage()) {
    return std::nullopt;
  }
  const auto bytes = static_cast<int64_t>(tensor.storage().nbytes());
  if (tensor.is_meta() || fits(tensor, bytes)) return std::nullopt;
  return "a tensor of " + to_string(tensor.sizes().vec()) + " with strides " +
         to_string(tensor.strides().vec()) + " from element " +
         std::to_string(tensor.storage_offset()) + " on, of which " + std::to_string(bytes) +
         " bytes are stored";
}

}  // namespace

std::optional<std::string> tensor_out_of_bounds(const jit::Module& module) {
  std::optional<std::string> found;
  for_each_tensor(module, [&](const at::Tensor& tensor) {
    if (!found) found = beyond(tensor);
  });
  return found;
}

bool same_memory(const at::Tensor& a, const at::Tensor& b) {
  if (a.is_same(b)) return true;
  return a.defined() && b.defined() && a.layout() == at::kStrided && b.layout() == at::kStrided &&
         a.numel() > 0 && a.data_ptr() == b.data_ptr() && a.scalar_type() == b.scalar_type() &&
         a.sizes() == b.sizes() && a.strides() == b.strides();
}

namespace {

// Takes c10::IValue: newer libtorch turns an empty optional tensor into the value None.
std::optional<c10::IValue> new_tensor(const at::Tensor& old, const TensorPairs& pairs) {
  for (const auto& [source, fresh] : pairs) {
    if (!same_memory(source, old)) continue;
    if (old.requires_grad()) fresh.set_requires_grad(true);
    return c10::IValue(fresh);
  }
  return std::nullopt;
}

/// Replaces tensors, also in lists and tuples; empty if there is nothing to replace.
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
