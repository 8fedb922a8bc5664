#include "parsimony/torch_io/zeroed.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "parsimony/base/errors.h"
#include "parsimony/torch_io/cut.h"
#include "parsimony/torch_io/script/module_tensors_impl.h"

namespace parsimony::torch_io {
namespace {

/// Tensors that show the same elements in the same order.
struct View {
  std::vector<at::Tensor> tensors;
  int64_t begin = 0;  ///< offset in the memory in bytes
  int64_t end = 0;
};

void add_view(std::vector<View>& views, const at::Tensor& tensor) {
  for (View& view : views) {
    if (script::same_memory(view.tensors.front(), tensor)) {
      view.tensors.push_back(tensor);
      return;
    }
  }
  const auto width = static_cast<int64_t>(tensor.element_size());
  int64_t last = tensor.storage_offset();
  for (int64_t d = 0; d < tensor.dim(); ++d) last += (tensor.size(d) - 1) * tensor.stride(d);
  views.push_back({{tensor}, tensor.storage_offset() * width, (last + 1) * width});
}

/// Returns the views of each memory that the plan changes.
std::vector<std::vector<View>> views_of_changed(const Plan& plan, const NetworkTensors& tensors) {
  std::unordered_map<const c10::StorageImpl*, size_t> index;
  for (const TensorMask& mask : tensor_masks(plan)) {
    if (!mask.changes_values()) continue;
    const at::Tensor tensor = tensors.find(std::string(mask.tensor));
    index.emplace(tensor.storage().unsafeGetStorageImpl(), index.size());
  }
  std::vector<std::vector<View>> views(index.size());
  std::unordered_set<const c10::TensorImpl*> known;
  for (const at::Tensor& tensor : tensors.all) {
    if (!tensor.defined() || tensor.layout() != at::kStrided || tensor.numel() == 0) continue;
    const auto memory = index.find(tensor.storage().unsafeGetStorageImpl());
    if (memory == index.end() || !known.insert(tensor.unsafeGetTensorImpl()).second) continue;
    add_view(views[memory->second], tensor);
  }
  return views;
}

}  // namespace

NetworkTensors tensors_of(const torch::nn::Module& module) {
  NetworkTensors tensors;
  tensors.find = [parameters = module.named_parameters(),
                  buffers = module.named_buffers()](const std::string& name) -> at::Tensor {
    const at::Tensor* tensor = parameters.find(name);
    if (tensor == nullptr) tensor = buffers.find(name);
    if (tensor == nullptr) throw ModelError("the module has no tensor \"" + name + "\"");
    return *tensor;
  };
  tensors.all = module.parameters();
  for (const at::Tensor& buffer : module.buffers()) tensors.all.push_back(buffer);
  return tensors;
}

Separated::Separated(const Plan& plan, const NetworkTensors& tensors) {
  for (const std::vector<View>& views : views_of_changed(plan, tensors)) {
    for (const View& view : views) {
      const auto meets = [&](const View& other) {
        return &other != &view && other.begin < view.end && view.begin < other.end;
      };
      const at::Tensor& first = view.tensors.front();
      if (first.is_non_overlapping_and_dense() && std::ranges::none_of(views, meets)) continue;
      const at::Tensor own = first.detach().clone();
      for (at::Tensor tensor : view.tensors) {
        shown_.emplace_back(tensor, tensor.detach());
        tensor.set_data(own);
      }
    }
  }
}

Separated::~Separated() {
  for (auto& [tensor, shown] : shown_) tensor.set_data(shown);
}

Zeroed::Zeroed(const Plan& plan, const NetworkTensors& tensors) : separated_(plan, tensors) {
  const at::NoGradGuard no_grad;
  for (const TensorMask& mask : tensor_masks(plan)) {
    if (!mask.changes_values()) continue;
    const at::Tensor tensor = tensors.find(std::string(mask.tensor)).detach();
    saved_.emplace_back(tensor, tensor.clone());
    mask_values(mask, tensor.is_complex() ? at::view_as_real(tensor) : tensor);
  }
}

Zeroed::~Zeroed() {
  const at::NoGradGuard no_grad;
  for (; !saved_.empty(); saved_.pop_back()) saved_.back().first.copy_(saved_.back().second);
}

}  // namespace parsimony::torch_io
