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

at::Tensor removed(const PlanSlice& slice) {
  at::Tensor stays = at::zeros({slice.size}, at::kBool);
  stays.index_fill_(0, at::tensor(slice.keep, at::kLong), true);
  return stays.logical_not().nonzero().flatten();
}

/// Tensors that show the same elements in the same order.
struct View {
  std::vector<at::Tensor> tensors;
  int64_t begin = 0;  ///< bytes of the memory
  int64_t end = 0;
};

/// Calls `visit` with the names of the tensors that the masked original changes.
template <typename Visit>
void for_each_changed(const Plan& plan, const Visit& visit) {
  if (plan.constants == Constants::kExact) {
    for (const PlanMask& mask : plan.masks) visit(mask.tensor);
    return;
  }
  for (const PlanZeros& zeros : plan.zeros) visit(zeros.tensor);
  for (const PlanGroup& group : plan.groups) {
    for (const PlanSlice& slice : group.slices) visit(slice.tensor);
  }
  for (const TensorUpdate& update : plan.updates) {
    if (!update.values.empty()) visit(update.tensor);
  }
}

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

/// The views of each memory in which the plan changes something.
std::vector<std::vector<View>> views_of_changed(const Plan& plan, const NetworkTensors& tensors) {
  std::unordered_map<const c10::StorageImpl*, size_t> index;
  for_each_changed(plan, [&](const std::string& name) {
    index.emplace(tensors.find(name).storage().unsafeGetStorageImpl(), index.size());
  });
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
  const FindTensor& find = tensors.find;
  std::unordered_set<c10::TensorImpl*> known;
  const auto writable = [&](const std::string& name) {
    const at::Tensor tensor = find(name);
    if (known.insert(tensor.unsafeGetTensorImpl()).second) {
      saved_.push_back({tensor, tensor.detach().clone()});
    }
    return tensor.detach();
  };
  if (plan.constants == Constants::kExact) {
    for (const PlanMask& mask : plan.masks) zero_masked(mask, writable(mask.tensor));
    return;
  }
  std::unordered_map<std::string, at::Tensor> present_of;  // masks of what stays, for new values
  for (const TensorUpdate& update : plan.updates) {
    if (!update.values.empty())
      present_of[update.tensor] = at::ones_like(find(update.tensor), at::kBool);
  }
  for (const PlanZeros& zeros : plan.zeros) {
    const at::Tensor tensor = writable(zeros.tensor);
    tensor.copy_(with_zeros(zeros.tensor, tensor, zeros.smallest));
  }
  for (const PlanGroup& group : plan.groups) {
    for (const PlanSlice& slice : group.slices) {
      if (slice.role == Role::kWith) continue;  // a divisor must not become zero
      const at::Tensor tensor = find(slice.tensor).detach();
      const at::Tensor gone = removed(slice).to(tensor.device());
      saved_.push_back({tensor, tensor.index_select(slice.axis, gone), slice.axis, gone});
      tensor.index_fill_(slice.axis, gone, 0);
      const auto present = present_of.find(slice.tensor);
      if (present != present_of.end()) present->second.index_fill_(slice.axis, gone, false);
    }
  }
  for (const TensorUpdate& update : plan.updates) {
    if (update.values.empty()) continue;
    fill_present(update.tensor, writable(update.tensor), present_of.at(update.tensor),
                 update.values);
  }
}

Zeroed::~Zeroed() {
  const at::NoGradGuard no_grad;
  for (; !saved_.empty(); saved_.pop_back()) {
    const auto& saved = saved_.back();
    const at::Tensor tensor = saved.tensor.detach();
    if (saved.indices.defined()) {
      tensor.index_copy_(saved.axis, saved.indices, saved.values);
    } else {
      tensor.copy_(saved.values);
    }
  }
}

}  // namespace parsimony::torch_io
