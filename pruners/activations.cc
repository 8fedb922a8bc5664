#include "parsimony/pruners/activations.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

namespace parsimony {
namespace {

/// A tensor around one of its dimensions: [outer, size, inner].
struct Around {
  int64_t outer = 1;
  int64_t size = 1;
  int64_t inner = 1;

  Around(const Shape& dims, int dim) : size(dims[dim]) {
    for (int d = 0; d < dim; ++d) outer *= dims[d];
    for (size_t d = dim + 1; d < dims.size(); ++d) inner *= dims[d];
  }
};

/// The singular values of a map [h, w] that are not zero.
int rank_of(const float* map, int64_t h, int64_t w) {
  using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::MatrixXd x = Eigen::Map<const RowMajor>(map, h, w).cast<double>();
  // Their squares, in double, are more exact than they themselves in the map's own precision.
  const Eigen::MatrixXd products =
      h < w ? Eigen::MatrixXd(x * x.transpose()) : Eigen::MatrixXd(x.transpose() * x);
  const Eigen::VectorXd squares =
      Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(products, Eigen::EigenvaluesOnly)
          .eigenvalues();
  const double tolerance =
      static_cast<double>(std::max(h, w)) * std::numeric_limits<float>::epsilon();
  return static_cast<int>((squares.array() > squares.maxCoeff() * tolerance * tolerance).count());
}

bool is_map(const Facts& facts, ValueId value) {
  const auto& shape = facts.shapes[value];
  return shape && shape->size() == 4 && (*shape)[2] * (*shape)[3] > 1;
}

/// The nearest value before `site`'s in which the group's channels are maps [n, c, h, w].
Site where_it_is_a_map(const Graph& graph, const Facts& facts, const Coupling& coupling,
                       const Site& site) {
  ValueId value = site.value;
  const auto own_dim = [&](ValueId v) { return dim_of_group(coupling, v, site.group); };
  while (value != kNone && !is_map(facts, value)) {
    const NodeId producer = graph.value(value).producer;
    value = kNone;
    if (producer == kNone) break;
    for (const ValueId input : graph.node(producer).inputs) {
      if (input == kNone || graph.value(input).weight != kNone || own_dim(input) == kNone) continue;
      value = input;
      break;
    }
  }
  if (value == kNone || own_dim(value) != 1) return site;
  return {site.group, kNone, 0, value, 1, channels_along(coupling, value, 1, site.group)};
}

}  // namespace

ActivationSums::ActivationSums(const Graph& graph, const Facts& facts, const Coupling& coupling,
                               const std::vector<Site>& sites, std::set<Measure> requested)
    : requested_(std::move(requested)), sums_(coupling.groups.size()) {
  const auto insert = [](std::map<ValueId, std::vector<View>>& views, const Site& site) {
    std::vector<View>& known = views[site.value];
    const auto same = [&](const View& v) { return v.group == site.group && v.dim == site.dim; };
    if (std::any_of(known.begin(), known.end(), same)) return;
    known.push_back({site.group, site.dim, site.channels});
  };
  for (const GroupId g : sums_.ids()) {
    const size_t size = coupling.groups[g].size;
    Sums& sums = sums_[g];
    for (auto* list :
         {&sums.count, &sums.zeros, &sums.sum, &sums.squares, &sums.maps, &sums.rank}) {
      list->resize(size);
    }
  }
  const bool ranks = requested_.contains(Measure::kRank);
  const bool sums = std::ranges::any_of(
      std::to_array({Measure::kZeroShare, Measure::kMeanActivation, Measure::kActivationNorm}),
      [&](Measure measure) { return requested_.contains(measure); });
  for (const Site& site : sites) {
    if (sums) insert(views_, site);
    if (ranks) insert(maps_, where_it_is_a_map(graph, facts, coupling, site));
  }
}

std::vector<ValueId> ActivationSums::values() const {
  std::set<ValueId> all;
  for (const auto* views : {&views_, &maps_}) {
    for (const auto& [value, list] : *views) all.insert(value);
  }
  return {all.begin(), all.end()};
}

void ActivationSums::see(ValueId value, const Activation& x) {
  const auto visit = [&](const std::map<ValueId, std::vector<View>>& views, auto add) {
    const auto found = views.find(value);
    if (found == views.end()) return;
    for (const View& view : found->second) add(view);
  };
  visit(views_, [&](const View& view) { this->add(view, x); });
  visit(maps_, [&](const View& view) { add_rank(view, x); });
}

void ActivationSums::add(const View& view, const Activation& x) {
  Sums& sums = sums_[view.group];
  const Around around(x.dims, view.dim);
  const bool zeros = requested_.contains(Measure::kZeroShare);
  const bool sum = requested_.contains(Measure::kMeanActivation);
  const bool squares = requested_.contains(Measure::kActivationNorm);
  for (int64_t o = 0; o < around.outer; ++o) {
    for (int64_t i = 0; i < around.size; ++i) {
      const int64_t channel = view.channels[i];
      if (channel >= std::ssize(sums.count)) continue;
      const float* run = x.data + (o * around.size + i) * around.inner;
      const std::span<const float> values(run, around.inner);
      sums.count[channel] += static_cast<double>(around.inner);
      if (zeros) sums.zeros[channel] += static_cast<double>(std::ranges::count(values, 0.0F));
      if (sum) sums.sum[channel] += std::accumulate(values.begin(), values.end(), 0.0);
      if (!squares) continue;
      double own = 0;
      for (const float v : values) own += static_cast<double>(v) * v;
      sums.squares[channel] += own;
    }
  }
}

void ActivationSums::add_rank(const View& view, const Activation& x) {
  Sums& sums = sums_[view.group];
  const Around around(x.dims, view.dim);
  const bool maps = x.dims.size() == 4 && view.dim == 1;
  const int64_t samples = view.dim == 0 ? 1 : x.dims[0];
  if (samples == 0) return;
  const int64_t runs = around.outer / samples;  // of a sample's channel
  for (int64_t n = 0; n < samples; ++n) {
    for (int64_t i = 0; i < around.size; ++i) {
      const int64_t channel = view.channels[i];
      if (channel >= std::ssize(sums.maps)) continue;
      sums.maps[channel] += 1;
      const auto run = [&](int64_t r) {
        return x.data + ((n * runs + r) * around.size + i) * around.inner;
      };
      if (maps) {
        sums.rank[channel] += rank_of(run(0), x.dims[2], x.dims[3]);
        continue;
      }
      bool any = false;
      for (int64_t r = 0; r < runs && !any; ++r) {
        any = std::any_of(run(r), run(r) + around.inner, [](float v) { return v != 0; });
      }
      sums.rank[channel] += any ? 1 : 0;
    }
  }
}

void ActivationSums::finish(Statistics& statistics) const {
  const auto write = [&](Measure measure, auto of) {
    if (!requested_.contains(measure)) return;
    auto& groups = statistics.channels[measure];
    groups.assign(sums_.size(), {});
    for (const GroupId g : sums_.ids()) {
      const Sums& sums = sums_[g];
      const auto& reached = measure == Measure::kRank ? sums.maps : sums.count;
      if (std::any_of(reached.begin(), reached.end(), [](double n) { return n == 0; })) continue;
      for (size_t c = 0; c < reached.size(); ++c) groups[g].push_back(of(sums, c));
    }
  };
  const auto samples = static_cast<double>(std::max<int64_t>(1, samples_));
  write(Measure::kZeroShare, [](const Sums& s, size_t c) { return s.zeros[c] / s.count[c]; });
  write(Measure::kMeanActivation, [](const Sums& s, size_t c) { return s.sum[c] / s.count[c]; });
  write(Measure::kActivationNorm,
        [&](const Sums& s, size_t c) { return std::sqrt(s.squares[c] / samples); });
  write(Measure::kRank, [](const Sums& s, size_t c) { return s.rank[c] / s.maps[c]; });
}

int64_t ActivationSums::bytes() const {
  size_t numbers = 0;
  for (const Sums& s : sums_) {
    numbers += s.count.size() + s.zeros.size() + s.sum.size() + s.squares.size() + s.maps.size() +
               s.rank.size();
  }
  for (const auto* views : {&views_, &maps_}) {
    for (const auto& [value, list] : *views) {
      for (const View& view : list) numbers += view.channels.size();
    }
  }
  return static_cast<int64_t>(numbers * sizeof(double));
}

}  // namespace parsimony
