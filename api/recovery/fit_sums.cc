#include "parsimony/api/recovery/fit_sums.h"

#include <Eigen/Core>
#include <cstring>
#include <utility>

namespace parsimony {
namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

const float* floats_in(const TensorBytes& tensor) {
  return reinterpret_cast<const float*>(tensor.bytes.data());
}

/// Returns a view of matrix `g` of [systems, rows, columns], or of the only one.
Eigen::Map<const RowMajor> matrix_in(const TensorBytes& tensor, int64_t g) {
  const Shape& dims = tensor.dims;
  return {floats_in(tensor) + (dims[0] == 1 ? 0 : g) * dims[1] * dims[2], dims[1], dims[2]};
}

/// Returns a view of row `g` of [systems, columns], or of the only one.
Eigen::Map<const Eigen::VectorXf> vector_in(const TensorBytes& tensor, int64_t g) {
  const Shape& dims = tensor.dims;
  return {floats_in(tensor) + (dims[0] == 1 ? 0 : g) * dims[1], dims[1]};
}

/// Returns the rows of sizes [systems, rows, out].
int64_t rows_in(const TensorBytes& sizes) {
  int64_t rows = 0;
  std::memcpy(&rows, sizes.bytes.data() + sizeof rows, sizeof rows);
  return rows;
}

void sum_over(const Together& together, Eigen::MatrixXd& matrix) {
  if (matrix.size() > 0) together.sum({matrix.data(), static_cast<size_t>(matrix.size())});
}

}  // namespace

FitSums::FitSums(int64_t systems, bool weights, bool shift)
    : weights_(weights), shift_(shift || !weights), sums_(static_cast<size_t>(systems)) {}

void FitSums::next_round() {
  complete_ = any_ || complete_;
  any_ = false;
  for (SplitSums& sums : sums_) {
    sums.seen.cross.setZero();
    sums.held_out.cross.setZero();
    sums.residual = 0;
  }
}

void FitSums::ask(GraphBuilder& graph, ValueId x, ValueId lack, ValueId target,
                  bool held_out) const {
  graph.output(sizes_of(graph, lack));
  graph.output(sum_of_rows(graph, lack));
  if (held_out) {
    graph.output(sum_of_squares(graph, lack));
    graph.output(sum_of_squares(graph, target));
  }
  if (!weights_) return;
  graph.output(products(graph, lack, x));
  if (complete_) return;
  graph.output(products(graph, x, x));
  graph.output(sum_of_rows(graph, x));
}

void FitSums::add(const TensorList& results, size_t& next, bool held_out) {
  const TensorBytes& sizes = results[next++];
  const TensorBytes& lack = results[next++];
  const TensorBytes* squares = held_out ? &results[next++] : nullptr;
  const TensorBytes* target = held_out ? &results[next++] : nullptr;
  const TensorBytes* cross = weights_ ? &results[next++] : nullptr;
  const bool reads = weights_ && !complete_;
  const TensorBytes* second = reads ? &results[next++] : nullptr;
  const TensorBytes* rows = reads ? &results[next++] : nullptr;
  const Eigen::Index in = weights_ ? cross->dims[2] : 0;
  const Eigen::Index all = in + (shift_ ? 1 : 0);
  any_ = true;
  for (size_t i = 0; i < sums_.size(); ++i) {
    const auto g = static_cast<int64_t>(i);
    if (held_out) {
      sums_[i].residual += vector_in(*squares, g).cast<double>().sum();
      if (!complete_) sums_[i].target += vector_in(*target, g).cast<double>().sum();
    }
    LeastSquaresSums& sums = held_out ? sums_[i].held_out : sums_[i].seen;
    if (sums.cross.size() == 0) {
      sums.cross.setZero(lack.dims[1], all);
      sums.second.setZero(all, all);
    }
    if (in > 0) sums.cross.leftCols(in) += matrix_in(*cross, g).cast<double>();
    if (shift_) sums.cross.col(in) += vector_in(lack, g).cast<double>();
    if (complete_) continue;
    if (shift_) sums.second(in, in) += static_cast<double>(rows_in(sizes));
    if (in == 0) continue;
    // Symmetric: by columns, as they lie in the sum, it is the same.
    sums.second.topLeftCorner(in, in) += matrix_in(*second, g).transpose().cast<double>();
    if (!shift_) continue;
    const Eigen::VectorXd inputs = vector_in(*rows, g).cast<double>();
    sums.second.col(in).head(in) += inputs;
    sums.second.row(in).head(in) += inputs.transpose();
  }
}

const std::vector<SplitSums>& FitSums::sums(const Together& together) {
  static const std::vector<SplitSums> kNothing;
  if (!any_) return kNothing;
  if (together.sum) {
    for (SplitSums& sums : sums_) {
      for (LeastSquaresSums* share : {&sums.seen, &sums.held_out}) {
        sum_over(together, share->cross);
        if (!complete_) sum_over(together, share->second);
      }
      together.sum({&sums.residual, 1});
      if (!complete_) together.sum({&sums.target, 1});
    }
  }
  return sums_;
}

LayerSums::LayerSums(Engine& engine, LayerFit fit)
    : engine_(engine),
      fit_(std::move(fit)),
      rows_{fit_.node, fit_.weight.dims, 0, fit_.steps},
      sums_(groups_of_layer(fit_.node), fit_.weights, fit_.shift) {}

void LayerSums::add(const EngineValue& input, const EngineValue& target, const EngineValue& found,
                    BatchUse use) {
  Shape kept = target->dims();
  const int64_t axis = fit_.layer.output_axis + (fit_.layer.output_axis < 0 ? std::ssize(kept) : 0);
  if (!fit_.kept.empty()) kept[axis] = std::ssize(fit_.kept);
  if (kept != found->dims() || kept[axis] == 0) return;
  Part& part = part_for({use, sums_.reads_rows(), sample_dims(input)}, input, target, found, axis);
  EngineValues inputs = {target, found};
  if (fit_.weights) inputs.push_back(input);
  size_t first = 0;
  sums_.add(on_host(part.run(inputs)), first, use.held_out);
}

Part& LayerSums::part_for(const Kind& kind, const EngineValue& input, const EngineValue& target,
                          const EngineValue& found, int64_t axis) {
  const auto [place, is_new] = known_.try_emplace(kind);
  Summing& summing = place->second;
  if (!is_new) return *summing.part;
  GraphBuilder& graph = summing.builder;
  const ValueId dense = input_in_floats(graph, target->dtype());
  const ValueId own = input_in_floats(graph, found->dtype());
  const ValueId kept = channels_of(graph, dense, axis, fit_.kept);
  const Shape dims = found->dims();
  const auto in_rows = [&](ValueId answer) {
    return output_rows_of(graph, rows_, answer, dims.size(), axis, dims[axis]);
  };
  const ValueId lack = in_rows(residual(graph, kept, own, kind.use.rectified));
  const ValueId x =
      fit_.weights ? rows_of(graph, rows_, input_in_floats(graph, input->dtype()), input->dims())
                   : kNone;
  sums_.ask(graph, x, lack, kind.use.held_out ? in_rows(kept) : kNone, kind.use.held_out);
  summing.part = std::make_unique<Part>(engine_, graph.finished());
  return *summing.part;
}

}  // namespace parsimony
