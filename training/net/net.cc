#include "parsimony/training/net/net.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

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
      throw errors::other_values(to[i].first, "the two networks have it in different shapes");
    }
    at::Tensor(to[i].second).copy_(from[i].second);
  }
}

}  // namespace

void copy_values(Net& from, Net& to) {
  const at::NoGradGuard no_grad;
  copy(from.parameters(), to.parameters());
  copy(from.buffers(), to.buffers());
}

}  // namespace parsimony::training
