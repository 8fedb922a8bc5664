#include "parsimony/training/net/named_tensors.h"

#include "parsimony/torch_io/cut.h"

namespace parsimony::training {

void follow(const Plan& plan, NamedTensors& tensors) {
  for (const PlanCopy& copy : plan.copies) {
    const auto source = tensors.find(copy.of);
    if (source != tensors.end()) tensors[copy.tensor] = source->second.clone();
  }
  for (const TensorCut& cut : cuts_of(plan)) {
    const auto found = tensors.find(std::string(cut.tensor));
    if (found == tensors.end()) continue;  // a constant of the file, not the network's own
    found->second = torch_io::cut(found->first, found->second, cut.axes);
  }
}

}  // namespace parsimony::training
