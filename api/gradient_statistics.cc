#include "parsimony/api/gradient_statistics.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/pruners/layers.h"
#include "parsimony/pruners/members.h"

namespace parsimony {
namespace {

using Sums = std::vector<std::vector<double>>;  // a factor each; empty: no gradient
using Changes = PerGroup<std::vector<double>>;

/// Factors, and the channel of a group at each index of what each of them sums.
template <typename Factor>
struct Factors {
  std::vector<Factor> factors = {};
  std::vector<GroupId> groups = {};
  std::vector<std::vector<int64_t>> channels = {};

  void add(GroupId group, Factor factor, std::vector<int64_t> of_indices) {
    factors.push_back(std::move(factor));
    groups.push_back(group);
    channels.push_back(std::move(of_indices));
  }

  /// Adds sums by group and channel; empty for groups without gradients.
  Changes by_group(const Coupling& coupling, const Sums& sums) const {
    Changes changes(coupling.groups.size());
    for (size_t f = 0; f < sums.size(); ++f) {
      if (sums[f].empty()) continue;
      std::vector<double>& own = changes[groups[f]];
      const auto size = static_cast<size_t>(coupling.groups[groups[f]].size);
      own.resize(size);
      for (size_t i = 0; i < sums[f].size(); ++i) {
        const auto channel = static_cast<size_t>(channels[f][i]);
        if (channel < size) own[channel] += sums[f][i];
      }
    }
    return changes;
  }
};

std::vector<int64_t> channels_of(const Member& member, int size) {
  std::vector<int64_t> channels(static_cast<size_t>(member.size), size);
  for (int c = 0; c < size; ++c) {
    for (const int64_t i : member.of(c)) channels[static_cast<size_t>(i)] = c;
  }
  return channels;
}

/// Of the weights that produce channels.
Factors<ProcessEngine::WeightFactor> weights_of(const Graph& graph, const Coupling& coupling) {
  Factors<ProcessEngine::WeightFactor> factors;
  for (const GroupId g : coupling.groups.ids()) {
    const Group& group = coupling.groups[g];
    std::set<WeightId> known;
    for (const Member* member : members_of(graph, group, Which::kProducing)) {
      const WeightId weight = graph.value(member->value).weight;
      if (!is_floating(graph.weight(weight).dtype) || !known.insert(weight).second) continue;
      factors.add(g, {graph.weight(weight).name, member->axis}, channels_of(*member, group.size));
    }
  }
  return factors;
}

/// Of the operands by which layers read channels.
Factors<ProcessEngine::Factor> gates_of(const Graph& graph, const Coupling& coupling) {
  Factors<ProcessEngine::Factor> factors;
  for (Site& site : sites_of(graph, coupling)) {
    factors.add(site.group,
                {.value = site.value, .reader = site.reader, .input = site.input, .dim = site.dim},
                std::move(site.channels));
  }
  return factors;
}

double square(double x) { return x * x; }

/// Sums, over runs, of a function of the changes, by group and channel.
class Means {
 public:
  explicit Means(const Coupling& coupling) : sums_(coupling.groups.size()) {}

  void add(const Changes& changes, double (*function)(double)) {
    for (const GroupId g : sums_.ids()) {
      if (changes[g].empty()) continue;
      sums_[g].resize(changes[g].size());
      for (size_t c = 0; c < sums_[g].size(); ++c) sums_[g][c] += function(changes[g][c]);
    }
  }

  Changes over(double runs) {
    for (std::vector<double>& sums : sums_) {
      for (double& sum : sums) sum /= runs;
    }
    return std::move(sums_);
  }

 private:
  Changes sums_;
};

}  // namespace

void add_gradients(ProcessEngine& process, const Graph& graph, const Coupling& coupling,
                   const Needs& needs, Statistics& statistics) {
  const auto asks = [&](Measure measure) { return needs.channels.contains(measure); };
  const auto batches = std::ssize(process.batches());
  if (asks(Measure::kTaylor) || asks(Measure::kTaylorSquared)) {
    const auto weights = weights_of(graph, coupling);
    Means magnitude(coupling);
    Means squares(coupling);
    for (int64_t b = 0; b < batches; ++b) {
      const Changes changes = weights.by_group(
          coupling, process.gradients(b, ProcessEngine::Over::kBatch, weights.factors));
      magnitude.add(changes, [](double x) { return std::abs(x); });
      squares.add(changes, square);
    }
    const auto runs = static_cast<double>(batches);
    if (asks(Measure::kTaylor)) statistics.channels[Measure::kTaylor] = magnitude.over(runs);
    if (asks(Measure::kTaylorSquared)) {
      statistics.channels[Measure::kTaylorSquared] = squares.over(runs);
    }
  }
  if (asks(Measure::kHessian)) {
    const auto weights = weights_of(graph, coupling);
    Means halves(coupling);
    double samples = 0;
    for (int64_t b = 0; b < batches; ++b) {
      const auto count = static_cast<double>(process.batches()[static_cast<size_t>(b)]);
      Changes changes = weights.by_group(
          coupling, process.gradients(b, ProcessEngine::Over::kSamples, weights.factors));
      for (std::vector<double>& own : changes) {
        for (double& x : own) x *= count / 2;
      }
      halves.add(changes, [](double x) { return x; });
      samples += count;
    }
    statistics.channels[Measure::kHessian] = halves.over(samples);
  }
  if (!asks(Measure::kFisher)) return;
  if (process.batch(1) != 1) {
    throw UnsupportedError("the network runs ", process.batch(1),
                           " samples at once, and the criterion takes one at a time");
  }
  const auto gates = gates_of(graph, coupling);
  const std::unique_ptr<Network> network = process.open(graph, {});
  Means squares(coupling);
  for (int64_t i = 0; i < process.samples(); ++i) {
    squares.add(gates.by_group(coupling, process.gradients(*network, i, 1, gates.factors)), square);
  }
  statistics.channels[Measure::kFisher] = squares.over(static_cast<double>(process.samples()));
}

}  // namespace parsimony
