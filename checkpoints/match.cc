#include "parsimony/checkpoints/match.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <numeric>

#include "parsimony/base/errors.h"
#include "parsimony/checkpoints/matching_impl.h"
#include "parsimony/graph/operators/schema.h"
#include "parsimony/graph/weights.h"

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

namespace {

constexpr auto kWrappers =
    std::to_array<std::string_view>({"module.", "_orig_mod.", "model.", "net."});
// Parts of keys under which programs keep what they do not train.
constexpr auto kAverages = std::to_array<std::string_view>(
    {"ema", "average", "averaged", "swa", "shadow", "polyak", "teacher", "target", "momentum"});

bool is_average(std::string_view prefix) {
  size_t begin = 0;
  while (begin < prefix.size()) {
    const size_t end = std::min(prefix.find_first_of("._", begin), prefix.size());
    if (std::ranges::find(kAverages, prefix.substr(begin, end - begin)) != kAverages.end()) {
      return true;
    }
    begin = end + 1;
  }
  return false;
}

WeightId weight_at(const Graph& graph, const Node& node, int operand) {
  if (operand < 0 || operand >= static_cast<int>(node.inputs.size())) return {};
  const ValueId value = node.inputs[operand];
  return value == ValueId() ? WeightId() : graph.value(value).weight;
}

/// The vector of this size that is added to what the node computes, and to nothing else.
WeightId added_after(const Graph& graph, const Node& node, int64_t size) {
  const Value& result = graph.value(node.outputs.front());
  if (result.uses.size() != 1 || result.is_output) return {};
  const Node& next = graph.node(result.uses.front().node);
  if (!has_trait(next, kAdds) || next.inputs.size() != 2) return {};
  const WeightId vector = weight_at(graph, next, 1 - result.uses.front().input);
  if (vector == WeightId() || graph.weight(vector).dims != Shape{size}) return {};
  return vector;
}

}  // namespace

std::vector<int> same_axes(size_t rank) {
  std::vector<int> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

IdVector<WeightId, WeightUse> weight_uses(const Graph& graph) {
  IdVector<WeightId, WeightUse> uses(graph.weights.size());
  for (const Value& value : graph.values) {
    if (value.weight != WeightId()) uses[value.weight].reads += static_cast<int>(value.uses.size());
  }
  for (const NodeId id : graph.nodes.ids()) {
    const Node& node = graph.node(id);
    for (const int operand : weight_operands(node)) {
      const WeightId weight = weight_at(graph, node, operand);
      if (weight == WeightId()) continue;
      WeightUse& use = uses[weight];
      use.node = id;
      use.operand = operand;
      use.is_lookup = schema_of(node).linear.kind == LinearKind::kLookup;
      const Shape& dims = graph.weight(weight).dims;
      use.form = linear_form(node, operand, dims.size());
      if (use.form && use.form->out_axis < 0) use.form.reset();
      if (!use.form) continue;
      use.bias = weight_at(graph, node, use.form->bias);
      if (use.bias == WeightId()) use.bias = added_after(graph, node, dims[use.form->out_axis]);
      if (use.bias != WeightId()) uses[use.bias].matrix = weight;
    }
  }
  return uses;
}

Matching::Matching(const Graph& of_network, const Checkpoint& file)
    : graph(of_network),
      checkpoint(file),
      names(file),
      dependents(file, names),
      uses(weight_uses(of_network)) {
  for (const TensorId id : checkpoint.tensors().ids()) {
    full.push_back(dotted_name(tensor(id)));
    Shape sizes = tensor(id).dims;
    std::ranges::sort(sizes);
    if (sizes.size() >= 2) by_sizes_[sizes].push_back(id);
    index_endings(full[id], id, false);
  }
  for (const TensorId id : checkpoint.tensors().ids()) {
    const std::string& weight = dependents.weight_of(id);
    if (weight == full[id] || names.find(weight) != TensorId()) continue;
    if (dependents.standing_for(weight) == id) index_endings(weight, id, true);
  }
  for (const WeightId id : graph.weights.ids()) ids_.emplace(graph.weight(id).name, id);
}

void Matching::index_endings(const std::string& name, TensorId id, bool is_alias) {
  for (size_t at = 0; at != std::string::npos; at = name.find('.', at)) {
    if (at > 0) ++at;
    endings_[name.substr(at)].push_back({id, at, is_alias});
  }
}

std::vector<std::pair<std::string, TensorId>> Matching::ending_in(const std::string& core) const {
  std::vector<std::pair<std::string, TensorId>> found;
  const auto endings = endings_.find(core);
  if (core.empty() || endings == endings_.end()) return found;
  for (const Ending& ending : endings->second) {
    found.emplace_back(full[ending.tensor].substr(0, ending.prefix), ending.tensor);
  }
  return found;
}

std::vector<TensorId> Matching::of_sizes(Shape dims) const {
  std::ranges::sort(dims);
  const auto found = by_sizes_.find(dims);
  return found == by_sizes_.end() ? std::vector<TensorId>() : found->second;
}

Composition Matching::composition(WeightId weight, TensorId id,
                                  const std::vector<int>& axes) const {
  const auto& form = uses[weight].form;
  Composition composition =
      composition_of(id, dependents, checkpoint, form ? axes.at(form->out_axis) : 0);
  for (TensorId* part :
       {&composition.magnitude, &composition.left, &composition.right, &composition.mask}) {
    if (*part != TensorId() && weights_.contains(core_of(*part))) *part = TensorId();
  }
  return composition;
}

const WeightMatch* Matching::match_of(WeightId id) const {
  const auto found = index_.find(graph.weight(id).name);
  return found == index_.end() ? nullptr : &match.weights[found->second];
}

WeightId Matching::id_of(const WeightMatch& found) const { return ids_.at(found.weight); }

int Matching::axis_of(const WeightMatch& found, bool outputs) const {
  const std::vector<int>& axes = found.targets.front().axes;
  const WeightUse& use = uses[id_of(found)];
  if (use.form) return axes.at(outputs ? use.form->out_axis : use.form->in_axis);
  if (axes.size() < 2) return outputs && axes.size() == 1 ? axes[0] : -1;
  return axes.at(use.is_lookup == outputs ? 1 : 0);
}

void Matching::add(WeightId id, MatchKind kind, const std::string& core, std::vector<int> axes) {
  add({.weight = graph.weight(id).name, .kind = kind, .targets = {{core, std::move(axes)}}});
}

void Matching::add(WeightMatch found) {
  if (!index_.emplace(found.weight, match.weights.size()).second) return;
  taken_.insert(found.targets.front().name);
  weights_.insert(found.targets.front().name);
  match.weights.push_back(std::move(found));
}

Shape Matching::expected_dims(const WeightMatch& found) const {
  const Shape& dims = graph.weight(id_of(found)).dims;
  const std::vector<int>& axes = found.targets.front().axes;
  Shape expected(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) expected[axes[i]] = dims[i];
  return expected;
}

void Matching::find_copies() {
  std::map<std::string, size_t> counts;
  for (const WeightMatch& found : match.weights) {
    const Shape expected = expected_dims(found);
    const auto endings = endings_.find(found.targets.front().name);
    if (endings == endings_.end()) continue;
    for (const Ending& ending : endings->second) {
      if (ending.is_alias || tensor(ending.tensor).dims != expected) continue;
      ++counts[full[ending.tensor].substr(0, ending.prefix)];
    }
  }
  size_t most = 0;
  for (const auto& [prefix, count] : counts) most = std::max(most, count);
  match.copies.clear();
  for (const auto& [prefix, count] : counts) {
    if (count == most || (2 * count >= most && count >= 2)) {
      match.copies.push_back({.prefix = prefix, .is_whole = count == most});
    }
  }
  std::ranges::stable_sort(match.copies, {}, [](const NetworkCopy& copy) {
    return std::pair(!copy.is_whole, is_average(copy.prefix));
  });
}

std::string Matching::core_of(TensorId id) const {
  const NetworkCopy* around = nullptr;
  for (const NetworkCopy& copy : match.copies) {
    if (!full[id].starts_with(copy.prefix)) continue;
    if (around == nullptr || copy.prefix.size() > around->prefix.size()) around = &copy;
  }
  if (around != nullptr) return full[id].substr(around->prefix.size());
  if (!match.copies.empty()) return {};
  const std::vector<std::string>& path = tensor(id).path;
  std::string core = full[id];
  if (!path.empty() && core.size() >= path.back().size()) {
    core.erase(0, core.size() - path.back().size());
  }
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view wrapper : kWrappers) {
      if (!core.starts_with(wrapper)) continue;
      core.erase(0, wrapper.size());
      again = true;
    }
  }
  return core;
}

std::string beside(const std::string& core, std::string_view name) {
  return core.substr(0, core.rfind('.') + 1) + std::string(name);
}

void note_shape(Matching& matching, WeightId id, const std::string& core) {
  const Weight& weight = matching.graph.weight(id);
  for (const auto& [prefix, other] : matching.ending_in(core)) {
    const Shape& dims = matching.tensor(other).dims;
    if (dims != weight.dims) {
      matching.match.unmatched[weight.name] = "tensor " + in_quotes(matching.full[other]) +
                                              " has shape " + to_string(dims) + ", the weight " +
                                              to_string(weight.dims);
    }
    return;
  }
}

bool same_bytes(const Matching& matching, const Weight& weight, TensorId id) {
  const StoredTensor& stored = matching.tensor(id);
  if (stored.type->dtype != weight.dtype || stored.dims != weight.dims) return false;
  if (weight.data == nullptr || weight.stride != stored.type->bytes) return false;
  const StoredValues values = matching.checkpoint.values(id);
  return std::memcmp(values.bytes().data(), weight.data, values.bytes().size()) == 0;
}

}  // namespace parsimony::checkpoints
