#include <algorithm>
#include <map>

#include "parsimony/base/errors.h"
#include "parsimony/checkpoints/matching_impl.h"
#include "parsimony/graph/graph.h"

namespace parsimony::checkpoints {
namespace {

struct Fitting {
  MatchKind kind = MatchKind::kValue;
  std::vector<int> axes;
};

using FittingByName = std::map<std::string, Fitting>;  ///< by the name within a copy

std::vector<int> exchanged_axes(const Shape& weight, const Shape& tensor) {
  const bool fits =
      weight.size() == 2 && tensor.size() == 2 && tensor[0] == weight[1] && tensor[1] == weight[0];
  return fits ? std::vector<int>{1, 0} : std::vector<int>();
}

std::optional<Fitting> fit_composed(const Matching& matching, WeightId id, TensorId tensor) {
  const Weight& weight = matching.graph.weight(id);
  const Shape& dims = matching.tensor(tensor).dims;
  const std::vector<int> same = same_axes(dims.size());
  const std::vector<int> exchanged = exchanged_axes(weight.dims, dims);
  const Composition composition =
      matching.composition(id, tensor, dims == weight.dims ? same : exchanged);
  if (composition.is_plain()) return std::nullopt;
  const Numbers numbers = composed(composition, matching.checkpoint);
  if (dims == weight.dims && nearly_equal(numbers, weight)) {
    return Fitting{MatchKind::kComposed, same};
  }
  if (!exchanged.empty() && nearly_equal(transposed(numbers, dims), weight)) {
    return Fitting{MatchKind::kComposed, exchanged};
  }
  return std::nullopt;
}

std::optional<Fitting> fit(const Matching& matching, WeightId id, TensorId tensor) {
  const Weight& weight = matching.graph.weight(id);
  const StoredValues values = matching.checkpoint.values(tensor);
  const Weight found = as_weight(matching.tensor(tensor), values);
  const auto& form = matching.uses[id].form;
  if (found.dims == weight.dims) {
    const std::vector<int> same = same_axes(weight.dims.size());
    if (equal_numbers(found, weight)) return Fitting{MatchKind::kValue, same};
    const bool is_folded = form && !factors_between(weight, found, form->out_axis).empty();
    if (is_folded && matching.composition(id, tensor, same).is_plain()) {
      return Fitting{MatchKind::kFolded, same};
    }
  }
  std::vector<int> exchanged = exchanged_axes(weight.dims, found.dims);
  if (!exchanged.empty() && equal_transposed(weight, found)) {
    return Fitting{MatchKind::kTransposed, std::move(exchanged)};
  }
  if (found.dims != weight.dims && exchanged.empty()) return std::nullopt;
  return fit_composed(matching, id, tensor);
}

/// Does the bias of the layer contradict the tensor beside the one that fits its matrix?
bool has_other_bias(const Matching& matching, WeightId matrix, TensorId tensor) {
  const WeightId bias = matching.uses[matrix].bias;
  const TensorId stored =
      matching.names.find(beside(matching.dependents.weight_of(tensor), "bias"));
  if (bias == WeightId() || stored == TensorId() || !matching.has_numbers(stored)) return false;
  const Weight& weight = matching.graph.weight(bias);
  if (matching.tensor(stored).dims != weight.dims) return true;
  return weight.data != nullptr && numbers_of(weight) != matching.numbers(stored);
}

/// The name that the path of the node suggests.
std::string hint_of(const Matching& matching, WeightId id) {
  const NodeId node = matching.uses[id].node;
  if (node == NodeId()) return {};
  const std::string module = module_of_node_name(matching.graph.node(node).name);
  return module.empty() ? "" : module + ".weight";
}

/// The tensor beside the one that is the layer's bias; empty if that is not known.
std::string beside_bias(const Matching& matching, WeightId matrix) {
  const WeightId bias = matching.uses[matrix].bias;
  const WeightMatch* known = bias == WeightId() ? nullptr : matching.match_of(bias);
  return known == nullptr ? "" : beside(known->targets.front().name, "weight");
}

/// Narrows several tensors that fit down to those that their surroundings tell apart.
void narrow(const Matching& matching, WeightId id, FittingByName& fitting,
            const std::map<std::string, TensorId>& tensors) {
  for (const std::string& name : {beside_bias(matching, id), hint_of(matching, id)}) {
    if (fitting.size() > 1 && fitting.contains(name)) fitting = {{name, fitting.at(name)}};
  }
  if (fitting.size() < 2) return;
  FittingByName left = fitting;
  std::erase_if(
      left, [&](const auto& item) { return has_other_bias(matching, id, tensors.at(item.first)); });
  if (!left.empty()) fitting = std::move(left);
}

/// The tensors that a weight's elements fit, those of one name in several copies once: of those
/// that are free, or of those that other weights have.
FittingByName fitting_matrices(const Matching& matching, WeightId id, bool are_taken) {
  FittingByName fitting;
  std::map<std::string, TensorId> tensors;
  for (const TensorId tensor : matching.of_sizes(matching.graph.weight(id).dims)) {
    const std::string core = matching.has_numbers(tensor) ? matching.core_of(tensor) : "";
    if (core.empty() || fitting.contains(core) || matching.is_taken(core) != are_taken) continue;
    if (auto found = fit(matching, id, tensor)) {
      fitting.emplace(core, std::move(*found));
      tensors.emplace(core, tensor);
    }
  }
  narrow(matching, id, fitting, tensors);
  return fitting;
}

/// The tensor of the module after which the exporter named the node.
void match_path(Matching& matching, WeightId id) {
  const std::string hint = hint_of(matching, id);
  if (hint.empty() || matching.is_taken(hint)) return;
  const Weight& weight = matching.graph.weight(id);
  for (const auto& [prefix, tensor] : matching.ending_in(hint)) {
    const Shape& dims = matching.tensor(tensor).dims;
    std::vector<int> axes = exchanged_axes(weight.dims, dims);
    const bool is_square = weight.dims.size() == 2 && weight.dims[0] == weight.dims[1];
    if (dims == weight.dims && !is_square) axes = same_axes(weight.dims.size());
    // A square matrix may stand either way; a linear layer of PyTorch has its outputs first.
    const auto& form = matching.uses[id].form;
    if (is_square && (!form || form->out_axis == 0)) axes = same_axes(2);
    if (axes.empty()) continue;
    return matching.add(id, MatchKind::kPath, matching.full[tensor].substr(prefix.size()), axes);
  }
  note_shape(matching, id, hint);
}

FittingByName free_ones(const Matching& matching, FittingByName fitting) {
  std::erase_if(fitting, [&](const auto& item) { return matching.is_taken(item.first); });
  return fitting;
}

/// Gives each weight the one free tensor that fits it, until nothing more follows.
void settle(Matching& matching, const std::map<WeightId, FittingByName>& open) {
  for (bool again = true; again;) {
    again = false;
    for (const auto& [id, fitting] : open) {
      if (matching.is_matched(id)) continue;
      const FittingByName left = free_ones(matching, fitting);
      if (left.size() != 1) continue;
      matching.add(id, left.begin()->second.kind, left.begin()->first, left.begin()->second.axes);
      again = true;
    }
  }
  for (const auto& [id, fitting] : open) {
    if (matching.is_matched(id)) continue;
    for (const auto& [core, found] : free_ones(matching, fitting)) {
      matching.match.ambiguous[matching.graph.weight(id).name].push_back({core, found.axes});
    }
  }
}

/// A weight that is another's in the checkpoint: tied there, and stored once.
bool match_tied(Matching& matching, WeightId id) {
  const FittingByName fitting = fitting_matrices(matching, id, true);
  if (fitting.size() != 1 || all_equal(numbers_of(matching.graph.weight(id)))) return false;
  const auto& [core, found] = *fitting.begin();
  matching.add(id, found.kind, core, found.axes);
  return true;
}

}  // namespace

void match_matrices(Matching& matching) {
  std::map<WeightId, FittingByName> open;
  std::vector<WeightId> unlike;  // whatever is stored
  for (const WeightId id : matching.graph.weights.ids()) {
    const Weight& weight = matching.graph.weight(id);
    if (matching.is_matched(id) || weight.dims.size() < 2 || !is_floating(weight.dtype)) continue;
    if (weight.data == nullptr) continue;
    FittingByName fitting = fitting_matrices(matching, id, false);
    if (fitting.empty()) {
      unlike.push_back(id);
    } else {
      open.emplace(id, std::move(fitting));
    }
  }
  settle(matching, open);
  for (const WeightId id : unlike) {
    if (!match_tied(matching, id)) match_path(matching, id);
  }
}

void match_vectors(Matching& matching) {
  if (matching.match.copies.empty()) return;
  std::map<WeightId, FittingByName> open;
  for (const WeightId id : matching.graph.weights.ids()) {
    const Weight& weight = matching.graph.weight(id);
    if (matching.is_matched(id) || weight.dims.size() != 1 || !is_floating(weight.dtype)) continue;
    if (weight.data == nullptr || weight.dims[0] < 2) continue;
    const WeightId matrix = matching.uses[id].matrix;
    if (matrix != WeightId() && !matching.is_matched(matrix)) {
      matching.match.unmatched[weight.name] =
          "the matrix " + in_quotes(matching.graph.weight(matrix).name) + " of its layer has none";
      continue;
    }
    const Numbers expected = numbers_of(weight);
    if (all_equal(expected)) continue;
    const std::string& prefix = matching.match.copies.front().prefix;
    FittingByName fitting;
    for (const TensorId tensor : matching.checkpoint.tensors().ids()) {
      if (matching.tensor(tensor).dims != weight.dims || !matching.has_numbers(tensor)) continue;
      if (!matching.full[tensor].starts_with(prefix)) continue;
      const std::string core = matching.full[tensor].substr(prefix.size());
      if (matching.is_taken(core) || matching.numbers(tensor) != expected) continue;
      fitting.emplace(core, Fitting{MatchKind::kValue, {0}});
    }
    if (!fitting.empty()) open.emplace(id, std::move(fitting));
  }
  settle(matching, open);
}

}  // namespace parsimony::checkpoints
