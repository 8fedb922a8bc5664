#include "parsimony/training/run/rewind.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "parsimony/training/errors.h"

namespace parsimony::training {

Rewind::Rewind(Net& net) {
  for (const auto& [name, tensor] : all_tensors(net)) {
    values_[name] = tensor.detach().cpu().clone();
  }
}

void Rewind::restore(Net& net) const {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : all_tensors(net)) {
    const auto found = values_.find(name);
    if (found == values_.end() || found->second.sizes() != tensor.sizes()) {
      throw errors::other_values(name, "its earlier values have another shape");
    }
    at::Tensor(tensor).copy_(found->second);
  }
}

}  // namespace parsimony::training
