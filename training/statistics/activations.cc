#include "parsimony/training/statistics/activations.h"

#include <algorithm>
#include <cmath>

#include "parsimony/training/statistics/scatter_impl.h"

namespace parsimony::training {
namespace {

/// Adds to each channel what its indices have.
void scatter(const at::Tensor& channels, const at::Tensor& values, std::vector<double>& sums) {
  const at::Tensor own = values.contiguous();
  const double* from = own.data_ptr<double>();
  const int64_t* channel = channels.data_ptr<int64_t>();
  for (int64_t i = 0; i < own.numel(); ++i) {
    if (channel[i] < static_cast<int64_t>(sums.size())) {
      sums[channel[i]] += from[i];
    }
  }
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
                               const std::vector<Site>& sites, std::set<Measure> wanted)
    : wanted_(std::move(wanted)), sums_(coupling.groups.size()) {
  const auto insert = [](std::map<ValueId, std::vector<View>>& views, const Site& site) {
    std::vector<View>& known = views[site.value];
    const auto same = [&](const View& v) { return v.group == site.group && v.dim == site.dim; };
    if (std::any_of(known.begin(), known.end(), same)) return;
    known.push_back({site.group, site.dim, at::tensor(site.channels, at::kLong)});
  };
  for (const GroupId g : sums_.ids()) {
    const size_t size = coupling.groups[g].size;
    Sums& sums = sums_[g];
    for (auto* list :
         {&sums.count, &sums.zeros, &sums.sum, &sums.squares, &sums.maps, &sums.rank}) {
      list->resize(size);
    }
  }
  const bool ranks = wanted_.contains(Measure::kRank);
  for (const Site& site : sites) {
    if (wanted_.size() > (ranks ? 1 : 0)) insert(views_, site);
    if (ranks) insert(maps_, where_it_is_a_map(graph, facts, coupling, site));
  }
}

void ActivationSums::see(ValueId value, const at::Tensor& x) {
  const auto visit = [&](const std::map<ValueId, std::vector<View>>& views, auto add) {
    const auto found = views.find(value);
    if (found == views.end()) return;
    for (const View& view : found->second) add(view);
  };
  visit(views_, [&](const View& view) { this->add(view, x); });
  visit(maps_, [&](const View& view) { add_rank(view, x); });
}

void ActivationSums::add(const View& view, const at::Tensor& x) {
  Sums& sums = sums_[view.group];
  const double each = static_cast<double>(x.numel()) / static_cast<double>(x.size(view.dim));
  scatter(view.channels, at::full_like(view.channels, each, at::kDouble), sums.count);
  if (wanted_.contains(Measure::kZeroShare)) {
    scatter(view.channels, sum_but(x.eq(0), view.dim), sums.zeros);
  }
  if (wanted_.contains(Measure::kMeanActivation)) {
    scatter(view.channels, sum_but(x, view.dim), sums.sum);
  }
  if (wanted_.contains(Measure::kActivationNorm)) {
    scatter(view.channels, sum_but(x.to(at::kDouble).square(), view.dim), sums.squares);
  }
}

void ActivationSums::add_rank(const View& view, const at::Tensor& x) {
  Sums& sums = sums_[view.group];
  at::Tensor rank;  // [n, c]
  if (x.dim() == 4 && view.dim == 1) {
    const c10::optional<double> usual;
    rank = at::linalg_matrix_rank(x.to(at::kFloat), usual, usual);
  } else {
    const at::Tensor rows = x.movedim(view.dim, -1).reshape({x.size(0), -1, x.size(view.dim)});
    rank = view.dim == 0 ? x.reshape({1, x.size(0), -1}).ne(0).any(2) : rows.ne(0).any(1);
  }
  const auto each = static_cast<double>(rank.size(0));
  scatter(view.channels, at::full_like(view.channels, each, at::kDouble), sums.maps);
  scatter(view.channels, at::sum(rank, {0}, false, at::kDouble), sums.rank);
}

void ActivationSums::finish(Statistics& statistics) const {
  const auto write = [&](Measure measure, auto of) {
    if (!wanted_.contains(measure)) return;
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
      for (const View& view : list) numbers += view.channels.numel();
    }
  }
  return static_cast<int64_t>(numbers * sizeof(double));
}

}  // namespace parsimony::training
