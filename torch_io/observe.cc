#include "parsimony/torch_io/observe.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "parsimony/base/errors.h"
#include "parsimony/engines/random_inputs.h"
#include "parsimony/torch_io/executor/graph_module.h"
#include "parsimony/torch_io/network.h"
#include "parsimony/torch_io/reason.h"

namespace parsimony::torch_io {
namespace {

constexpr int kInputs = 2;
constexpr double kRounding = 1e-6;

/// Minimum and maximum at every index of one dimension.
struct Range {
  at::Tensor least;
  at::Tensor largest;

  void add(const at::Tensor& tensor, int dim) {
    const at::Tensor rows = tensor.detach().to(at::kDouble).movedim(dim, 0).flatten(1);
    const at::Tensor low = rows.amin(1);
    const at::Tensor high = rows.amax(1);
    least = least.defined() ? at::minimum(least, low) : low;
    largest = largest.defined() ? at::maximum(largest, high) : high;
  }

  std::vector<IndexContent> contents() const {
    std::vector<IndexContent> result;
    if (!least.defined()) return result;
    for (int64_t i = 0; i < least.numel(); ++i) {
      const double low = least[i].item<double>();
      const double high = largest[i].item<double>();
      const bool uniform = high - low <= kRounding * std::max(std::abs(low), std::abs(high));
      result.push_back({low == high ? low : (low + high) / 2, uniform});
    }
    return result;
  }
};

Plan zeros_of(const std::vector<ElementMask>& masks) {
  Plan plan;
  plan.constants = Constants::kExact;
  for (const ElementMask& mask : masks) plan.masks.push_back({mask.tensor, mask.dims, mask.keep});
  return plan;
}

/// Runs it; random integers that are not flags may be too large for an index.
void run(GraphModule& module, const Graph& graph, const Probe& probe,
         const std::function<void()>& begin) {
  const at::NoGradGuard no_grad;
  const uint64_t step = std::max<uint64_t>(1, graph.inputs.size());  // a seed for each input
  for (const int64_t below : runtime::kIntegerRanges) {
    try {
      begin();
      for (uint64_t seed = 1; seed <= kInputs; ++seed) {
        module->forward(
            to_tensors(runtime::random_inputs(graph, probe, seed * step, {.below = below})));
      }
      return;
    } catch (const std::exception& error) {
      if (below != runtime::kIntegerRanges.back()) continue;
      throw UnsupportedError("the masked original does not run on random inputs: " +
                             reason_of(error));
    }
  }
}

}  // namespace

std::vector<std::vector<IndexContent>> observe(const Graph& graph, const Probe& probe,
                                               const std::vector<ElementMask>& masks,
                                               const std::vector<Dimension>& dimensions) {
  GraphModule module(graph);
  module->mask(zeros_of(masks));
  std::unordered_map<ValueId, std::vector<size_t>> requested;
  for (size_t i = 0; i < dimensions.size(); ++i) requested[dimensions[i].value].push_back(i);
  std::vector<Range> ranges;
  module->observe([&](const Node&, ValueId value, const at::Tensor& tensor) {
    const auto it = requested.find(value);
    if (it == requested.end()) return;
    for (const size_t i : it->second) ranges[i].add(tensor, dimensions[i].dim);
  });
  run(module, graph, probe, [&] { ranges.assign(dimensions.size(), {}); });
  std::vector<std::vector<IndexContent>> result;
  for (const Range& range : ranges) result.push_back(range.contents());
  return result;
}

}  // namespace parsimony::torch_io
