#include "parsimony/checkpoints/match.h"

#include <algorithm>
#include <array>
#include <map>

#include "parsimony/base/errors.h"
#include "parsimony/checkpoints/matching_impl.h"
#include "parsimony/graph/trained_weights.h"

namespace parsimony {
namespace {

using checkpoints::Matching;

/// Leaves out what is not in the copies after all.
void drop_incomplete(Matching& matching) {
  std::erase_if(matching.match.weights, [&](const WeightMatch& found) {
    const bool is_there = !matching.match.copies.empty() &&
                          matching.in_copy(0, found.targets.front().name) != TensorId();
    if (!is_there) {
      matching.match.unmatched[found.weight] = "the checkpoint's copy of the network has none";
    }
    return !is_there;
  });
}

void note_equal_copies(Matching& matching) {
  std::vector<NetworkCopy>& copies = matching.match.copies;
  for (size_t copy = 0; copy < copies.size(); ++copy) {
    copies[copy].equal = std::ranges::all_of(matching.match.weights, [&](const WeightMatch& found) {
      if (copy == 0) return found.equal;
      const TensorId first = matching.in_copy(0, found.targets.front().name);
      const TensorId here = matching.in_copy(copy, found.targets.front().name);
      return here != TensorId() && std::ranges::equal(matching.checkpoint.values(first).bytes(),
                                                      matching.checkpoint.values(here).bytes());
    });
    if (copy > 0) copies[copy].equal &= copies.front().equal;
  }
}

void note_order(Matching& matching) {
  const auto* source = dynamic_cast<const ParameterSource*>(matching.graph.source.get());
  if (source == nullptr) return;
  std::map<std::string, std::string> stored;
  for (const WeightMatch& found : matching.match.weights) {
    stored.emplace(found.weight, found.targets.front().name);
  }
  for (const std::string& parameter : source->parameters()) {
    const auto found = stored.find(parameter);
    matching.match.order.push_back(found == stored.end() ? parameter : found->second);
  }
}

}  // namespace

std::string_view name_of(MatchKind kind) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"name", "elements", "elements, transposed", "folded normalisation", "elements, composed",
       "path of the node", "beside its matrix"});
  return kNames[static_cast<size_t>(kind)];
}

void check_has_copy(const CheckpointMatch& match) {
  if (!match.copies.empty()) return;
  const auto first = match.unmatched.begin();
  throw ModelError(
      "the checkpoint holds no copy of the network: no tensor has the name and shape, or the "
      "elements, of a weight",
      first == match.unmatched.end() ? "" : "; " + first->first + ": " + first->second,
      ". `parsimony inspect` lists what it holds");
}

CheckpointMatch match_checkpoint(const Graph& graph, const Checkpoint& checkpoint) {
  Matching matching(graph, checkpoint);
  match_names(matching);
  matching.find_copies();
  match_matrices(matching);
  matching.find_copies();  // matrices may be all that is found
  match_beside(matching);
  match_vectors(matching);
  drop_incomplete(matching);
  match_dependents(matching);
  explain_unmatched(matching);
  note_equal_copies(matching);
  note_order(matching);
  return std::move(matching.match);
}

}  // namespace parsimony

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
