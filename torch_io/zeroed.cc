#include "parsimony/torch_io/zeroed.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <unordered_map>
#include <unordered_set>

#include "parsimony/base/errors.h"
#include "parsimony/torch_io/cut.h"
#include "parsimony/torch_io/tensor.h"

namespace parsimony::torch_io {
namespace {

at::Tensor removed(const PlanSlice& slice) {
  at::Tensor stays = at::zeros({slice.size}, at::kBool);
  stays.index_fill_(0, at::tensor(slice.keep, at::kLong), true);
  return stays.logical_not().nonzero().flatten();
}

}  // namespace

FindTensor tensors_of(const torch::nn::Module& module) {
  return [parameters = module.named_parameters(),
          buffers = module.named_buffers()](const std::string& name) -> at::Tensor {
    const at::Tensor* tensor = parameters.find(name);
    if (tensor == nullptr) tensor = buffers.find(name);
    if (tensor == nullptr) throw ModelError("the module has no tensor \"" + name + "\"");
    return *tensor;
  };
}

Zeroed::Zeroed(const Plan& plan, const FindTensor& find_any) {
  const at::NoGradGuard no_grad;
  const FindTensor find = [&](const std::string& name) {
    at::Tensor tensor = find_any(name);
    if (shows_elements_twice(tensor)) {
      throw UnsupportedError("tensor \"" + name +
                             "\" shows one element in several places, as expand makes it, and " +
                             "cannot be written to: make it contiguous");
    }
    return tensor;
  };
  for (const PlanZeros& zeros : plan.zeros) find(zeros.tensor);  // before anything is changed
  for (const PlanGroup& group : plan.groups) {
    for (const PlanSlice& slice : group.slices) find(slice.tensor);
  }
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
      if (slice.role == "with") continue;  // a divisor must not become zero
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
