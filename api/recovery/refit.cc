#include "parsimony/api/recovery/refit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "parsimony/api/recovery/recurrence.h"
#include "parsimony/api/recovery/row_sums.h"
#include "parsimony/graph/attributes.h"
#include "parsimony/graph/operators/schema.h"

namespace parsimony {
namespace {

// A fit of n values per channel reads kRowsPerColumn · n rows, with lower limits for the number of
// rows and samples, if available.
constexpr int64_t kRowsPerColumn = 32;
constexpr int64_t kFewestRows = 1 << 15;
constexpr int64_t kFewestSamples = 64;

using Ints = std::vector<int64_t>;

/// Returns the stride of the sampled positions per spatial axis, which samples about one position
/// in `every`. A transposed convolution uses all phases.
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

/// Returns the network with all steps of recurrent layers, which become their `answer`.
Graph with_all_steps(Graph dense, std::vector<FitLayer>& layers) {
  const IdVector<ValueId, NodeId> producers = producers_of(dense);
  for (FitLayer& layer : layers) {
    if (layer.state == kNone) continue;
    Node& node = dense.nodes[producers[layer.answer]];
    if (node.outputs[0] == kNone) {
      node.outputs[0] = ValueId(std::ssize(dense.values));
      dense.values.push_back({});
    }
    layer.answer = node.outputs[0];
  }
  return dense;
}

/// Selects the held-out batches: every fifth or, of a stream, whose neighbours are alike, the last
/// fifth. With fewer than five batches the last one, of a single one none.
std::vector<bool> held_out_of(int64_t batches, bool is_stream) {
  std::vector<bool> held_out(static_cast<size_t>(batches), false);
  const int64_t period = std::min(batches, kHeldOutPeriod);
  if (period < 2) return held_out;
  const int64_t first = is_stream ? batches - batches / period : period - 1;
  for (int64_t b = first; b < batches; b += is_stream ? 1 : period) held_out[b] = true;
  return held_out;
}

std::optional<double> relative(double squares, double target) {
  if (target <= 0) return {};
  return std::sqrt(std::max(0.0, squares) / target);
}

/// The data for the fit of a layer, by batch.
struct FitData {
  EngineValues inputs;
  /// Values of the dense network: the output; for a recurrent layer those of recurrent_reads().
  std::vector<EngineValues> target;
  std::vector<bool> held_out;  ///< batches that only validate the fit
  Ints steps;                  ///< see LayerFit
};

/// Several ranks decide alike, to the last bit: Eigen's kernels are the same for all.
MatrixKernels kernels_of(const Engine& engine, const Together& together) {
  if (together.ranks > 1) return {};
  return {[&](const Eigen::MatrixXd& a, const Eigen::MatrixXd& b, Eigen::MatrixXd& c) {
            return engine.multiply(a.rows(), a.cols(), b.cols(), a.data(), b.data(), c.data());
          },
          [&](const Eigen::MatrixXd& a, Eigen::MatrixXd& b) {
            return engine.solve(a.rows(), a.data(), b.cols(), b.data());
          }};
}

class Refit {
 public:
  Refit(const RefitData& data, const Graph& dense, SmallNetwork& small,
        std::vector<FitLayer> layers, const RefitOptions& options)
      : data_(data),
        layers_(std::move(layers)),
        dense_(with_all_steps(dense, layers_)),
        small_(small),
        options_(options),
        walks_(
            {Walk(data.engine, dense_,
                  values([&](const FitLayer& layer) { return dense_reads(layer); })),
             Walk(data.engine, small.graph(), values(small_reads))},
            [&data](size_t walk) { return data.feed(walk == 1); }, options.most_bytes) {
    walks_.grow_to(1);
  }

  /// @returns how many layers changed
  int operator()() {
    return static_cast<int>(
        std::ranges::count_if(layers_, [&](const FitLayer& layer) { return change(layer); }));
  }

 private:
  /// The values of a layer's weights.
  struct Values {
    std::vector<double> matrix;
    std::vector<double> shift;
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
    return recurrent_reads(dense_, layer);
  }

  static std::vector<ValueId> small_reads(const FitLayer& layer) {
    if (layer.state != kNone) return {layer.input};
    return {layer.input, layer.answer};
  }

  bool change(const FitLayer& layer) {
    bool changed = false;
    if (walks_.count() > 0 && (options_.weights || layer.shift != kNone)) {
      const FitData data = data_of(layer);
      changed = layer.state == kNone ? change_linear(layer, data) : change_recurrent(layer, data);
    }
    for (const ValueId v : dense_reads(layer)) walks_[0].finish(v);
    for (const ValueId v : small_reads(layer)) walks_[1].finish(v);
    return changed;
  }

  bool change_linear(const FitLayer& layer, const FitData& data) {
    const int rounds = options_.weights && layer.rectified ? std::max(1, options_.rounds) : 1;
    const Graph& graph = small_.graph();
    LayerSums sums(data_.engine, {layer, graph.node(layer.node), graph.weight(layer.weight),
                                  kept_channels(small_, layer), data.steps, options_.weights,
                                  layer.shift != kNone});
    std::optional<double> ridge = options_.weights ? options_.ridge : std::optional(0.0);
    ValidatedFit best;
    Values before;
    for (int round = 0; round < rounds; ++round) {
      sums.next_round();
      const EngineValues found = walks_[1].after(layer.weight, layer.answer);
      std::vector<FitBatch> batches;
      for (size_t b = 0; b < data.inputs.size(); ++b) {
        batches.push_back({data.inputs[b],
                           data.target.front()[b],
                           found[b],
                           {.rectified = round > 0, .held_out = data.held_out[b]}});
      }
      sums.add(batches);
      ValidatedFit fit =
          validated_fit(sums.sums(data_.together), ridge, kernels_of(data_.engine, data_.together));
      if (round == 0) record(layer, fit);
      if (!fit.helps()) break;
      best = std::move(fit);
      ridge = best.ridge;
      before = values_of(layer);
      // The validation data of the next round must not have been seen so far.
      if (round + 1 < rounds) change_values(layer, before, best.seen);
    }
    if (best.all.empty()) return false;
    change_values(layer, before, best.all);
    return true;
  }

  bool change_recurrent(const FitLayer& layer, const FitData& data) {
    // Errors of a recurrent layer accumulate: a fit to few samples can be far off on others.
    if (options_.weights && rows_of(data) < kRowsPerColumn * (columns_of(layer) + 1)) {
      if (options_.log != nullptr) options_.log->unfit.push_back({layer.node, "too few samples"});
      return false;
    }
    RecurrentFit fitting(data_.engine, dense_, small_, layer, options_.weights);
    for (size_t b = 0; b < data.inputs.size(); ++b) {
      EngineValues of_dense;
      for (const EngineValues& batches : data.target) of_dense.push_back(batches[b]);
      fitting.add(data.inputs[b], of_dense, data.held_out[b]);
    }
    const ValidatedFit fit = fitting.finish(options_.ridge, data_.together, reason());
    record(layer, fit);
    return fit.helps();
  }

  void record(const FitLayer& layer, const ValidatedFit& fit) {
    if (options_.log == nullptr || fit.seen.empty()) return;
    LayerRecovery result{.layer = label_of(small_.graph(), small_.graph().node(layer.node)),
                         .ridge = fit.ridge,
                         .kept = !fit.helps()};
    if (fit.validated) {
      result.before = relative(fit.before, fit.target);
      result.after = relative(fit.after, fit.target);
    }
    options_.log->fits.push_back(std::move(result));
  }

  /// Returns the number of rows on all ranks.
  int64_t rows_of(const FitData& data) const {
    double rows = 0;
    for (const EngineValue& x : data.inputs) {
      const Shape dims = x->dims();
      rows += static_cast<double>(element_count(dims) / dims.back());
    }
    if (data_.together.sum) data_.together.sum({&rows, 1});
    return static_cast<int64_t>(rows);
  }

  std::string reason() const {
    return options_.weights ? "least squares" : "means of the removed channels";
  }

  /// Returns as many samples as the fit needs, and as many rows of them.
  FitData data_of(const FitLayer& layer) {
    const int ranks = data_.together.ranks;
    const int64_t enough = std::max(kFewestRows, kRowsPerColumn * (columns_of(layer) + 1)) / ranks;
    const int64_t together = options_.batch * ranks;
    const int64_t fewest = std::max((kFewestSamples + together - 1) / together, kHeldOutPeriod);
    while (true) {
      FitData data;
      data.inputs = walks_[1].compute(layer.input);
      for (const ValueId v : dense_reads(layer)) data.target.push_back(walks_[0].compute(v));
      walks_.shrink();
      data.inputs.resize(static_cast<size_t>(walks_.count()));
      data.held_out = held_out_of(walks_.count(), walks_[1].is_stream());
      for (EngineValues& batches : data.target) batches.resize(data.inputs.size());
      const Shape dims = data.target.front().front()->dims();
      const auto rank = std::ssize(dims);
      const int64_t axis = layer.output_axis < 0 ? layer.output_axis + rank : layer.output_axis;
      const int64_t each = std::max<int64_t>(1, element_count(dims) / dims[axis]);
      const size_t axes = layer.output_axis == 1 ? dims.size() - 2 : 0;
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

  /// Returns, per output channel, the factor between the layer's output and the target.
  std::vector<double> scale_of(const FitLayer& layer, size_t out) const {
    std::vector<double> scale(out, 1);
    if (layer.norm == kNone) return scale;
    const Graph& graph = small_.graph();
    const Node& norm = graph.node(layer.norm);
    const double epsilon = attr(norm, "epsilon", 1e-5);
    const HostTensor factor = to_host(graph.weight_of(norm.inputs[1]));
    const HostTensor variance = to_host(graph.weight_of(norm.inputs[4]));
    for (size_t o = 0; o < out; ++o) {
      scale[o] = factor.floats[o] / std::sqrt(variance.floats[o] + epsilon);
    }
    return scale;
  }

  Values values_of(const FitLayer& layer) const {
    const Graph& graph = small_.graph();
    Values values{to_host(graph.weight(layer.weight)).floats, {}};
    if (layer.shift != kNone) values.shift = to_host(graph.weight(layer.shift)).floats;
    return values;
  }

  /// Adds `change` [out / g, in (+ 1)] of the output, by group, to the previous values.
  void change_values(const FitLayer& layer, Values values,
                     const std::vector<Eigen::MatrixXd>& change) {
    constexpr double kDead = 1e-12;
    const Graph& graph = small_.graph();
    const auto groups = static_cast<int64_t>(change.size());
    const int64_t out = change.front().rows();
    const bool shift = layer.shift != kNone;
    const int64_t columns = change.front().cols() - (shift ? 1 : 0);
    const std::vector<double> scale = scale_of(layer, static_cast<size_t>(groups * out));
    const auto of = [&](int64_t g, int64_t o, int64_t column) {
      const double s = scale[g * out + o];
      return std::abs(s) < kDead ? 0 : change[g](o, column) / s;
    };
    if (shift) {
      for (int64_t g = 0; g < groups; ++g) {
        for (int64_t o = 0; o < out; ++o) {
          values.shift[g * out + o] += of(g, o, columns) * layer.shift_sign;
        }
      }
      small_.assign_numbers(graph.weight(layer.shift), values.shift, reason());
    }
    if (!options_.weights) return;
    const Weight& old = graph.weight(layer.weight);
    int64_t kernel = 1;
    for (size_t d = 2; d < old.dims.size(); ++d) kernel *= old.dims[d];
    const int64_t in = columns / kernel;
    for (int64_t g = 0; g < groups; ++g) {
      for (int64_t o = 0; o < out; ++o) {
        for (int64_t c = 0; c < columns; ++c) {
          const int64_t transposed = ((g * in + c / kernel) * out + o) * kernel + c % kernel;
          values.matrix[layer.out_axis == 0 ? (g * out + o) * columns + c : transposed] +=
              of(g, o, c);
        }
      }
    }
    small_.assign_numbers(old, values.matrix, reason());
  }

  const RefitData& data_;
  std::vector<FitLayer> layers_;
  const Graph dense_;
  SmallNetwork& small_;
  const RefitOptions& options_;
  Walks walks_;
};

/// Sums per channel of a value, its axis 1.
class ChannelSums {
 public:
  explicit ChannelSums(Engine& engine) : engine_(engine) {}

  void add(const EngineValue& x) {
    const Shape dims = x->dims();
    rows_ += static_cast<double>(dims[1] == 0 ? 0 : element_count(dims) / dims[1]);
    if (!part_) {
      sum_channels(builder_, builder_.input("x", x->dtype()), dims.size());
      part_.emplace(engine_, builder_.finished());
    }
    const TensorList results = on_host(part_->run({x}));
    sum_.resize(static_cast<size_t>(dims[1]));
    squares_.resize(sum_.size());
    const auto take = [](const TensorBytes& found, std::vector<double>& sums) {
      const auto* numbers = reinterpret_cast<const double*>(found.bytes.data());
      for (size_t c = 0; c < sums.size(); ++c) sums[c] += numbers[c];
    };
    take(results[0], sum_);
    take(results[1], squares_);
  }

  void sum_over(const Together& together) {
    if (!together.sum) return;
    together.sum({&rows_, 1});
    together.sum(sum_);
    together.sum(squares_);
  }

  double rows() const { return rows_; }
  std::vector<double> means() const {
    std::vector<double> means = sum_;
    for (double& mean : means) mean /= rows_;
    return means;
  }
  std::vector<double> variances() const {
    std::vector<double> variances = means();
    for (size_t c = 0; c < variances.size(); ++c) {
      variances[c] = std::max(0.0, squares_[c] / rows_ - variances[c] * variances[c]);
    }
    return variances;
  }

 private:
  Engine& engine_;
  GraphBuilder builder_{kSumsOpset};
  std::optional<Part> part_;
  double rows_ = 0;
  std::vector<double> sum_;
  std::vector<double> squares_;
};

}  // namespace

int64_t fit_batch(int64_t samples, int64_t most) {
  constexpr int64_t kMost = kFewestSamples / kHeldOutPeriod;
  return std::clamp<int64_t>(samples / kHeldOutPeriod, 1, std::min(most, kMost));
}

int refit(const RefitData& data, const Graph& dense, SmallNetwork& small,
          const std::vector<std::string>& fixed, const RefitOptions& options) {
  std::vector<FitLayer> layers = fit_layers(small.graph(), fixed);
  if (layers.empty()) return 0;
  return Refit(data, dense, small, std::move(layers), options)();
}

int estimate_batch_norms(const RefitData& data, SmallNetwork& small) {
  const Graph& graph = small.graph();
  const std::vector<NodeId> norms = batch_norms(graph);
  std::vector<ValueId> inputs;
  for (const NodeId n : norms) inputs.push_back(graph.node(n).inputs[0]);
  Walks walks({Walk(data.engine, graph, inputs)}, [&](size_t) { return data.feed(true); });
  int changed = 0;
  for (const NodeId n : norms) {
    const Node& node = graph.node(n);
    walks.grow_to(std::numeric_limits<int32_t>::max());
    ChannelSums sums(data.engine);
    for (const EngineValue& x : walks[0].compute(node.inputs[0])) sums.add(x);
    walks.shrink();
    walks[0].finish(node.inputs[0]);
    sums.sum_over(data.together);
    if (sums.rows() == 0) continue;
    const char* reason = "statistics of the calibration data";
    small.assign_numbers(graph.weight_of(node.inputs[3]), sums.means(), reason);
    small.assign_numbers(graph.weight_of(node.inputs[4]), sums.variances(), reason);
    ++changed;
  }
  return changed;
}

}  // namespace parsimony
