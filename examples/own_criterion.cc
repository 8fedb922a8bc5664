// A custom criterion is one function: here, filters whose weights hardly differ are removed first.
#include <parsimony/graph/graph.h>
#include <parsimony/torch_io/prune.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "models/cifar_cnn.h"

namespace {

using parsimony::CriterionOptions;
using parsimony::Graph;
using parsimony::Group;
using parsimony::Scores;

/// Returns the standard deviation of the weights that produce each channel, over all its kernels.
Scores spread(const Graph& graph, const Group& group, const CriterionOptions& /*options*/) {
  Scores scores(group.size);
  for (const parsimony::Member& member : group.members) {
    const parsimony::Weight& weight = graph.weight_of(member.value);
    if (member.role != parsimony::Role::kOut || weight.dims.size() < 2 || member.axis != 0)
      continue;
    const parsimony::HostTensor values = to_host(weight);
    const int64_t row = weight.count() / member.size;
    for (int c = 0; c < group.size; ++c) {
      double sum = 0;
      double squares = 0;
      for (const int64_t index : member.of(c)) {
        for (int64_t i = index * row; i < (index + 1) * row; ++i) {
          sum += values.number(i);
          squares += values.number(i) * values.number(i);
        }
      }
      const auto n = static_cast<double>(row) * static_cast<double>(member.of(c).size());
      scores[c] += std::sqrt(squares / n - sum / n * (sum / n));
    }
  }
  return scores;
}

}  // namespace

int main() {
  torch::manual_seed(1);
  examples::CifarCnn model;
  {
    const torch::NoGradGuard no_grad;
    model->conv1->weight[5].fill_(0.2);  // large, but constant
  }
  const auto config =
      parsimony::parse_config(R"([{"op_types": ["Conv2d"], "sparse_ratio": 0.25}])", "own");
  const auto pruned =
      parsimony::prune(model, torch::rand({1, 3, 32, 32}), config, {.score = spread});

  const auto& kept = pruned.plan.groups.front().slices.front().keep;
  const bool removed = std::find(kept.begin(), kept.end(), 5) == kept.end();
  std::printf("%zu of 32 filters remain; the constant one is %s\n", kept.size(),
              removed ? "removed" : "kept");
  return removed && kept.size() == 24 && pruned.proof.holds() ? 0 : 1;
}
