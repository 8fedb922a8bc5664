#include "parsimony/training/run/rewind.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "parsimony/torch_io/cut.h"
#include "parsimony/training/loop/errors.h"

namespace parsimony::training {

Rewind::Rewind(Net& net) {
  for (const auto& list : {net.parameters(), net.buffers()}) {
    for (const auto& [name, tensor] : list) values_[name] = tensor.detach().cpu().clone();
  }
}

void Rewind::follow(const Plan& plan) {
  for (const PlanCopy& copy : plan.copies) {
    const auto source = values_.find(copy.of);
    if (source != values_.end()) values_[copy.tensor] = source->second.clone();
  }
  for (const TensorCut& cut : cuts_of(plan)) {
    const auto found = values_.find(std::string(cut.tensor));
    if (found == values_.end()) continue;  // a constant of the file, not the network's own
    found->second = torch_io::cut(found->first, found->second, cut.axes);
  }
}

void Rewind::restore(Net& net) const {
  const at::NoGradGuard no_grad;
  for (const auto& list : {net.parameters(), net.buffers()}) {
    for (const auto& [name, tensor] : list) {
      const auto found = values_.find(name);
      if (found == values_.end() || found->second.sizes() != tensor.sizes()) {
        throw errors::other_values(name, "its earlier values have another shape");
      }
      at::Tensor(tensor).copy_(found->second);
    }
  }
}

}  // namespace parsimony::training
