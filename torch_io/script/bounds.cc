#include <ATen/core/Tensor.h>

#include "parsimony/base/types.h"
#include "parsimony/torch_io/script/bounds_impl.h"
#include "parsimony/torch_io/script/every_tensor_impl.h"

namespace parsimony::torch_io::script {
namespace {

constexpr int64_t kMostExpanded = int64_t{64} << 20;

/// False where a number does not fit.
bool add_product(int64_t a, int64_t b, int64_t& sum) {
  int64_t product = 0;
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(sum, product, &sum);
}

/// `bytes` is what is stored.
bool fits(const at::Tensor& tensor, int64_t bytes) {
  const auto width = static_cast<int64_t>(tensor.element_size());
  int64_t last = tensor.storage_offset();
  int64_t all = width;
  bool empty = false;
  if (last < 0) return false;
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    const int64_t size = tensor.sizes()[static_cast<size_t>(d)];
    const int64_t stride = tensor.strides()[static_cast<size_t>(d)];
    if (size < 0 || stride < 0) return false;
    empty = empty || size == 0;
    if (size > 0 && !add_product(size - 1, stride, last)) return false;
    if (size > 0 && __builtin_mul_overflow(all, size, &all)) return false;
  }
  if (empty) return true;
  return last < bytes / width && all <= bytes + kMostExpanded;
}

/// What is wrong with it, in words.
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

std::optional<std::string> tensor_out_of_bounds(const torch::jit::Module& module) {
  std::optional<std::string> found;
  for_each_tensor(module, [&](const at::Tensor& tensor) {
    if (!found) found = beyond(tensor);
  });
  return found;
}

}  // namespace parsimony::torch_io::script
