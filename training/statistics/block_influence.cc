#include "parsimony/training/statistics/block_influence.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <limits>
#include <map>

#include "parsimony/base/errors.h"
#include "parsimony/torch_io/executor/graph_module.h"

namespace parsimony::training {
namespace {

/// Sum of the cosines of vectors along `axis`, and how many there are.
std::pair<double, int64_t> cosines(const at::Tensor& x, const at::Tensor& y, int64_t axis) {
  const at::Tensor a = x.to(at::kDouble);
  const at::Tensor b = y.to(at::kDouble);
  const at::Tensor lengths = a.square().sum(axis).sqrt() * b.square().sum(axis).sqrt();
  const at::Tensor products = (a * b).sum(axis);
  const at::Tensor alike = a.eq(0).all(axis).logical_and(b.eq(0).all(axis)).to(at::kDouble);
  const at::Tensor cosine = at::where(lengths.gt(0), products / lengths, alike);
  return {cosine.sum().item<double>(), cosine.numel()};
}

/// Keeps the inputs of blocks until their outputs come by.
class Influences {
 public:
  explicit Influences(const std::vector<ResidualBlock>& blocks) : blocks_(blocks) {
    sums_.resize(blocks.size());
    counts_.resize(blocks.size());
    for (size_t b = 0; b < blocks.size(); ++b) {
      readers_[blocks[b].input].push_back(b);
      ends_[blocks[b].output] = b;
    }
  }

  void see(ValueId value, const at::Tensor& tensor) {
    if (const auto end = ends_.find(value); end != ends_.end()) add(end->second, tensor);
    const auto begin = readers_.find(value);
    if (begin == readers_.end()) return;
    for (const size_t b : begin->second) held_[b] = tensor;
  }

  std::vector<double> result() const {
    std::vector<double> influences;
    for (size_t b = 0; b < blocks_.size(); ++b) {
      influences.push_back(counts_[b] > 0 ? 1 - sums_[b] / static_cast<double>(counts_[b])
                                          : std::numeric_limits<double>::infinity());
    }
    return influences;
  }

 private:
  void add(size_t b, const at::Tensor& output) {
    const auto held = held_.find(b);
    if (held == held_.end() || !held->second.is_floating_point()) return;
    at::Tensor x = held->second;
    at::Tensor y = output;
    held_.erase(held);
    if (blocks_[b].rectified) {
      x = x.clamp_min(0);
      y = y.clamp_min(0);
    }
    const auto [sum, count] = cosines(x, y, blocks_[b].channel_axis);
    sums_[b] += sum;
    counts_[b] += count;
  }

  const std::vector<ResidualBlock>& blocks_;
  std::map<ValueId, std::vector<size_t>> readers_;
  std::map<ValueId, size_t> ends_;
  std::map<size_t, at::Tensor> held_;
  std::vector<double> sums_;
  std::vector<int64_t> counts_;
};

}  // namespace

std::vector<double> block_influences(const Graph& graph, const std::vector<ResidualBlock>& blocks,
                                     const Batches& batches) {
  const at::NoGradGuard no_grad;
  GraphModule net(graph, GraphModuleOptions{.trainable = false});
  net->to(device_of(batches));
  Influences influences(blocks);
  net->observe([&](const Node&, ValueId value, const at::Tensor& x) {
    if (x.defined()) influences.see(value, x);
  });
  for_each_batch(graph, batches, calibration_batch(graph), [&](const SampleBatch& batch) {
    check_dims(graph, batch.inputs);
    for (size_t i = 0; i < batch.inputs.size(); ++i) {
      influences.see(graph.inputs[i], batch.inputs[i]);
    }
    net->forward(batch.inputs);
  });
  return influences.result();
}

}  // namespace parsimony::training
