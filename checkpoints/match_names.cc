#include <map>

#include "parsimony/checkpoints/matching_impl.h"

namespace parsimony::checkpoints {
namespace {

constexpr int kMostDropped = 3;  // components of an exported name that a checkpoint lacks

std::string without_components(const std::string& name, int count) {
  size_t at = 0;
  for (; count > 0; --count) {
    at = name.find('.', at);
    if (at == std::string::npos) return {};
    ++at;
  }
  return name.substr(at);
}

struct Named {
  WeightId weight;
  TensorId tensor;
};

/// Weights whose names, after `dropped` components, end tensors of their shape.
std::map<std::string, std::vector<Named>> named_under(const Matching& matching, int dropped) {
  std::map<std::string, std::vector<Named>> by_prefix;
  for (const WeightId id : matching.graph.weights.ids()) {
    const Weight& weight = matching.graph.weight(id);
    for (const auto& [prefix, tensor] :
         matching.ending_in(without_components(weight.name, dropped))) {
      if (matching.tensor(tensor).dims == weight.dims) by_prefix[prefix].push_back({id, tensor});
    }
  }
  return by_prefix;
}

}  // namespace

void match_names(Matching& matching) {
  std::string best_prefix;
  std::vector<Named> best;
  for (int dropped = 0; dropped <= kMostDropped; ++dropped) {
    for (auto& [prefix, named] : named_under(matching, dropped)) {
      if (named.size() <= best.size()) continue;
      best = std::move(named);
      best_prefix = prefix;
    }
  }
  for (const auto& [weight, tensor] : best) {
    matching.add(weight, MatchKind::kName, matching.full[tensor].substr(best_prefix.size()),
                 same_axes(matching.graph.weight(weight).dims.size()));
  }
}

void explain_unmatched(Matching& matching) {
  for (const WeightId id : matching.graph.weights.ids()) {
    const std::string& name = matching.graph.weight(id).name;
    for (int dropped = 0; dropped <= kMostDropped && !matching.is_matched(id); ++dropped) {
      if (matching.match.unmatched.contains(name)) break;
      note_shape(matching, id, without_components(name, dropped));
    }
  }
}

}  // namespace parsimony::checkpoints
