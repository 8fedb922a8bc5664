#include "parsimony/training/recovery/refit.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "parsimony/graph/attributes.h"
#include "parsimony/speedup/fit_layers.h"
#include "parsimony/speedup/least_squares.h"
#include "parsimony/torch_io/executor/linear_rows.h"
#include "parsimony/torch_io/tensor.h"
#include "parsimony/training/recovery/walk.h"

namespace parsimony::training {
namespace {

// Rows whose products are summed in their own precision; the rest is summed in double.
constexpr int64_t kChunk = 1 << 9;
// A fit of n numbers per channel takes so many rows times n, but no fewer than the second, and from
// no fewer samples than the third, where there are as many.
constexpr int64_t kRowsPerColumn = 32;
constexpr int64_t kFewestRows = 1 << 15;
constexpr int64_t kFewestSamples = 64;

using Ints = std::vector<int64_t>;
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

/// Sums over a layer's inputs and its residuals.
class Sums {
 public:
  Sums(bool weights, bool shift) : weights_(weights), shift_(shift) {}

  /// Forgets the residuals, which a round changes; the inputs stay.
  void next_round() {
    complete_ = second_.defined();
    cross_.reset();
  }

  /// x [g, rows, in], lack [g, rows, out].
  void add(const at::Tensor& x, const at::Tensor& lack) {
    for (int64_t begin = 0; begin < x.size(1); begin += kChunk) {
      const int64_t count = std::min(kChunk, x.size(1) - begin);
      const at::Tensor read = extended(x.narrow(1, begin, count));
      accumulate(cross_, at::matmul(lack.narrow(1, begin, count).transpose(1, 2), read));
      if (!complete_) accumulate(second_, at::matmul(read.transpose(1, 2), read));
    }
  }

  bool empty() const { return !cross_.defined(); }

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

  static void accumulate(at::Tensor& sum, const at::Tensor& some) {
    sum = sum.defined() ? sum.add_(some) : some.to(at::kDouble);
  }

  bool weights_;
  bool shift_;
  bool complete_ = false;  ///< `second_` has all rows
  at::Tensor second_;
  at::Tensor cross_;
};

/// A convolution at some of its positions only.
struct Thinned {
  Thinned() = default;
  /// About one of `every`.
  Thinned(const Node& of, int64_t every) : node(of) {
    const Ints kernel = attrs(of, "kernel_shape");
    const std::string padding = attr(of, "auto_pad", "NOTSET");
    if (every == 1 || kernel.empty() || padding.starts_with("SAME")) return;
    const auto axes = static_cast<double>(kernel.size());
    const auto step = static_cast<int64_t>(std::pow(static_cast<double>(every), 1 / axes));
    steps.assign(kernel.size(), step);
    Ints strides = attrs(of, "strides");
    if (strides.empty()) strides.assign(kernel.size(), 1);
    for (int64_t& stride : strides) stride *= step;
    std::erase_if(node.attributes, [](const auto& item) { return item.first == "strides"; });
    node.attributes.emplace_back("strides", std::move(strides));
  }

  /// The same positions of the layer's answer [n, c, ..s].
  at::Tensor of(at::Tensor answer) const {
    for (size_t i = 0; i < steps.size(); ++i) {
      answer = at::slice(answer, static_cast<int64_t>(i) + 2, 0, {}, steps[i]);
    }
    return answer;
  }

  Node node;
  std::vector<int64_t> steps = {};  ///< by spatial axis; empty: every position
};

std::vector<ValueId> answers_of(const std::vector<FitLayer>& layers) {
  std::vector<ValueId> values;
  for (const FitLayer& layer : layers) values.push_back(layer.answer);
  return values;
}

std::vector<ValueId> ends_of(const std::vector<FitLayer>& layers) {
  std::vector<ValueId> values = answers_of(layers);
  for (const FitLayer& layer : layers) values.push_back(layer.input);
  return values;
}

class Refit {
 public:
  Refit(const Graph& dense, SmallNetwork& small, const std::vector<FitLayer>& layers,
        const Batches& batches, const RefitOptions& options)
      : small_(small),
        options_(options),
        walks_({Walk(dense, answers_of(layers)), Walk(small.graph(), ends_of(layers))}, small,
               batches, options.batch) {
    walks_.grow_to(1);
  }

  bool operator()(const FitLayer& layer) {
    const bool shift = layer.shift != kNone;
    bool changed = false;
    if (walks_.count() > 0 && (options_.weights || shift)) {
      const Data data = data_of(layer);
      const int rounds = options_.weights && layer.rectified ? std::max(1, options_.rounds) : 1;
      Sums sums(options_.weights, shift);
      for (int round = 0; round < rounds; ++round) {
        sums.next_round();
        add(layer, data, round > 0, sums);
        const at::Tensor change = sums.solve(options_.ridge);
        if (!change.defined()) break;
        change_values(layer, change);
        changed = true;
      }
    }
    walks_[0].finish(layer.answer);
    walks_[1].finish(layer.input);
    walks_[1].finish(layer.answer);
    return changed;
  }

 private:
  /// Of a layer, for each batch.
  struct Data {
    std::vector<at::Tensor> inputs;
    std::vector<at::Tensor> wanted;
    Thinned thinned;
  };

  /// From as many samples as the fit takes, and of these as many rows.
  Data data_of(const FitLayer& layer) {
    const Node& node = small_.graph().node(layer.node);
    const int64_t columns = weight_of(layer).numel() / kept_outputs(layer);
    const int64_t enough = std::max(kFewestRows, kRowsPerColumn * (columns + 1));
    const int64_t fewest = (kFewestSamples + options_.batch - 1) / options_.batch;
    while (true) {
      Data data;
      data.inputs = walks_[1].compute(layer.input);
      data.wanted = walks_[0].compute(layer.answer);
      walks_.shrink();
      data.inputs.resize(static_cast<size_t>(walks_.count()));
      data.wanted.resize(data.inputs.size());
      const at::Tensor& answer = data.wanted.front();
      const int64_t each = std::max<int64_t>(1, answer.numel() / answer.size(layer.answer_axis));
      data.thinned = Thinned(node, std::max<int64_t>(1, each * walks_.count() / enough));
      if (!walks_.grow_to(std::max((enough + each - 1) / each, fewest))) return data;
    }
  }

  at::Tensor weight_of(const FitLayer& layer) const {
    return torch_io::to_tensor(small_.graph().weight(layer.weight));
  }
  int64_t kept_outputs(const FitLayer& layer) const {
    return small_.graph().weight(layer.weight).dims[static_cast<size_t>(layer.out_axis)];
  }

  void add(const FitLayer& layer, const Data& data, bool rectified, Sums& sums) {
    const std::string& name = small_.graph().weight(layer.weight).name;
    const std::vector<int64_t> kept = small_.kept(name, layer.out_axis);
    const at::Tensor weight = weight_of(layer);
    const std::vector<at::Tensor> found = walks_[1].behind(layer.weight, layer.answer);
    for (size_t b = 0; b < data.inputs.size(); ++b) {
      at::Tensor wanted = data.wanted[b].to(at::kFloat);
      if (!kept.empty()) {
        wanted = wanted.index_select(layer.answer_axis, at::tensor(kept, at::kLong));
      }
      const at::Tensor own = found[b].to(at::kFloat);
      if (!wanted.sizes().equals(own.sizes())) return;
      at::Tensor lack = wanted - own;
      // If Relu zeroes the dense target, any negative value is as good.
      if (rectified) lack = at::where(wanted.gt(0), lack, own.clamp_min(0).neg());
      const at::Tensor some = data.thinned.of(lack);
      sums.add(linear_rows(data.thinned.node, data.inputs[b].to(at::kFloat), weight),
               answer_rows(some, layer.answer_axis, groups_of(data.thinned.node)));
    }
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
  const std::vector<FitLayer> layers = fit_layers(small.graph(), fixed);
  if (layers.empty()) return 0;
  Refit one(dense, small, layers, batches, options);
  int changed = 0;
  for (const FitLayer& layer : layers) changed += one(layer) ? 1 : 0;
  return changed;
}

int estimate_batch_norms(SmallNetwork& small, const Batches& batches, int64_t batch) {
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
    const char* reason = "statistics of the calibration data";
    assign(small, weight_at(graph, node, 3), moments.mean(), reason);
    assign(small, weight_at(graph, node, 4), moments.variance(), reason);
    ++changed;
  }
  return changed;
}

}  // namespace parsimony::training
