#include "parsimony/api/recovery/refit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "parsimony/graph/attributes.h"
#include "parsimony/graph/elements.h"
#include "parsimony/graph/operators/schema.h"

namespace parsimony {
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

/// Gives a weight other values, in its own type.
void assign(SmallNetwork& small, const Weight& weight, const std::vector<double>& values,
            const std::string& reason) {
  const auto size = size_of(weight.dtype);
  std::vector<std::byte> bytes(values.size() * size);
  for (size_t i = 0; i < values.size(); ++i) {
    write_number(values[i], weight.dtype, &bytes[i * size]);
  }
  small.assign(weight, bytes, reason);
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

/// The network, in which recurrent layers give all their steps; these become their `answer`.
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

/// With fewer than five batches the last one; a single one is not held out.
std::vector<bool> held_out_of(int64_t batches) {
  std::vector<bool> held_out(static_cast<size_t>(batches), false);
  const auto period = static_cast<size_t>(std::min(batches, kHeldOut));
  if (period < 2) return held_out;
  for (size_t b = period - 1; b < held_out.size(); b += period) held_out[b] = true;
  return held_out;
}

std::optional<double> relative(double squares, double wanted) {
  if (wanted <= 0) return {};
  return std::sqrt(std::max(0.0, squares) / wanted);
}

/// Without those that the engine leaves.
std::vector<FitLayer> fitted_by(RefitEngine& engine, const Graph& small,
                                std::vector<FitLayer> layers, const RefitOptions& options) {
  std::erase_if(layers, [&](const FitLayer& layer) {
    const std::string_view why = engine.why_unfit(small, layer);
    if (!why.empty() && options.log != nullptr) options.log->unfit.push_back({layer.node, why});
    return !why.empty();
  });
  return layers;
}

class Refit {
 public:
  Refit(RefitEngine& engine, const Graph& dense, SmallNetwork& small, std::vector<FitLayer> layers,
        const RefitOptions& options)
      : engine_(engine),
        layers_(std::move(layers)),
        dense_(with_all_steps(dense, layers_)),
        small_(small),
        options_(options),
        walks_(
            {Walk(engine, dense_,
                  values([&](const FitLayer& layer) { return dense_reads(layer); })),
             Walk(engine, small.graph(), values(small_reads))},
            [&engine](size_t walk) { return engine.feed(walk == 1); }, options.most_bytes) {
    walks_.grow_to(1);
  }

  /// @returns how many layers changed
  int operator()() {
    return static_cast<int>(
        std::ranges::count_if(layers_, [&](const FitLayer& layer) { return change(layer); }));
  }

 private:
  /// Of a layer's weights.
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
    const std::unique_ptr<LayerSums> sums = engine_.sums_for(
        {layer, graph.node(layer.node), graph.weight(layer.weight), kept_channels(small_, layer),
         data.steps, options_.weights, layer.shift != kNone});
    std::optional<double> ridge = options_.weights ? options_.ridge : std::optional(0.0);
    JudgedFit best;
    Values before;
    for (int round = 0; round < rounds; ++round) {
      sums->next_round();
      const std::vector<Held> found = walks_[1].behind(layer.weight, layer.answer);
      for (size_t b = 0; b < data.inputs.size(); ++b) {
        const LayerSums::How how = {.rectified = round > 0, .held_out = data.held_out[b]};
        sums->add(data.inputs[b], data.wanted.front()[b], found[b], how);
      }
      JudgedFit fit = judged_fit(sums->sums(), ridge);
      if (round == 0) record(layer, fit);
      if (!fit.helps()) break;
      best = std::move(fit);
      ridge = best.ridge;
      before = values_of(layer);
      // What judges the next round has not been seen so far.
      if (round + 1 < rounds) change_values(layer, before, best.seen);
    }
    if (best.all.empty()) return false;
    change_values(layer, before, best.all);
    return true;
  }

  bool change_recurrent(const FitLayer& layer, const FitData& data) {
    // Its errors come back to it: a fit to few samples can be far off on others.
    if (options_.weights && rows_of(data) < kRowsPerColumn * (columns_of(layer) + 1)) {
      if (options_.log != nullptr) options_.log->unfit.push_back({layer.node, "too few samples"});
      return false;
    }
    const JudgedFit fit = engine_.fit_recurrent(dense_, small_, layer, data, options_, reason());
    record(layer, fit);
    return fit.helps();
  }

  void record(const FitLayer& layer, const JudgedFit& fit) {
    if (options_.log == nullptr || fit.seen.empty()) return;
    LayerRecovery result{.layer = label_of(small_.graph(), small_.graph().node(layer.node)),
                         .ridge = fit.ridge,
                         .kept = !fit.helps()};
    if (fit.judged) {
      result.before = relative(fit.before, fit.wanted);
      result.after = relative(fit.after, fit.wanted);
    }
    options_.log->fits.push_back(std::move(result));
  }

  /// Of all ranks.
  int64_t rows_of(const FitData& data) const {
    double rows = 0;
    for (const Held& x : data.inputs) {
      const Shape dims = engine_.dims_of(x);
      rows += static_cast<double>(element_count(dims) / dims.back());
    }
    engine_.sum_over_ranks({&rows, 1});
    return static_cast<int64_t>(rows);
  }

  std::string reason() const {
    return options_.weights ? "least squares" : "means of what was removed";
  }

  /// From as many samples as the fit takes, and of these as many rows.
  FitData data_of(const FitLayer& layer) {
    const int ranks = engine_.ranks();
    const int64_t enough = std::max(kFewestRows, kRowsPerColumn * (columns_of(layer) + 1)) / ranks;
    const int64_t together = options_.batch * ranks;
    const int64_t fewest = std::max((kFewestSamples + together - 1) / together, kHeldOut);
    while (true) {
      FitData data;
      data.inputs = walks_[1].compute(layer.input);
      for (const ValueId v : dense_reads(layer)) data.wanted.push_back(walks_[0].compute(v));
      walks_.shrink();
      data.inputs.resize(static_cast<size_t>(walks_.count()));
      data.held_out = held_out_of(walks_.count());
      for (auto& batches : data.wanted) batches.resize(data.inputs.size());
      const Shape dims = engine_.dims_of(data.wanted.front().front());
      const auto rank = std::ssize(dims);
      const int64_t axis = layer.answer_axis < 0 ? layer.answer_axis + rank : layer.answer_axis;
      const int64_t each = std::max<int64_t>(1, element_count(dims) / dims[axis]);
      const size_t axes = layer.answer_axis == 1 ? dims.size() - 2 : 0;
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

  /// Per output channel: the factor between the layer's output and the target.
  std::vector<double> scale_of(const FitLayer& layer, size_t out) const {
    std::vector<double> scale(out, 1);
    if (layer.norm == kNone) return scale;
    const Graph& graph = small_.graph();
    const Node& norm = graph.node(layer.norm);
    const double epsilon = attr(norm, "epsilon", 1e-5);
    const HostTensor factor = to_host(weight_at(graph, norm, 1));
    const HostTensor variance = to_host(weight_at(graph, norm, 4));
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

  /// `change` [out / g, in (+ 1)] by group is of the answer, and what the layer had before.
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
      assign(small_, graph.weight(layer.shift), values.shift, reason());
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
    assign(small_, old, values.matrix, reason());
  }

  RefitEngine& engine_;
  std::vector<FitLayer> layers_;
  const Graph dense_;
  SmallNetwork& small_;
  const RefitOptions& options_;
  Walks walks_;
};

void add(ChannelMoments& moments, const ChannelMoments& more) {
  moments.rows += more.rows;
  moments.sum.resize(more.sum.size());
  moments.squares.resize(more.squares.size());
  for (size_t c = 0; c < more.sum.size(); ++c) {
    moments.sum[c] += more.sum[c];
    moments.squares[c] += more.squares[c];
  }
}

void sum_over_ranks(RefitEngine& engine, ChannelMoments& moments) {
  auto rows = static_cast<double>(moments.rows);
  engine.sum_over_ranks({&rows, 1});
  moments.rows = static_cast<int64_t>(rows);
  engine.sum_over_ranks(moments.sum);
  engine.sum_over_ranks(moments.squares);
}

}  // namespace

int64_t fit_batch(int64_t samples, int64_t most) {
  constexpr int64_t kMost = kFewestSamples / kHeldOut;
  return std::clamp<int64_t>(samples / kHeldOut, 1, std::min(most, kMost));
}

int refit(RefitEngine& engine, const Graph& dense, SmallNetwork& small,
          const std::vector<std::string>& fixed, const RefitOptions& options) {
  std::vector<FitLayer> layers =
      fitted_by(engine, small.graph(), fit_layers(small.graph(), fixed), options);
  if (layers.empty()) return 0;
  return Refit(engine, dense, small, std::move(layers), options)();
}

int estimate_batch_norms(RefitEngine& engine, SmallNetwork& small) {
  const Graph& graph = small.graph();
  const std::vector<NodeId> norms = batch_norms(graph);
  std::vector<ValueId> inputs;
  for (const NodeId n : norms) inputs.push_back(graph.node(n).inputs[0]);
  Walks walks({Walk(engine, graph, inputs)}, [&](size_t) { return engine.feed(true); });
  int changed = 0;
  for (const NodeId n : norms) {
    const Node& node = graph.node(n);
    walks.grow_to(std::numeric_limits<int32_t>::max());
    ChannelMoments moments;
    for (const Held& x : walks[0].compute(node.inputs[0])) add(moments, engine.moments_of(x));
    walks.shrink();
    walks[0].finish(node.inputs[0]);
    if (moments.rows == 0) continue;
    sum_over_ranks(engine, moments);
    const auto rows = static_cast<double>(moments.rows);
    std::vector<double> mean = moments.sum;
    std::vector<double> variance = moments.squares;
    for (size_t c = 0; c < mean.size(); ++c) {
      mean[c] /= rows;
      variance[c] = std::max(0.0, variance[c] / rows - mean[c] * mean[c]);
    }
    const char* reason = "statistics of the calibration data";
    assign(small, weight_at(graph, node, 3), mean, reason);
    assign(small, weight_at(graph, node, 4), variance, reason);
    ++changed;
  }
  return changed;
}

std::vector<ValueId> recurrent_reads(const Graph& dense, const FitLayer& layer) {
  const Node& node = dense.node(producers_of(dense)[layer.answer]);
  std::vector<ValueId> values = {layer.answer, node.inputs[0]};
  const auto state = static_cast<size_t>(schema_of(node).recurrence.initial);
  const ValueId initial = state < node.inputs.size() ? node.inputs[state] : kNone;
  if (initial != kNone && dense.value(initial).weight == kNone) values.push_back(initial);
  return values;
}

}  // namespace parsimony
