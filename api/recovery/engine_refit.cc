#include "parsimony/api/recovery/engine_refit.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "parsimony/api/network_error.h"
#include "parsimony/api/recovery/row_sums.h"
#include "parsimony/base/ranges.h"
#include "parsimony/graph/operators/schema.h"
#include "parsimony/speedup/least_squares.h"

namespace parsimony {
namespace {

class EnginePart final : public Part {
 public:
  EnginePart(Engine& engine, const Graph& part) : engine_(engine), part_(part) {
    for (const ValueId v : part.outputs) {
      if (!contains(part.inputs, v)) computed_.push_back(v);
    }
  }

  std::vector<Held> run(const std::vector<Held>& inputs) override {
    TensorList tensors;
    for (size_t i = 0; i < inputs.size(); ++i) {
      tensors.push_back(bytes_in(inputs[i]));
      tensors.back().name = part_.value(part_.inputs[i]).name;
    }
    TensorList outputs;
    if (!computed_.empty()) {
      if (!network_) network_ = engine_.open(typed_as(tensors));
      outputs = std::move(network_->run({tensors}).front());
    }
    std::vector<Held> found;
    auto next = outputs.begin();
    for (const ValueId v : part_.outputs) {
      const auto input = std::ranges::find(part_.inputs, v);
      found.push_back(input != part_.inputs.end() ? inputs[input - part_.inputs.begin()]
                                                  : held(std::move(*next++)));
    }
    return found;
  }

 private:
  /// The part with inputs of these types, of any shape, and the outputs that it computes.
  Graph typed_as(const TensorList& inputs) const {
    Graph typed = part_;
    typed.outputs = computed_;
    for (size_t i = 0; i < inputs.size(); ++i) {
      Value& value = typed.value(part_.inputs[i]);
      value.dtype = inputs[i].dtype;
      value.declared.reset();
    }
    return typed;
  }

  Engine& engine_;
  const Graph& part_;
  std::vector<ValueId> computed_;
  std::unique_ptr<Network> network_;
};

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

const float* floats_in(const Held& value) {
  return reinterpret_cast<const float*>(bytes_in(value).bytes.data());
}

/// Matrix `g` of [groups, rows, columns].
Eigen::MatrixXd matrix_in(const Held& value, int64_t g) {
  const Shape& dims = bytes_in(value).dims;
  const float* begin = floats_in(value) + g * dims[1] * dims[2];
  return Eigen::Map<const RowMajor>(begin, dims[1], dims[2]).cast<double>();
}

/// Row `g` of [groups, columns].
Eigen::VectorXd vector_in(const Held& value, int64_t g) {
  const Shape& dims = bytes_in(value).dims;
  return Eigen::Map<const Eigen::VectorXf>(floats_in(value) + g * dims[1], dims[1]).cast<double>();
}

/// The engine makes the sums of a batch, in float32; these add up in double.
class EngineSums final : public LayerSums {
 public:
  EngineSums(Engine& engine, LayerFit fit)
      : engine_(engine),
        fit_(std::move(fit)),
        rows_{fit_.node, fit_.weight.dims, 0, fit_.steps},
        sums_(groups_of_layer(fit_.node)) {}

  void next_round() override {
    complete_ = any_ || complete_;
    any_ = false;
    for (SplitSums& sums : sums_) {
      sums.seen.cross.setZero();
      sums.held.cross.setZero();
      sums.lacking = 0;
    }
  }

  void add(const Held& input, const Held& wanted, const Held& found, How how) override {
    Shape kept = bytes_in(wanted).dims;
    const auto rank = std::ssize(kept);
    const int64_t axis =
        fit_.layer.answer_axis < 0 ? fit_.layer.answer_axis + rank : fit_.layer.answer_axis;
    if (!fit_.kept.empty()) kept[axis] = std::ssize(fit_.kept);
    if (kept != bytes_in(found).dims) return;
    Summing& summing =
        summing_for({how, !complete_, sample_dims(input)}, input, wanted, found, axis);
    std::vector<Held> inputs = {wanted, found};
    if (fit_.weights) inputs.push_back(input);
    const std::vector<Held> results = summing.part->run(inputs);
    const int64_t rows = kept[axis] == 0 ? 0 : rows_in(results.front());
    any_ = true;
    for (size_t g = 0; g < sums_.size(); ++g) {
      add(results, static_cast<int64_t>(g), rows, how.held_out);
    }
  }

  std::vector<SplitSums> sums() override { return any_ ? sums_ : std::vector<SplitSums>(); }

 private:
  /// What is summed: the second moments of the inputs stay the same in all rounds.
  struct What {
    How how;
    bool second = true;
    Shape sample;  ///< of the inputs
    auto operator<=>(const What&) const = default;
  };

  struct Summing {
    GraphBuilder builder{kSumsOpset};
    std::unique_ptr<Part> part;
  };

  static int64_t rows_in(const Held& shape) {
    int64_t rows = 0;
    std::memcpy(&rows, bytes_in(shape).bytes.data() + sizeof rows, sizeof rows);
    return rows;
  }

  /// Gives: the shape of the lacking rows, their sums; of what is held out the squares of these and
  /// of what is wanted; with a matrix the lacking rows' products with the inputs and, with
  /// `second`, the inputs' own products and sums.
  Summing& summing_for(const What& what, const Held& input, const Held& wanted, const Held& found,
                       int64_t axis) {
    const auto [place, is_new] = known_.try_emplace(what);
    Summing& summing = place->second;
    if (!is_new) return summing;
    GraphBuilder& graph = summing.builder;
    const ValueId target = input_in_floats(graph, bytes_in(wanted).dtype);
    const ValueId own = input_in_floats(graph, bytes_in(found).dtype);
    const ValueId kept = channels_of(graph, target, axis, fit_.kept);
    const Shape& dims = bytes_in(found).dims;
    const auto in_rows = [&](ValueId answer) {
      return answer_rows_of(graph, rows_, answer, dims.size(), axis, dims[axis]);
    };
    const ValueId rows = in_rows(lacking(graph, kept, own, what.how.rectified));
    graph.output(sizes_of(graph, rows));
    graph.output(sum_of_rows(graph, rows));
    if (what.how.held_out) {
      graph.output(sum_of_squares(graph, rows));
      graph.output(sum_of_squares(graph, in_rows(kept)));
    }
    if (fit_.weights) {
      const ValueId data = input_in_floats(graph, bytes_in(input).dtype);
      const ValueId x = rows_of(graph, rows_, data, bytes_in(input).dims);
      graph.output(products(graph, rows, x));
      if (what.second) {
        graph.output(products(graph, x, x));
        graph.output(sum_of_rows(graph, x));
      }
    }
    summing.part = part_on(engine_, graph.finished());
    return summing;
  }

  /// With a 1 behind every input, if there is a constant to fit.
  void add(const std::vector<Held>& results, int64_t g, int64_t rows, bool held_out) {
    constexpr size_t kLack = 1;
    size_t next = kLack + 1;
    const Eigen::VectorXd lack = vector_in(results[kLack], g);
    LeastSquaresSums& sums = held_out ? sums_[g].held : sums_[g].seen;
    if (held_out) {
      sums_[g].lacking += vector_in(results[next++], g).sum();
      const double wanted = vector_in(results[next++], g).sum();
      if (!complete_) sums_[g].wanted += wanted;
    }
    const bool last = fit_.shift || !fit_.weights;
    const Eigen::Index in = fit_.weights ? bytes_in(results[next]).dims[2] : 0;
    const Eigen::Index all = in + (last ? 1 : 0);
    if (sums.cross.size() == 0) {
      sums.cross.setZero(lack.size(), all);
      sums.second.setZero(all, all);
    }
    if (in > 0) sums.cross.leftCols(in) += matrix_in(results[next++], g);
    if (last) sums.cross.col(in) += lack;
    if (complete_) return;
    if (last) sums.second(in, in) += static_cast<double>(rows);
    if (in == 0) return;
    sums.second.topLeftCorner(in, in) += matrix_in(results[next++], g);
    if (!last) return;
    const Eigen::VectorXd inputs = vector_in(results[next], g);
    sums.second.col(in).head(in) += inputs;
    sums.second.row(in).head(in) += inputs.transpose();
  }

  Engine& engine_;
  const LayerFit fit_;
  const RowsOf rows_;
  std::map<What, Summing> known_;
  std::vector<SplitSums> sums_;  // by group
  bool complete_ = false;        ///< the inputs' products have all rows
  bool any_ = false;             ///< something was added in this round
};

}  // namespace

Held held(TensorBytes tensor) { return std::make_shared<const TensorBytes>(std::move(tensor)); }

std::vector<Held> held(TensorList tensors) {
  std::vector<Held> all;
  for (TensorBytes& tensor : tensors) all.push_back(held(std::move(tensor)));
  return all;
}

const TensorBytes& bytes_in(const Held& value) {
  return *static_cast<const TensorBytes*>(value.get());
}

Shape sample_dims(const Held& value) {
  const Shape& dims = bytes_in(value).dims;
  return {dims.begin() + (dims.empty() ? 0 : 1), dims.end()};
}

std::unique_ptr<Part> part_on(Engine& engine, const Graph& part) {
  return std::make_unique<EnginePart>(engine, part);
}

int64_t EngineRefit::bytes_of(const Held& value) const { return std::ssize(bytes_in(value).bytes); }

std::string_view EngineRefit::why_unfit(const Graph& graph, const FitLayer& layer) {
  const LinearKind kind = schema_of(graph.node(layer.node)).linear.kind;
  if (layer.state == kNone && kind != LinearKind::kTransposedConvolution) return {};
  return "fitted by libtorch only";
}

std::unique_ptr<LayerSums> EngineRefit::sums_for(const LayerFit& fit) {
  return std::make_unique<EngineSums>(engine_, fit);
}

ChannelMoments EngineRefit::moments_of(const Held& value) {
  const TensorBytes& x = bytes_in(value);
  const std::vector<double> numbers = numbers_of(x).floats;
  const int64_t channels = x.dims.at(1);
  const int64_t samples = x.dims[0];
  const int64_t each = samples == 0 ? 0 : std::ssize(numbers) / (samples * channels);
  ChannelMoments moments{samples * each, std::vector<double>(channels),
                         std::vector<double>(channels)};
  const double* next = numbers.data();
  for (int64_t n = 0; n < samples; ++n) {
    for (int64_t c = 0; c < channels; ++c, next += each) {
      for (int64_t i = 0; i < each; ++i) {
        moments.sum[c] += next[i];
        moments.squares[c] += next[i] * next[i];
      }
    }
  }
  return moments;
}

}  // namespace parsimony
