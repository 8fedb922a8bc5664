#include "parsimony/training/recovery/ends.h"

#include <ATen/ATen.h>

namespace parsimony::training {
namespace {

std::vector<at::Tensor> cut(const SmallNetwork& small, const std::vector<ValueId>& values,
                            bool inputs, std::vector<at::Tensor> tensors) {
  for (const PlanEnd& end : small.ends()) {
    if (end.input != inputs) continue;
    for (size_t i = 0; i < values.size(); ++i) {
      if (small.graph().value(values[i]).name != end.value) continue;
      tensors[i] = tensors[i].index_select(end.axis, at::tensor(end.keep, at::kLong));
    }
  }
  return tensors;
}

}  // namespace

std::vector<at::Tensor> small_inputs(const SmallNetwork& small, std::vector<at::Tensor> inputs) {
  return cut(small, small.graph().inputs, true, std::move(inputs));
}

std::vector<at::Tensor> small_outputs(const SmallNetwork& small, std::vector<at::Tensor> outputs) {
  return cut(small, small.graph().outputs, false, std::move(outputs));
}

}  // namespace parsimony::training
