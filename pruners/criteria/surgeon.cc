#include "parsimony/pruners/criteria/surgeon.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <numeric>
#include <utility>

#include "parsimony/masks/magnitude.h"
#include "parsimony/pruners/criteria/criteria.h"
#include "parsimony/pruners/elements/contraction.h"
#include "parsimony/pruners/elements/elements.h"
#include "parsimony/pruners/errors.h"
#include "parsimony/pruners/layers.h"
#include "parsimony/pruners/members.h"

namespace parsimony::criteria {
namespace {

using Eigen::MatrixXd;

// Relative to the mean of the inputs' squares; what least squares takes where nothing is held out.
constexpr double kRidge = 1e-3;
constexpr int kMostRounds = 256;
// In larger matrices the first columns of all channels, the second and so on, such as the positions
// of a kernel or of a flattened map, are taken as matrices of their own.
constexpr int64_t kMostColumns = 2048;
// Moments of larger ones are not measured.
constexpr int64_t kMostMeasured = 8192;

/// One matrix while channels are removed.
class Reading {
 public:
  Reading(ReadingMatrix matrix, double ridge)
      : gram_(std::move(matrix.gram)), columns_(std::move(matrix.columns)) {
    MatrixXd& second = matrix.second;
    whole_ = gram_.cwiseProduct(second).sum();
    const double mean = second.diagonal().mean();
    if (whole_ <= 0 || mean <= 0) return;
    second.diagonal().array() += ridge * mean;
    const Eigen::LLT<MatrixXd> factor(second);
    if (factor.info() != Eigen::Success) return;
    inverse_ = factor.solve(MatrixXd::Identity(second.rows(), second.cols()));
  }

  /// Returns whether it gives anything that could be lost.
  bool counts() const { return inverse_.size() > 0; }

  double loss_of(int channel) const {
    const std::vector<int64_t>& own = columns_[channel];
    if (own.size() == 1) return gram_(own[0], own[0]) / inverse_(own[0], own[0]) / whole_;
    const MatrixXd inner = inverse_(own, own);
    return inner.ldlt().solve(MatrixXd(gram_(own, own))).trace() / whole_;
  }

  /// Returns what that costs.
  double remove(const std::vector<int>& channels) {
    std::vector<int64_t> gone;
    for (const int c : channels) gone.insert(gone.end(), columns_[c].begin(), columns_[c].end());
    const MatrixXd rows = inverse_(gone, Eigen::all);
    const Eigen::LDLT<MatrixXd> inner(rows(Eigen::all, gone));
    const MatrixXd taken = inner.solve(rows);
    inverse_.noalias() -= rows.transpose() * taken;
    const MatrixXd read = gram_(gone, Eigen::all);
    const MatrixXd own = read(Eigen::all, gone);
    MatrixXd rest = read;
    rest.noalias() -= own * taken;
    gram_.noalias() -= read.transpose() * taken;
    gram_.noalias() -= taken.transpose() * rest;
    for (const int c : channels) columns_[c].clear();
    removed_ += std::ssize(gone);
    if (removed_ * 4 > inverse_.rows()) drop_removed();
    return inner.solve(own).trace() / whole_;
  }

 private:
  /// Drops the rows and columns of removed channels.
  void drop_removed() {
    std::vector<int64_t> left;
    for (std::vector<int64_t>& own : columns_) {
      for (int64_t& column : own) {
        left.push_back(column);
        column = std::ssize(left) - 1;
      }
    }
    inverse_ = MatrixXd(inverse_(left, left));
    gram_ = MatrixXd(gram_(left, left));
    removed_ = 0;
  }

  MatrixXd inverse_;  ///< H⁻¹
  MatrixXd gram_;     ///< of the fitted matrix
  std::vector<std::vector<int64_t>> columns_;
  double whole_ = 0;  ///< ‖W X‖²
  int64_t removed_ = 0;
};

/// A matrix of a layer that reads channels of a group.
struct Place {
  const Weight* weight = nullptr;
  const Member* member = nullptr;
  elements::Contraction contraction;
};

/// Returns the layer that multiplies with what `reader` reads of a weight, which may be transposed
/// or copied in between.
NodeId layer_after(const Graph& graph, NodeId reader) {
  constexpr int kMostSteps = 4;
  for (int step = 0; step < kMostSteps; ++step) {
    const Node& node = graph.node(reader);
    if (!has_trait(node, kPermutes) && !has_trait(node, kCopies)) return reader;
    const std::vector<Use>& uses = graph.value(node.outputs.front()).uses;
    if (uses.empty()) return reader;
    reader = uses.front().node;
  }
  return reader;
}

std::vector<Place> places_of(const Graph& graph, const Group& group) {
  std::vector<Place> places;
  for (const Member* member : members_of(graph, group, Which::kConsuming)) {
    if (member->node == kNone) continue;
    const Weight& weight = graph.weight_of(member->value);
    const NodeId layer = layer_after(graph, member->node);
    auto contraction = elements::contraction_of(graph, layer, member->value);
    if (!contraction || contraction->input != member->axis || !is_floating(weight.dtype)) continue;
    places.push_back({&weight, member, *std::move(contraction)});
  }
  return places;
}

/// Takes the columns of equal number in their channels for matrices of their own, and adds them up.
MatrixXd folded(const MatrixXd& whole, const std::vector<std::vector<int64_t>>& of_channels) {
  const auto channels = std::ssize(of_channels);
  MatrixXd sum = MatrixXd::Zero(channels, channels);
  for (size_t k = 0; k < of_channels.front().size(); ++k) {
    std::vector<int64_t> here;
    for (const std::vector<int64_t>& own : of_channels) here.push_back(own[k]);
    sum += whole(here, here);
  }
  return sum;
}

/// The number of columns that a layer multiplies by them.
int64_t columns_of(const Place& place) {
  int64_t columns = place.weight->dims[place.contraction.input];
  for (const int axis : place.contraction.kernel) columns *= place.weight->dims[axis];
  return columns;
}

/// Σ x xᵀ of what one group of a layer reads: about the mean where the layer has a constant.
MatrixXd second_of(const InputMoments& moments, int64_t group, int64_t columns) {
  MatrixXd second = moments.second.middleCols(group * columns, columns);
  if (moments.sum.size() > 0) {
    const Eigen::VectorXd sum = moments.sum.segment(group * columns, columns);
    second -= sum * sum.transpose() / static_cast<double>(moments.rows);
  }
  return second;
}

void add_matrices(const Place& place, const Group& group, const InputMoments& moments,
                  std::vector<ReadingMatrix>& matrices) {
  const elements::View view = elements::make_view(*place.weight, place.contraction, {});
  const int64_t columns = view.places;
  elements::check_moments(*place.weight, view, moments.second);
  const std::vector<double> numbers = to_host(*place.weight).floats;
  const int64_t positions = columns / place.weight->dims[place.contraction.input];
  std::vector<std::vector<int64_t>> of_channels;
  for (int c = 0; c < group.size; ++c) {
    std::vector<int64_t>& own = of_channels.emplace_back();
    for (const int64_t input : place.member->of(c)) {
      for (int64_t p = 0; p < positions; ++p) own.push_back(input * positions + p);
    }
  }
  const size_t each = of_channels.front().size();
  const auto is_as_wide = [&](const std::vector<int64_t>& own) { return own.size() == each; };
  const bool folds =
      columns > kMostColumns && each > 1 && std::ranges::all_of(of_channels, is_as_wide);
  for (int64_t g = 0; g < view.groups(); ++g) {
    const elements::Matrix weights = elements::gather(view, g, numbers);
    ReadingMatrix matrix{weights.transpose() * weights, second_of(moments, g, columns),
                         of_channels};
    if (folds) {
      matrix.gram = folded(matrix.gram, of_channels);
      matrix.second = folded(matrix.second, of_channels);
      for (size_t c = 0; c < of_channels.size(); ++c) {
        matrix.columns[c] = {static_cast<int64_t>(c)};
      }
    }
    matrices.push_back(std::move(matrix));
  }
}

}  // namespace

std::vector<double> removal_losses(std::vector<ReadingMatrix> matrices, int channels,
                                   double ridge) {
  std::vector<Reading> readings;
  for (ReadingMatrix& matrix : matrices) {
    Reading reading(std::move(matrix), ridge);
    if (reading.counts()) readings.push_back(std::move(reading));
  }
  if (readings.empty()) return {};
  std::vector<int> left(channels);
  std::iota(left.begin(), left.end(), 0);
  std::vector<double> result(channels);
  std::vector<double> loss(channels);
  const int at_once = (channels + kMostRounds - 1) / kMostRounds;
  double before = 0;
  while (!left.empty()) {
    for (const int c : left) {
      loss[c] = 0;
      for (const Reading& reading : readings) loss[c] += reading.loss_of(c);
    }
    const auto count = std::min<std::ptrdiff_t>(at_once, std::ssize(left));
    std::ranges::partial_sort(left, left.begin() + count, [&](int a, int b) {
      return std::pair(loss[a], a) < std::pair(loss[b], b);
    });
    const std::vector<int> gone(left.begin(), left.begin() + count);
    left.erase(left.begin(), left.begin() + count);
    double lost = 0;
    for (Reading& reading : readings) lost += reading.remove(gone);
    for (size_t i = 0; i < gone.size(); ++i) {
      result[gone[i]] = before + lost * static_cast<double>(i + 1) / static_cast<double>(count);
    }
    before += lost;
  }
  return result;
}

std::vector<std::string> surgeon_matrices(const Graph& graph, const Group& group) {
  std::vector<std::string> names;
  for (const Place& place : places_of(graph, group)) {
    if (columns_of(place) <= kMostMeasured) names.push_back(place.weight->name);
  }
  return names;
}

Scores obs(const Graph& graph, const Group& group, const CriterionOptions& options) {
  if (options.statistics == nullptr) throw errors::needs_data("obs");
  std::vector<ReadingMatrix> matrices;
  for (const Place& place : places_of(graph, group)) {
    const auto moments = options.statistics->inputs.find(place.weight->name);
    if (moments == options.statistics->inputs.end()) continue;
    add_matrices(place, group, moments->second, matrices);
  }
  Scores losses = removal_losses(std::move(matrices), group.size, kRidge);
  return losses.empty() ? wanda(graph, group, options) : losses;
}

}  // namespace parsimony::criteria
