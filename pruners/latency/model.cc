#include "parsimony/pruners/latency/model.h"

#include <algorithm>
#include <utility>

#include "parsimony/base/ranges.h"

namespace parsimony {

LatencyModel::LatencyModel(const Coupling& coupling, std::span<const Subgraph> subgraphs,
                           const LatencyTables& tables)
    : of_group_(coupling.groups.size()) {
  std::map<std::pair<std::string, std::vector<DimClassId>>, size_t> known;
  for (const Subgraph& subgraph : subgraphs) {
    const auto table = tables.find(subgraph.key);
    if (table == tables.end()) continue;
    const auto [it, fresh] = known.try_emplace({subgraph.key, subgraph.dim_classes}, terms_.size());
    if (!fresh) {
      terms_[it->second].times += 1;
      continue;
    }
    Term term{table->second, {}, 1};
    for (const DimClassId dim_class : subgraph.dim_classes) {
      Width width;
      std::map<GroupId, double> counts;
      for (const ChannelId& channel : coupling.channels(dim_class)) {
        if (channel.group == kNone) {
          width.pinned += 1;
        } else {
          counts[channel.group] += 1;
        }
      }
      for (const auto& [group, count] : counts) {
        width.groups.emplace_back(group, count / coupling.groups[group].size);
        auto& uses = of_group_[group];
        if (uses.empty() || uses.back() != terms_.size()) uses.push_back(terms_.size());
      }
      term.widths.push_back(std::move(width));
    }
    terms_.push_back(std::move(term));
  }
}

double LatencyModel::width_of(const Width& width, const Kept& kept) {
  double sum = width.pinned;
  for (const auto& [group, each] : width.groups) sum += each * kept.of(group);
  return sum;
}

double LatencyModel::seconds_of(const Term& term, const Kept& kept) {
  const double x = term.widths.empty() ? 1 : width_of(term.widths[0], kept);
  const double y = term.widths.size() < 2 ? 1 : width_of(term.widths[1], kept);
  return term.times * term.table.at(x, y);
}

double LatencyModel::seconds(const PerGroup<int>& kept) const {
  double sum = 0;
  for (const Term& term : terms_) sum += seconds_of(term, {kept});
  return sum;
}

double LatencyModel::change(const PerGroup<int>& kept, std::span<const GroupId> groups,
                            int count) const {
  const auto touched = [&](size_t t, size_t before) {
    return std::ranges::any_of(groups.first(before),
                               [&](GroupId g) { return contains(of_group_[g], t); });
  };
  double sum = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const size_t t : of_group_[groups[g]]) {
      if (touched(t, g)) continue;
      sum += seconds_of(terms_[t], {kept, groups, count}) - seconds_of(terms_[t], {kept});
    }
  }
  return sum;
}

}  // namespace parsimony
