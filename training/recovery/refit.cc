#include "parsimony/training/recovery/refit.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "parsimony/graph/attributes.h"
#include "parsimony/graph/operators/schema.h"
#include "parsimony/speedup/fit_layers.h"
#include "parsimony/torch_io/executor/linear_rows.h"
#include "parsimony/torch_io/tensor.h"
#include "parsimony/training/recovery/fit_sums.h"
#include "parsimony/training/recovery/recurrence.h"
#include "parsimony/training/recovery/walk.h"

namespace parsimony::training {
namespace {

// A fit of n numbers per channel takes so many rows times n, but no fewer than the second, and from
// no fewer samples than the third, where there are as many.
constexpr int64_t kRowsPerColumn = 32;
constexpr int64_t kFewestRows = 1 << 15;
constexpr int64_t kFewestSamples = 64;

using Ints = std::vector<int64_t>;
const Weight& weight_at(const Graph& graph, const Node& node, size_t i) {
  return graph.weight(graph.value(node.inputs[i]).weight);
}

/// By spatial axis: every so many of a layer's positions, about one of `every` in all. Of a
/// transposed convolution those of all phases.
Ints steps_of(const Node& node, size_t axes, int64_t every) {
  if (every == 1 || axes == 0) return {};
  const double root = std::pow(static_cast<double>(every), 1 / static_cast<double>(axes));
  Ints steps(axes, static_cast<int64_t>(root));
  if (schema_of(node).linear.kind != LinearKind::kTransposedConvolution) return steps;
  Ints strides = attrs(node, "strides");
  strides.resize(axes, 1);
  for (size_t i = 0; i < axes; ++i) {
    while (std::gcd(steps[i], strides[i]) > 1) ++steps[i];
  }
  return steps;
}

/// A layer's answer [n, c, ..s] at these positions.
at::Tensor at_steps(at::Tensor answer, const Ints& steps) {
  for (size_t i = 0; i < steps.size(); ++i) {
    answer = at::slice(answer, static_cast<int64_t>(i) + 2, 0, {}, steps[i]);
  }
  return answer;
}

class Refit {
 public:
  Refit(const Graph& dense, SmallNetwork& small, std::vector<FitLayer> layers,
        const Batches& batches, const RefitOptions& options)
      : layers_(std::move(layers)),
        dense_(with_all_steps(dense, layers_)),
        small_(small),
        options_(options),
        walks_({Walk(dense_, values([&](const FitLayer& layer) { return dense_reads(layer); })),
                Walk(small.graph(), values(small_reads))},
               small, batches, options.batch, options.most_bytes) {
    walks_.grow_to(1);
  }

  /// @returns how many layers changed
  int operator()() {
    return static_cast<int>(
        std::ranges::count_if(layers_, [&](const FitLayer& layer) { return change(layer); }));
  }

 private:
  /// Of a layer, for each batch.
  struct Data {
    std::vector<at::Tensor> inputs;
    std::vector<std::vector<at::Tensor>> wanted;  ///< of the dense network, as of dense_reads()
    Ints steps;
  };

  template <typename Reads>
  std::vector<ValueId> values(const Reads& reads) const {
    std::vector<ValueId> all;
    for (const FitLayer& layer : layers_) {
      for (const ValueId v : reads(layer)) all.push_back(v);
    }
    return all;
  }

  std::vector<ValueId> dense_reads(const FitLayer& layer) const {
    if (layer.state == kNone) return {layer.answer};
    return RecurrentFit(dense_, small_, layer, options_.weights).reads();
  }

  static std::vector<ValueId> small_reads(const FitLayer& layer) {
    if (layer.state != kNone) return {layer.input};
    return {layer.input, layer.answer};
  }

  bool change(const FitLayer& layer) {
    bool changed = false;
    if (walks_.count() > 0 && (options_.weights || layer.shift != kNone)) {
      const Data data = data_of(layer);
      changed = layer.state == kNone ? change_linear(layer, data) : change_recurrent(layer, data);
    }
    for (const ValueId v : dense_reads(layer)) walks_[0].finish(v);
    for (const ValueId v : small_reads(layer)) walks_[1].finish(v);
    return changed;
  }

  bool change_linear(const FitLayer& layer, const Data& data) {
    bool changed = false;
    const int rounds = options_.weights && layer.rectified ? std::max(1, options_.rounds) : 1;
    FitSums sums(options_.weights, layer.shift != kNone);
    for (int round = 0; round < rounds; ++round) {
      sums.next_round();
      add(layer, data, round > 0, sums);
      const at::Tensor change = sums.solve(options_.ridge, options_.ranks);
      if (!change.defined()) break;
      change_values(layer, change);
      changed = true;
    }
    return changed;
  }

  bool change_recurrent(const FitLayer& layer, const Data& data) {
    // Its errors come back to it: a fit to few samples can be far off on others.
    if (options_.weights && rows_of(data) < kRowsPerColumn * (columns_of(layer) + 1)) {
      if (options_.unfit != nullptr) options_.unfit->push_back({layer.node, "too few samples"});
      return false;
    }
    RecurrentFit fit(dense_, small_, layer, options_.weights);
    for (size_t b = 0; b < data.inputs.size(); ++b) {
      std::vector<at::Tensor> wanted;
      for (const auto& batches : data.wanted) wanted.push_back(batches[b]);
      fit.add(data.inputs[b], wanted);
    }
    return fit.finish(options_.ridge, options_.ranks, reason());
  }

  /// Of all ranks.
  int64_t rows_of(const Data& data) const {
    int64_t rows = 0;
    for (const at::Tensor& x : data.inputs) rows += x.numel() / x.size(-1);
    return options_.ranks == nullptr ? rows : options_.ranks->sum(rows);
  }

  std::string reason() const {
    return options_.weights ? "least squares" : "means of what was removed";
  }

  /// From as many samples as the fit takes, and of these as many rows.
  Data data_of(const FitLayer& layer) {
    const int ranks = options_.ranks == nullptr ? 1 : options_.ranks->size();
    const int64_t enough = std::max(kFewestRows, kRowsPerColumn * (columns_of(layer) + 1)) / ranks;
    const int64_t together = options_.batch * ranks;
    const int64_t fewest = (kFewestSamples + together - 1) / together;
    while (true) {
      Data data;
      data.inputs = walks_[1].compute(layer.input);
      for (const ValueId v : dense_reads(layer)) data.wanted.push_back(walks_[0].compute(v));
      walks_.shrink();
      data.inputs.resize(static_cast<size_t>(walks_.count()));
      for (auto& batches : data.wanted) batches.resize(data.inputs.size());
      const at::Tensor& answer = data.wanted.front().front();
      const int64_t each = std::max<int64_t>(1, answer.numel() / answer.size(layer.answer_axis));
      const size_t axes = layer.answer_axis == 1 ? answer.dim() - 2 : 0;
      data.steps = steps_of(small_.graph().node(layer.node), axes,
                            std::max<int64_t>(1, each * walks_.count() / enough));
      if (!walks_.grow_to(std::max((enough + each - 1) / each, fewest))) return data;
    }
  }

  int64_t columns_of(const FitLayer& layer) const {
    const Shape& dims = small_.graph().weight(layer.weight).dims;
    const int64_t columns = element_count(dims) / dims[static_cast<size_t>(layer.out_axis)];
    return layer.state == kNone ? columns
                                : columns + small_.graph().weight(layer.state).dims.back();
  }

  at::Tensor weight_of(const FitLayer& layer) const {
    return torch_io::to_tensor(small_.graph().weight(layer.weight));
  }

  void add(const FitLayer& layer, const Data& data, bool rectified, FitSums& sums) {
    const Node& node = small_.graph().node(layer.node);
    const std::vector<int64_t> kept = kept_channels(small_, layer);
    const at::Tensor weight = weight_of(layer);
    const std::vector<at::Tensor> found = walks_[1].behind(layer.weight, layer.answer);
    for (size_t b = 0; b < data.inputs.size(); ++b) {
      at::Tensor wanted = data.wanted.front()[b].to(at::kFloat);
      if (!kept.empty()) {
        wanted = wanted.index_select(layer.answer_axis, at::tensor(kept, at::kLong));
      }
      const at::Tensor own = found[b].to(at::kFloat);
      if (!wanted.sizes().equals(own.sizes())) return;
      at::Tensor lack = wanted - own;
      // If Relu zeroes the dense target, any negative value is as good.
      if (rectified) lack = at::where(wanted.gt(0), lack, own.clamp_min(0).neg());
      sums.add(linear_rows(node, data.inputs[b].to(at::kFloat), weight, data.steps),
               answer_rows(at_steps(lack, data.steps), layer.answer_axis, groups_of(node)));
    }
  }

  /// Per output channel: the factor between the layer's output and the target.
  at::Tensor scale_of(const FitLayer& layer, int64_t out) const {
    if (layer.norm == kNone) return at::ones({out}, at::kDouble);
    const Graph& graph = small_.graph();
    const Node& norm = graph.node(layer.norm);
    const double epsilon = attr(norm, "epsilon", 1e-5);
    return in_double(weight_at(graph, norm, 1)) /
           (in_double(weight_at(graph, norm, 4)) + epsilon).sqrt();
  }

  /// `change` [g, out / g, in (+ 1)] is of the answer.
  void change_values(const FitLayer& layer, const at::Tensor& change) {
    const Graph& graph = small_.graph();
    const int64_t groups = change.size(0);
    at::Tensor rows = change.reshape({-1, change.size(2)});
    const at::Tensor scale = scale_of(layer, rows.size(0));
    const at::Tensor dead = scale.abs().lt(1e-12);
    rows = (rows / scale.unsqueeze(1)).masked_fill(dead.unsqueeze(1), 0);
    const bool shift = layer.shift != kNone;
    if (shift) {
      const at::Tensor last = rows.select(1, rows.size(1) - 1) * layer.shift_sign;
      const Weight& old = graph.weight(layer.shift);
      assign(small_, old, in_double(old) + last, reason());
    }
    if (!options_.weights) return;
    const Weight& old = graph.weight(layer.weight);
    int64_t kernel = 1;
    for (size_t d = 2; d < old.dims.size(); ++d) kernel *= old.dims[d];
    const at::Tensor delta = rows.narrow(1, 0, rows.size(1) - (shift ? 1 : 0))
                                 .reshape({groups, change.size(1), -1, kernel});
    assign(small_, old,
           in_double(old) + (layer.out_axis == 0 ? delta : delta.transpose(1, 2)).reshape(old.dims),
           reason());
  }

  std::vector<FitLayer> layers_;
  const Graph dense_;
  SmallNetwork& small_;
  const RefitOptions& options_;
  Walks walks_;
};

/// Mean and biased variance per channel of [n c ..s], in double.
class ChannelMoments {
 public:
  void add(const at::Tensor& x) {
    const at::Tensor rows = x.movedim(1, -1).reshape({-1, x.size(1)}).to(at::kDouble);
    const at::Tensor sums = at::stack({rows.sum(0), rows.square().sum(0)});
    sums_ = sums_.defined() ? sums_.add_(sums) : sums;
    count_ += rows.size(0);
  }
  void sum_over(const RankGroup& ranks) {
    ranks.sum(sums_);
    count_ = ranks.sum(count_);
  }
  bool empty() const { return count_ == 0; }
  at::Tensor mean() const { return sums_[0] / static_cast<double>(count_); }
  at::Tensor variance() const {
    return (sums_[1] / static_cast<double>(count_) - mean().square()).clamp_min(0);
  }

 private:
  at::Tensor sums_;
  int64_t count_ = 0;
};

}  // namespace

int refit(const Graph& dense, SmallNetwork& small, const std::vector<std::string>& fixed,
          const Batches& batches, const RefitOptions& options) {
  const at::NoGradGuard no_grad;
  std::vector<FitLayer> layers = fit_layers(small.graph(), fixed);
  if (layers.empty()) return 0;
  return Refit(dense, small, std::move(layers), batches, options)();
}

int estimate_batch_norms(SmallNetwork& small, const Batches& batches, int64_t batch,
                         const RankGroup* ranks) {
  const at::NoGradGuard no_grad;
  const Graph& graph = small.graph();
  const std::vector<NodeId> norms = batch_norms(graph);
  std::vector<ValueId> inputs;
  for (const NodeId n : norms) inputs.push_back(graph.node(n).inputs[0]);
  Walks walks({Walk(graph, inputs)}, small, batches, batch);
  int changed = 0;
  for (const NodeId n : norms) {
    const Node& node = graph.node(n);
    walks.grow_to(std::numeric_limits<int32_t>::max());
    ChannelMoments moments;
    for (const at::Tensor& x : walks[0].compute(node.inputs[0])) moments.add(x);
    walks.shrink();
    walks[0].finish(node.inputs[0]);
    if (moments.empty()) continue;
    if (ranks != nullptr) moments.sum_over(*ranks);
    const char* reason = "statistics of the calibration data";
    assign(small, weight_at(graph, node, 3), moments.mean(), reason);
    assign(small, weight_at(graph, node, 4), moments.variance(), reason);
    ++changed;
  }
  return changed;
}

}  // namespace parsimony::training
