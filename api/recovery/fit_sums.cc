#include "parsimony/api/recovery/fit_sums.h"

#include <Eigen/Core>
#include <algorithm>
#include <cstring>
#include <utility>

#include "parsimony/api/recovery/square_sums.h"

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

void FitSums::ask(GraphBuilder& graph, ValueId x, int64_t columns, ValueId lack, ValueId target,
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
  ask_squares(graph, x, columns);
  graph.output(sum_of_rows(graph, x));
}

void FitSums::add(const TensorList& results, size_t& next, bool held_out) {
  const TensorBytes& sizes = results[next++];
  const TensorBytes& lack = results[next++];
  const TensorBytes* squares = held_out ? &results[next++] : nullptr;
  const TensorBytes* target = held_out ? &results[next++] : nullptr;
  const TensorBytes* cross = weights_ ? &results[next++] : nullptr;
  const bool reads = weights_ && !complete_;
  const Eigen::Index in = weights_ ? cross->dims[2] : 0;
  const std::span squared(results.data() + next, reads ? square_outputs(in) : 0);
  next += squared.size();
  const TensorBytes* rows = reads ? &results[next++] : nullptr;
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
    add_squares(squared, g, sums.second.topLeftCorner(in, in));
    if (!shift_) continue;
    const Eigen::VectorXd inputs = vector_in(*rows, g).cast<double>();
    sums.second.row(in).head(in) += inputs.transpose();
  }
}

const std::vector<SplitSums>& FitSums::sums(const Together& together) {
  static const std::vector<SplitSums> kNothing;
  if (!any_) return kNothing;
  for (SplitSums& sums : sums_) {
    if (complete_) break;
    mirror_squares(sums.seen.second);
    mirror_squares(sums.held_out.second);
  }
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

void LayerSums::add(std::span<const FitBatch> batches) {
  const std::vector<Run> all = runs_of(batches);
  for (std::span runs(all); !runs.empty();) {
    const size_t count = std::min(runs.size(), runs_at_once(engine_, bytes_of(runs.front())));
    std::vector<Part*> parts;
    for (const Run& run : runs.first(count)) parts.push_back(&part_for(run));
    std::vector<TensorList> results(count);
    engine_.side_by_side(static_cast<int64_t>(count),
                         [&](int64_t r) { results[r] = sums_of(*parts[r], runs[r]); });
    for (size_t r = 0; r < count; ++r) {
      size_t first = 0;
      sums_.add(results[r], first, runs[r].front()->use.held_out);
    }
    runs = runs.subspan(count);
  }
}

std::vector<LayerSums::Run> LayerSums::runs_of(std::span<const FitBatch> batches) const {
  std::vector<Run> runs;
  std::map<std::pair<BatchUse, Shape>, size_t> open;
  for (const FitBatch& batch : batches) {
    if (!is_comparable(batch)) continue;
    const Shape dims = batch.input->dims();
    const bool joins = fit_.weights && rows_join(rows_, dims) && axis_of(batch.found->dims()) > 0;
    const int64_t wanted = joins ? enough_rows(columns_of(rows_, dims)) : 1;
    const auto [place, is_new] = open.try_emplace({batch.use, dims}, runs.size());
    if (is_new) runs.emplace_back();
    Run& run = runs[place->second];
    run.push_back(&batch);
    if (std::ssize(run) * rows_in(batch) >= wanted) open.erase(place);
  }
  return runs;
}

int64_t LayerSums::axis_of(const Shape& answer) const {
  return fit_.layer.output_axis + (fit_.layer.output_axis < 0 ? std::ssize(answer) : 0);
}

bool LayerSums::is_comparable(const FitBatch& batch) const {
  const Shape dims = batch.found->dims();
  const int64_t axis = axis_of(dims);
  Shape kept = batch.target->dims();
  if (!fit_.kept.empty()) kept[axis] = std::ssize(fit_.kept);
  return kept == dims && kept[axis] > 0;
}

int64_t LayerSums::rows_in(const FitBatch& batch) const {
  const Shape dims = batch.found->dims();
  const int64_t positions = element_count(dims) / std::max<int64_t>(1, dims[axis_of(dims)]);
  return std::max<int64_t>(1, positions / element_count(fit_.steps));
}

/// Returns the memory of a run: of the rows, twice, and half of the sums.
int64_t LayerSums::bytes_of(const Run& run) const {
  const int64_t columns = columns_of(rows_, run.front()->input->dims());
  const int64_t rows = std::ssize(run) * rows_in(*run.front());
  return 8 * rows * columns * groups_of_layer(fit_.node) + 2 * columns * columns;
}

TensorList LayerSums::sums_of(Part& part, const Run& run) const {
  EngineValues inputs;
  for (const FitBatch* batch : run) inputs.push_back(batch->target);
  for (const FitBatch* batch : run) inputs.push_back(batch->found);
  for (const FitBatch* batch : run) {
    if (fit_.weights) inputs.push_back(batch->input);
  }
  return on_host(part.run(inputs));
}

Part& LayerSums::part_for(const Run& run) {
  const auto& [input, target, found, use] = *run.front();
  const Shape dims = found->dims();
  const int64_t axis = axis_of(dims);
  const auto [place, is_new] =
      known_.try_emplace({use, sums_.reads_rows(), run.size(), sample_dims(input)});
  Summing& summing = place->second;
  if (!is_new) return *summing.part;
  GraphBuilder& graph = summing.builder;
  const auto joined = [&](DType dtype) { return input_in_floats(graph, dtype, run.size()); };
  const ValueId dense = joined(target->dtype());
  const ValueId own = joined(found->dtype());
  const ValueId remaining = channels_of(graph, dense, axis, fit_.kept);
  const auto in_rows = [&](ValueId answer) {
    return output_rows_of(graph, rows_, answer, dims.size(), axis, dims[axis]);
  };
  const ValueId lack = in_rows(residual(graph, remaining, own, use.rectified));
  const ValueId x =
      fit_.weights ? rows_of(graph, rows_, joined(input->dtype()), input->dims()) : kNone;
  const int64_t columns = fit_.weights ? columns_of(rows_, input->dims()) : 0;
  sums_.ask(graph, x, columns, lack, use.held_out ? in_rows(remaining) : kNone, use.held_out);
  summing.part = std::make_unique<Part>(engine_, graph.finished());
  return *summing.part;
}

}  // namespace parsimony
