#include "parsimony/training/net/trainable_model.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <iterator>

#include "parsimony/torch_io/cut.h"
#include "parsimony/torch_io/tensor.h"
#include "parsimony/training/errors.h"

namespace parsimony::training {
namespace {

void copy(const std::vector<NamedParameter>& from, const std::vector<NamedParameter>& to) {
  if (from.size() != to.size()) {
    throw errors::does_not_fit("one has " + std::to_string(from.size()) + " tensors, the other " +
                               std::to_string(to.size()));
  }
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i].second.sizes() != to[i].second.sizes()) {
      throw errors::other_values(to[i].first, "its shapes in the two networks differ");
    }
    at::Tensor(to[i].second).copy_(from[i].second);
  }
}

}  // namespace

InputSpec spec_of(const at::Tensor& example) {
  return {example.sizes().vec(), {}, torch_io::dtype_of(example.scalar_type())};
}

std::vector<NamedParameter> all_tensors(TrainedModule& module) {
  std::vector<NamedParameter> tensors = module.parameters();
  std::ranges::move(module.buffers(), std::back_inserter(tensors));
  return tensors;
}

void copy_values(TrainedModule& from, TrainedModule& to) {
  const at::NoGradGuard no_grad;
  copy(from.parameters(), to.parameters());
  copy(from.buffers(), to.buffers());
}

void follow(const Plan& plan, NamedTensors& tensors) {
  for (const PlanCopy& copy : plan.copies) {
    const auto source = tensors.find(copy.of);
    if (source != tensors.end()) tensors[copy.tensor] = source->second.clone();
  }
  for (const TensorCut& cut : cuts_of(plan)) {
    const auto found = tensors.find(std::string(cut.tensor));
    if (found == tensors.end()) continue;  // a constant of the file only
    found->second = torch_io::cut(found->first, found->second, cut.axes);
  }
}

}  // namespace parsimony::training
