#include "parsimony/training/loop/movement.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <utility>
#include <vector>

namespace parsimony::training {
namespace {

/// Sums along one axis of a tensor. [size of the axis]
at::Tensor line_of(const at::Tensor& values, int axis) {
  return values.to(at::kDouble).transpose(0, axis).flatten(1).sum(1).contiguous();
}

}  // namespace

Movement::Movement(TrainableModel& net) {
  for (const auto& [name, parameter] : net.parameters()) {
    sums_[name] = at::zeros_like(parameter.detach());
  }
}

void Movement::see(TrainableModel& net) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, parameter] : net.parameters()) {
    const at::Tensor& gradient = parameter.grad();
    if (!gradient.defined()) continue;
    at::Tensor& sum = sums_.at(name);
    if (sum.device() != parameter.device()) sum = sum.to(parameter.device());
    sum.addcmul_(gradient, parameter.detach(), -1);
  }
}

Statistics Movement::statistics(const Graph& graph, const Coupling& coupling) const {
  Statistics statistics;
  auto& channels = statistics.channels[Measure::kMovement];
  for (const Group& group : coupling.groups) {
    statistics.groups.push_back(group.id);
    std::vector<double> scores;
    for (const Member& member : group.members) {
      const WeightId weight = graph.value(member.value).weight;
      if (weight == kNone || member.role != Role::kOut) continue;
      const auto found = sums_.find(graph.weight(weight).name);
      if (found == sums_.end() || found->second.dim() < 2) continue;
      const at::Tensor line = line_of(found->second.cpu(), member.axis);
      scores.resize(group.size);
      for (int c = 0; c < group.size; ++c) {
        for (const int64_t index : member.of(c)) {
          scores[c] += line.data_ptr<double>()[index];
        }
      }
    }
    channels.push_back(std::move(scores));
  }
  return statistics;
}

}  // namespace parsimony::training
