#include <ATen/core/Tensor.h>

#include <tuple>
#include <unordered_map>
#include <vector>

#include "parsimony/torch_io/script/every_tensor_impl.h"
#include "parsimony/torch_io/script/shared_memory_impl.h"

namespace parsimony::torch_io::script {

std::unordered_set<const c10::StorageImpl*> shared_memory(const Origins& origins) {
  using View = std::tuple<int64_t, std::vector<int64_t>, std::vector<int64_t>>;
  std::unordered_set<const c10::StorageImpl*> shared;
  std::unordered_set<const c10::StorageImpl*> homes;
  std::unordered_map<const c10::StorageImpl*, View> views;
  for (const auto& [name, home] : origins.homes) {
    if (!home.tensor.defined()) continue;
    const c10::StorageImpl* memory = home.tensor.storage().unsafeGetStorageImpl();
    if (!homes.insert(memory).second) shared.insert(memory);
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

}  // namespace parsimony::torch_io::script
