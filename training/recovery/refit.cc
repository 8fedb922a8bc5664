#include "parsimony/training/recovery/refit.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <optional>

#include "parsimony/graph/attributes.h"
#include "parsimony/speedup/fit_layers.h"
#include "parsimony/speedup/least_squares.h"
#include "parsimony/torch_io/executor/graph_module.h"
#include "parsimony/torch_io/executor/linear_rows.h"
#include "parsimony/torch_io/tensor.h"

namespace parsimony::training {
namespace {

// Rows that become doubles at once: what is held beside a batch.
constexpr int64_t kChunk = 1 << 14;

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::MatrixXd to_eigen(const at::Tensor& matrix) {
  const at::Tensor dense = matrix.to(at::kDouble).contiguous();
  return Eigen::Map<const RowMajor>(dense.data_ptr<double>(), dense.size(0), dense.size(1));
}

at::Tensor to_tensor(const Eigen::MatrixXd& matrix) {
  at::Tensor tensor = at::empty({matrix.rows(), matrix.cols()}, at::kDouble);
  Eigen::Map<RowMajor>(tensor.data_ptr<double>(), matrix.rows(), matrix.cols()) = matrix;
  return tensor;
}

const Weight& weight_at(const Graph& graph, const Node& node, size_t i) {
  return graph.weight(graph.value(node.inputs[i]).weight);
}

void assign(SmallNetwork& small, const Weight& weight, const at::Tensor& values,
            const std::string& reason) {
  const at::Tensor own = values.to(torch_io::scalar_type_of(weight.dtype)).contiguous();
  const auto* bytes = static_cast<const std::byte*>(own.data_ptr());
  small.assign(weight, {bytes, bytes + own.nbytes()}, reason);
}

at::Tensor wide(const Weight& weight) { return torch_io::to_tensor(weight).to(at::kDouble); }

/// Runs the nodes that some values need.
GraphModule part_of(const Graph& graph, const std::vector<ValueId>& wanted) {
  return GraphModule(part_for(graph, wanted), GraphModuleOptions{.trainable = false});
}

/// Sums over a layer's inputs and its residuals.
class Sums {
 public:
  Sums(bool weights, bool shift) : weights_(weights), shift_(shift) {}

  /// x [g, rows, in], lack [g, rows, out].
  void add(const at::Tensor& x, const at::Tensor& lack) {
    for (int64_t begin = 0; begin < x.size(1); begin += kChunk) {
      const int64_t count = std::min(kChunk, x.size(1) - begin);
      const at::Tensor read = extended(x.narrow(1, begin, count).to(at::kDouble));
      const at::Tensor y = lack.narrow(1, begin, count).to(at::kDouble);
      const at::Tensor second = at::matmul(read.transpose(1, 2), read);
      const at::Tensor cross = at::matmul(y.transpose(1, 2), read);
      second_ = second_.defined() ? second_.add_(second) : second;
      cross_ = cross_.defined() ? cross_.add_(cross) : cross;
    }
  }

  bool empty() const { return !second_.defined(); }

  /// [g, out, in (+ 1)]; undefined if nothing is lacking.
  at::Tensor solve(double ridge) const {
    if (empty() || cross_.eq(0).all().item<bool>()) return {};
    std::vector<at::Tensor> solutions;
    for (int64_t g = 0; g < second_.size(0); ++g) {
      const LeastSquaresSums sums{to_eigen(second_[g]), to_eigen(cross_[g])};
      solutions.push_back(to_tensor(least_squares(sums, weights_ ? ridge : 0)));
    }
    return at::stack(solutions);
  }

 private:
  at::Tensor extended(const at::Tensor& x) const {
    at::Tensor one = at::ones({x.size(0), x.size(1), 1}, x.options());
    if (!weights_) return one;
    return shift_ ? at::cat({x, one}, 2) : x;
  }

  bool weights_;
  bool shift_;
  at::Tensor second_;
  at::Tensor cross_;
};

class Refit {
 public:
  Refit(const Graph& dense, SmallNetwork& small, const Batches& batches,
        const RefitOptions& options)
      : dense_(dense), small_(small), batches_(batches), options_(options) {}

  bool operator()(const FitLayer& layer) {
    const bool shift = layer.shift != kNone;
    if (!options_.weights && !shift) return false;
    bool changed = false;
    const int rounds = options_.weights && layer.rectified ? std::max(1, options_.rounds) : 1;
    for (int round = 0; round < rounds; ++round) {
      const at::Tensor change = sums_of(layer, round > 0).solve(options_.ridge);
      if (!change.defined()) break;
      change_values(layer, change);
      changed = true;
    }
    return changed;
  }

 private:
  Sums sums_of(const FitLayer& layer, bool rectified) const {
    const Graph& graph = small_.graph();
    const Node& node = graph.node(layer.node);
    const at::Tensor weight = torch_io::to_tensor(graph.weight(layer.weight));
    const std::vector<int64_t> kept = small_.kept(graph.weight(layer.weight).name, layer.out_axis);
    GraphModule wanted = part_of(dense_, {layer.answer});
    GraphModule found = part_of(graph, {layer.input, layer.answer});
    Sums sums(options_.weights, layer.shift != kNone);
    const Feed feed = batches_(options_.batch);
    while (const std::optional<SampleBatch> batch = feed()) {
      at::Tensor dense = wanted->forward(batch->inputs)[0];
      if (!kept.empty()) dense = dense.index_select(layer.answer_axis, at::tensor(kept, at::kLong));
      const std::vector<at::Tensor> own = found->forward(batch->inputs);
      if (!dense.sizes().equals(own[1].sizes())) return Sums(true, true);
      at::Tensor lack = dense - own[1];
      // If Relu zeroes the dense target, any negative value is as good.
      if (rectified) lack = at::where(dense.gt(0), lack, own[1].clamp_min(0).neg());
      sums.add(linear_rows(node, own[0].to(at::kFloat), weight),
               answer_rows(lack.to(at::kFloat), layer.answer_axis, groups_of(node)));
    }
    return sums;
  }

  /// Per output channel: the factor between the layer's output and the target.
  at::Tensor scale_of(const FitLayer& layer, int64_t out) const {
    if (layer.norm == kNone) return at::ones({out}, at::kDouble);
    const Graph& graph = small_.graph();
    const Node& norm = graph.node(layer.norm);
    const double epsilon = attr(norm, "epsilon", 1e-5);
    return wide(weight_at(graph, norm, 1)) / (wide(weight_at(graph, norm, 4)) + epsilon).sqrt();
  }

  /// `change` [g, out / g, in (+ 1)] is of the answer.
  void change_values(const FitLayer& layer, const at::Tensor& change) {
    const Graph& graph = small_.graph();
    at::Tensor rows = change.reshape({-1, change.size(2)});
    const at::Tensor scale = scale_of(layer, rows.size(0));
    const at::Tensor dead = scale.abs().lt(1e-12);
    rows = (rows / scale.unsqueeze(1)).masked_fill(dead.unsqueeze(1), 0);
    const std::string reason(options_.weights ? "least squares" : "means of what was removed");
    const bool shift = layer.shift != kNone;
    if (shift) {
      const at::Tensor last = rows.select(1, rows.size(1) - 1) * layer.shift_sign;
      const Weight& old = graph.weight(layer.shift);
      assign(small_, old, wide(old) + last, reason);
    }
    if (!options_.weights) return;
    const Weight& old = graph.weight(layer.weight);
    at::Tensor delta = rows.narrow(1, 0, rows.size(1) - (shift ? 1 : 0));
    delta = layer.out_axis == 0 ? delta.reshape(old.dims) : delta.t();
    assign(small_, old, wide(old) + delta, reason);
  }

  const Graph& dense_;
  SmallNetwork& small_;
  const Batches& batches_;
  const RefitOptions& options_;
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
  Refit one(dense, small, batches, options);
  int changed = 0;
  for (const FitLayer& layer : fit_layers(small.graph(), fixed)) changed += one(layer) ? 1 : 0;
  return changed;
}

int estimate_batch_norms(SmallNetwork& small, const Batches& batches, int64_t batch) {
  const at::NoGradGuard no_grad;
  int changed = 0;
  for (const NodeId n : batch_norms(small.graph())) {
    const Node& node = small.graph().node(n);
    GraphModule part = part_of(small.graph(), {node.inputs[0]});
    ChannelMoments moments;
    const Feed feed = batches(batch);
    while (const std::optional<SampleBatch> some = feed()) {
      moments.add(part->forward(some->inputs)[0]);
    }
    if (moments.empty()) continue;
    const char* reason = "statistics of the calibration data";
    assign(small, weight_at(small.graph(), node, 3), moments.mean(), reason);
    assign(small, weight_at(small.graph(), node, 4), moments.variance(), reason);
    ++changed;
  }
  return changed;
}

}  // namespace parsimony::training
