#include "parsimony/checkpoints/match.h"

#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>

#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/checkpoints/errors.h"
#include "parsimony/checkpoints/numbers_impl.h"
#include "parsimony/graph/node_names.h"
#include "parsimony/graph/operators/linear_form.h"

namespace parsimony {
namespace {

using checkpoints::all_equal;
using checkpoints::as_weight;
using checkpoints::epsilon_of;
using checkpoints::equal_numbers;
using checkpoints::equal_transposed;
using checkpoints::factors_between;
using checkpoints::Numbers;
using checkpoints::numbers_of;

constexpr auto kModuleParts =
    std::to_array<std::string_view>({"_modules", "_parameters", "_buffers"});
constexpr auto kWrappers =
    std::to_array<std::string_view>({"module.", "_orig_mod.", "model.", "net."});
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

std::vector<int> same_axes(size_t rank) {
  std::vector<int> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

class Matcher {
 public:
  Matcher(const Graph& graph, const Checkpoint& checkpoint)
      : graph_(graph), checkpoint_(checkpoint), names_(checkpoint) {
    for (const TensorId id : checkpoint.tensors().ids()) {
      const StoredTensor& tensor = checkpoint.tensors()[id];
      const std::string name = dotted_name(tensor);
      full_.push_back(name);
      Shape key = tensor.dims;
      std::ranges::sort(key);
      if (tensor.dims.size() >= 2) by_shape_[key].push_back(id);
      for (size_t at = 0; at != std::string::npos; at = name.find('.', at)) {
        if (at > 0) ++at;
        suffixes_[name.substr(at)].push_back(id);
      }
    }
    note_uses();
  }

  CheckpointMatch run() {
    match_names();
    settle_copies();
    match_values();
    settle_copies();
    match_normalisations();
    match_vectors();
    drop_incomplete();
    note_shapes();
    note_equal_copies();
    return std::move(result_);
  }

 private:
  /// Where a weight is used as one of a linear layer.
  struct LayerUse {
    NodeId node;
    int operand = -1;
    std::optional<LinearForm> form;
  };

  void note_uses() {
    uses_ = IdVector<WeightId, LayerUse>(graph_.weights.size());
    bias_of_ = IdVector<WeightId, WeightId>(graph_.weights.size());
    for (const NodeId id : graph_.nodes.ids()) {
      const Node& node = graph_.node(id);
      for (const int operand : weight_operands(node)) {
        const WeightId weight = weight_at(node, operand);
        if (weight == WeightId()) continue;
        uses_[weight] = {id, operand,
                         linear_form(node, operand, graph_.weight(weight).dims.size())};
        auto& form = uses_[weight].form;
        if (form && form->out_axis < 0) form.reset();
        if (form && form->bias >= 0) bias_of_[weight] = weight_at(node, form->bias);
      }
    }
  }

  WeightId weight_at(const Node& node, int operand) const {
    if (operand >= static_cast<int>(node.inputs.size())) return {};
    const ValueId value = node.inputs[operand];
    return value == ValueId() ? WeightId() : graph_.value(value).weight;
  }

  const StoredTensor& tensor(TensorId id) const { return checkpoint_.tensors()[id]; }

  bool is_matched(WeightId id) const { return matched_.contains(graph_.weight(id).name); }

  void add(WeightId id, MatchKind kind, const std::string& core, std::vector<int> axes) {
    const std::string& name = graph_.weight(id).name;
    if (!matched_.emplace(name, result_.weights.size()).second) return;
    result_.weights.push_back({name, kind, {{core, std::move(axes)}}});
    taken_.insert(core);
  }

  /// Weights whose names, after `dropped` components, end tensors of their shape.
  std::map<std::string, std::vector<WeightId>> named_under(int dropped) const {
    std::map<std::string, std::vector<WeightId>> by_prefix;
    for (const WeightId id : graph_.weights.ids()) {
      const Weight& weight = graph_.weight(id);
      const std::string core = without_components(weight.name, dropped);
      const auto found = suffixes_.find(core);
      if (core.empty() || found == suffixes_.end()) continue;
      for (const TensorId tensor_id : found->second) {
        if (tensor(tensor_id).dims != weight.dims) continue;
        const std::string& full = full_[tensor_id];
        by_prefix[full.substr(0, full.size() - core.size())].push_back(id);
      }
    }
    return by_prefix;
  }

  void match_names() {
    std::vector<WeightId> best;
    int best_dropped = 0;
    for (int dropped = 0; dropped <= kMostDropped; ++dropped) {
      for (const auto& [prefix, ids] : named_under(dropped)) {
        if (ids.size() <= best.size()) continue;
        best = ids;
        best_dropped = dropped;
      }
    }
    for (const WeightId id : best) {
      const Weight& weight = graph_.weight(id);
      add(id, MatchKind::kName, without_components(weight.name, best_dropped),
          same_axes(weight.dims.size()));
    }
  }

  /// The prefixes under which most of what was matched is found, those with all of it first.
  void settle_copies() {
    std::map<std::string, size_t> counts;
    for (const WeightMatch& match : result_.weights) {
      const std::string& core = match.targets.front().name;
      const auto found = suffixes_.find(core);
      if (found == suffixes_.end()) continue;
      const Shape& dims = wanted_dims(match);
      for (const TensorId id : found->second) {
        if (tensor(id).dims == dims) {
          ++counts[full_[id].substr(0, full_[id].size() - core.size())];
        }
      }
    }
    size_t most = 0;
    for (const auto& [prefix, count] : counts) most = std::max(most, count);
    result_.copies.clear();
    for (const auto& [prefix, count] : counts) {
      if (count == most) result_.copies.push_back({prefix});
    }
  }

  /// Of the tensor that is matched with the weight.
  Shape wanted_dims(const WeightMatch& match) const {
    const auto weight = std::ranges::find(graph_.weights, match.weight, &Weight::name);
    const std::vector<int>& axes = match.targets.front().axes;
    Shape dims(axes.size());
    for (size_t i = 0; i < axes.size(); ++i) dims[axes[i]] = weight->dims[i];
    return dims;
  }

  Numbers numbers(TensorId id) const {
    return numbers_of(as_weight(tensor(id), checkpoint_.values(id)));
  }

  /// Are the elements the same bits? Quicker than comparing numbers.
  bool same_bytes(const Weight& weight, TensorId id) const {
    const StoredTensor& stored = tensor(id);
    if (stored.type->dtype != weight.dtype || stored.dims != weight.dims) return false;
    if (weight.data == nullptr || weight.stride != stored.type->bytes) return false;
    const StoredValues values = checkpoint_.values(id);
    return std::memcmp(values.bytes().data(), weight.data, values.bytes().size()) == 0;
  }

  bool has_numbers(TensorId id) const { return tensor(id).type->dtype != DType::kUnknown; }

  /// The name that a tensor has within its copy; empty if it is in none.
  std::string core_of(TensorId id) const {
    const std::string& full = full_[id];
    for (const NetworkCopy& copy : result_.copies) {
      if (full.starts_with(copy.prefix)) return full.substr(copy.prefix.size());
    }
    if (!result_.copies.empty()) return {};
    // Nothing is known yet: the last key, without what wrappers put before it.
    std::string core = tensor(id).path.empty() ? full : full.substr(container_size(id));
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

  size_t container_size(TensorId id) const {
    const std::string& key = tensor(id).path.back();
    return full_[id].size() >= key.size() ? full_[id].size() - key.size() : 0;
  }

  struct Candidate {
    TensorId id;
    MatchKind kind;
    std::vector<int> axes;
  };

  /// Between a weight and a tensor of its shape, per output; empty if there are none.
  const Numbers& factors(WeightId id, TensorId tensor_id) {
    const auto [known, is_new] = factors_.try_emplace({id, tensor_id});
    const auto& form = uses_[id].form;
    if (is_new && form) {
      const StoredValues values = checkpoint_.values(tensor_id);
      known->second =
          factors_between(graph_.weight(id), as_weight(tensor(tensor_id), values), form->out_axis);
    }
    return known->second;
  }

  std::vector<int> transposed_axes(const Weight& weight, TensorId id) const {
    const Shape& dims = tensor(id).dims;
    const bool fits = weight.dims.size() == 2 && dims.size() == 2 && dims[0] == weight.dims[1] &&
                      dims[1] == weight.dims[0];
    return fits ? std::vector<int>{1, 0} : std::vector<int>();
  }

  std::optional<Candidate> compare(WeightId id, TensorId tensor_id) {
    const Weight& weight = graph_.weight(id);
    const StoredValues values = checkpoint_.values(tensor_id);
    const Weight found = as_weight(tensor(tensor_id), values);
    if (found.dims == weight.dims) {
      if (equal_numbers(found, weight)) {
        return Candidate{tensor_id, MatchKind::kValue, same_axes(weight.dims.size())};
      }
      if (!factors(id, tensor_id).empty()) {
        return Candidate{tensor_id, MatchKind::kFolded, same_axes(weight.dims.size())};
      }
    }
    std::vector<int> axes = transposed_axes(weight, tensor_id);
    if (!axes.empty() && equal_transposed(numbers_of(weight), numbers_of(found), weight.dims)) {
      return Candidate{tensor_id, MatchKind::kTransposed, std::move(axes)};
    }
    return std::nullopt;
  }

  void match_values() {
    for (const WeightId id : graph_.weights.ids()) {
      const Weight& weight = graph_.weight(id);
      if (is_matched(id) || weight.dims.size() < 2 || !is_floating(weight.dtype)) continue;
      Shape key = weight.dims;
      std::ranges::sort(key);
      const auto same_shape = by_shape_.find(key);
      if (same_shape == by_shape_.end() || weight.data == nullptr) continue;
      std::map<std::string, Candidate> found;
      for (const TensorId tensor_id : same_shape->second) {
        const std::string core = has_numbers(tensor_id) ? core_of(tensor_id) : "";
        if (core.empty() || taken_.contains(core) || found.contains(core)) continue;
        if (auto candidate = compare(id, tensor_id)) found.emplace(core, *candidate);
      }
      const std::string hint = hint_of(id);
      if (found.size() > 1 && found.contains(hint)) {
        found = {{hint, found.at(hint)}};
      } else if (found.empty()) {
        match_path(id, hint);
        continue;
      }
      if (found.size() > 1) {
        result_.unmatched[weight.name] = "the elements of " + in_quotes(found.begin()->first) +
                                         " and " + in_quotes(std::next(found.begin())->first) +
                                         " both fit";
        continue;
      }
      add(id, found.begin()->second.kind, found.begin()->first, found.begin()->second.axes);
    }
  }

  /// The name that the path of the node suggests.
  std::string hint_of(WeightId id) const {
    if (uses_[id].node == NodeId()) return {};
    const std::string module = module_of_node_name(graph_.node(uses_[id].node).name);
    return module.empty() ? "" : module + ".weight";
  }

  /// The reason why a weight has no tensor: one of its name has another shape.
  void note_shape(WeightId id, const std::string& core) {
    const auto found = suffixes_.find(core);
    const Weight& weight = graph_.weight(id);
    if (found == suffixes_.end()) return;
    const TensorId other = found->second.front();
    if (tensor(other).dims == weight.dims) return;
    result_.unmatched[weight.name] = "tensor " + in_quotes(full_[other]) + " has shape " +
                                     to_string(tensor(other).dims) + ", the weight " +
                                     to_string(weight.dims);
  }

  void note_shapes() {
    for (const WeightId id : graph_.weights.ids()) {
      const std::string& name = graph_.weight(id).name;
      for (int dropped = 0; dropped <= kMostDropped && !is_matched(id); ++dropped) {
        const std::string core = without_components(name, dropped);
        if (!core.empty() && !result_.unmatched.contains(name)) note_shape(id, core);
      }
    }
  }

  void match_path(WeightId id, const std::string& hint) {
    const Weight& weight = graph_.weight(id);
    const auto found = suffixes_.find(hint);
    if (hint.empty() || found == suffixes_.end() || taken_.contains(hint)) return;
    for (const TensorId tensor_id : found->second) {
      std::vector<int> axes = transposed_axes(weight, tensor_id);
      const bool is_square = weight.dims.size() == 2 && weight.dims[0] == weight.dims[1];
      if (tensor(tensor_id).dims == weight.dims && !is_square) {
        axes = same_axes(weight.dims.size());
      }
      // A square matrix may stand either way; a linear layer of PyTorch has its outputs first.
      const auto& form = uses_[id].form;
      if (is_square && (!form || form->out_axis == 0)) axes = same_axes(2);
      if (!axes.empty()) return add(id, MatchKind::kPath, hint, axes);
    }
    note_shape(id, hint);
  }

  TensorId in_copy(size_t copy, const std::string& core) const {
    return names_.find(result_.copies[copy].prefix + core);
  }

  /// A vector of a module of the first copy; `otherwise` where the module has none.
  Numbers vector_of(const std::string& module, const char* name, size_t size,
                    double otherwise) const {
    const TensorId id = in_copy(0, module + "." + name);
    return id == TensorId() ? Numbers(size, otherwise) : numbers(id);
  }

  /// Modules with statistics over `channels`, in the order of the file, that no weight of the graph
  /// matches.
  std::vector<std::string> normalisations(int64_t channels) const {
    constexpr std::string_view kVariance = ".running_var";
    std::vector<std::string> modules;
    for (const TensorId id : checkpoint_.tensors().ids()) {
      const std::string& full = full_[id];
      const std::string& prefix = result_.copies.front().prefix;
      if (!full.starts_with(prefix) || !full.ends_with(kVariance)) continue;
      if (tensor(id).dims != Shape{channels} || !has_numbers(id)) continue;
      const std::string core = full.substr(prefix.size());
      if (taken_.contains(core)) continue;
      modules.push_back(core.substr(0, core.size() - kVariance.size()));
    }
    return modules;
  }

  std::optional<double> epsilon(const std::string& module, const Numbers& factors) const {
    if (factors.empty()) return std::nullopt;
    return epsilon_of(factors, vector_of(module, "weight", factors.size(), 1),
                      vector_of(module, "running_var", factors.size(), 1));
  }

  /// The first of `modules` that stands behind the layer in the file; empty if none does.
  std::string nearest(const std::vector<std::string>& modules, const std::string& layer) const {
    const TensorId at = in_copy(0, layer);
    for (const std::string& module : modules) {
      if (in_copy(0, module + ".running_var") > at) return module;
    }
    return {};
  }

  /// A layer whose weight was folded is followed by a normalisation that is cut with it.
  void match_normalisations() {
    if (result_.copies.empty()) return;
    for (WeightMatch& match : result_.weights) {
      const auto found = std::ranges::find(graph_.weights, match.weight, &Weight::name);
      const WeightId id(found - graph_.weights.begin());
      const auto& form = uses_[id].form;
      const TensorId tensor_id = in_copy(0, match.targets.front().name);
      if (tensor_id == TensorId() || !has_numbers(tensor_id) || found->data == nullptr) continue;
      match.equal = match.kind == MatchKind::kValue || match.kind == MatchKind::kTransposed;
      match.equal |= same_bytes(*found, tensor_id);
      if (match.equal || !is_floating(found->dtype)) continue;
      match.equal =
          equal_numbers(as_weight(tensor(tensor_id), checkpoint_.values(tensor_id)), *found);
      if (match.equal) continue;
      if (!form || match.targets.front().axes != same_axes(found->dims.size())) continue;
      const int64_t channels = found->dims[form->out_axis];
      const std::vector<std::string> all = normalisations(channels);
      const Numbers& factors = this->factors(id, tensor_id);
      std::vector<std::string> fitting;
      std::ranges::copy_if(all, std::back_inserter(fitting), [&](const std::string& module) {
        return epsilon(module, factors).has_value();
      });
      match.equal = !fitting.empty();
      std::string module = nearest(fitting, match.targets.front().name);
      if (module.empty() && !fitting.empty()) module = fitting.front();
      // Other elements: an older export. A layer that has a bias in the file and none in the
      // checkpoint has it from the normalisation behind it.
      const WeightId bias = bias_of_[id];
      const std::string& core = match.targets.front().name;
      const std::string own_bias = core.substr(0, core.rfind('.') + 1) + "bias";
      if (module.empty() && bias != WeightId() && in_copy(0, own_bias) == TensorId()) {
        module = nearest(all, core);
      }
      if (module.empty()) continue;
      match.normalisation = module;
      match.epsilon = epsilon(module, factors);
      if (match.equal) match.kind = MatchKind::kFolded;
      std::vector<MatchTarget> along;
      std::vector<int> axes(found->dims.size(), -1);
      axes[form->out_axis] = 0;
      for (const char* part : {"bias", "weight", "running_mean", "running_var"}) {
        const std::string name = module + "." + part;
        if (in_copy(0, name) == TensorId()) continue;
        along.push_back({name, axes});
        taken_.insert(name);
      }
      if (in_copy(0, own_bias) != TensorId()) along.push_back({own_bias, axes});
      match.targets.insert(match.targets.end(), along.begin(), along.end());
      if (bias != WeightId() && !along.empty()) {
        folded_bias_[graph_.weight(bias).name] = {.kind = match.kind,
                                                  .targets = along,
                                                  .normalisation = module,
                                                  .epsilon = match.epsilon,
                                                  .equal = match.equal};
      }
    }
    for (auto& [name, match] : folded_bias_) {
      if (!matched_.emplace(name, result_.weights.size()).second) continue;
      match.weight = name;
      for (MatchTarget& target : match.targets) target.axes = {0};
      result_.weights.push_back(std::move(match));
    }
  }

  /// Vectors without a name: a layer's bias, or one whose elements are unmistakable.
  void match_vectors() {
    if (result_.copies.empty()) return;
    for (const WeightId id : graph_.weights.ids()) {
      const auto layer = matched_.find(graph_.weight(id).name);
      const WeightId bias = bias_of_[id];
      if (layer == matched_.end() || bias == WeightId() || is_matched(bias)) continue;
      const std::string& core = result_.weights[layer->second].targets.front().name;
      const std::string name = core.substr(0, core.rfind('.') + 1) + "bias";
      const TensorId found = in_copy(0, name);
      if (found != TensorId() && tensor(found).dims == graph_.weight(bias).dims) {
        add(bias, result_.weights[layer->second].kind, name, {0});
        result_.weights.back().equal = same_bytes(graph_.weight(bias), found);
      }
    }
    for (const WeightId id : graph_.weights.ids()) {
      const Weight& weight = graph_.weight(id);
      if (is_matched(id) || weight.dims.size() != 1 || !is_floating(weight.dtype)) continue;
      if (weight.data == nullptr || weight.dims[0] < 2) continue;
      const Numbers wanted = numbers_of(weight);
      if (all_equal(wanted)) continue;
      for (const TensorId tensor_id : checkpoint_.tensors().ids()) {
        const std::string& prefix = result_.copies.front().prefix;
        if (tensor(tensor_id).dims != weight.dims || !full_[tensor_id].starts_with(prefix))
          continue;
        const std::string core = full_[tensor_id].substr(prefix.size());
        if (taken_.contains(core) || !has_numbers(tensor_id)) continue;
        if (numbers(tensor_id) != wanted) continue;
        add(id, MatchKind::kValue, core, {0});
        result_.weights.back().equal = true;
        break;
      }
    }
  }

  /// What is not in the copies after all.
  void drop_incomplete() {
    std::erase_if(result_.weights, [&](const WeightMatch& match) {
      const bool is_there =
          !result_.copies.empty() && in_copy(0, match.targets.front().name) != TensorId();
      if (!is_there)
        result_.unmatched[match.weight] = "the checkpoint's copy of the network has none";
      return !is_there;
    });
  }

  void note_equal_copies() {
    for (size_t copy = 0; copy < result_.copies.size(); ++copy) {
      result_.copies[copy].equal =
          std::ranges::all_of(result_.weights, [&](const WeightMatch& match) {
            if (copy == 0) return match.equal;
            const TensorId first = in_copy(0, match.targets.front().name);
            const TensorId here = in_copy(copy, match.targets.front().name);
            return here != TensorId() && std::ranges::equal(checkpoint_.values(first).bytes(),
                                                            checkpoint_.values(here).bytes());
          });
      if (copy > 0) result_.copies[copy].equal &= result_.copies.front().equal;
    }
  }

  const Graph& graph_;
  const Checkpoint& checkpoint_;
  TensorNames names_;
  IdVector<TensorId, std::string> full_;
  std::map<Shape, std::vector<TensorId>> by_shape_;
  absl::flat_hash_map<std::string, std::vector<TensorId>> suffixes_;
  IdVector<WeightId, LayerUse> uses_;
  IdVector<WeightId, WeightId> bias_of_;
  absl::flat_hash_map<std::string, size_t> matched_;  ///< by weight: index of the match
  absl::flat_hash_set<std::string> taken_;            ///< names within a copy
  std::map<std::pair<WeightId, TensorId>, Numbers> factors_;
  std::map<std::string, WeightMatch> folded_bias_;
  CheckpointMatch result_;
};

}  // namespace

std::string_view name_of(MatchKind kind) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"name", "elements", "elements, transposed", "folded normalisation", "path of the node"});
  return kNames[static_cast<size_t>(kind)];
}

std::string dotted_name(const StoredTensor& tensor) {
  std::string name;
  for (const std::string& key : tensor.path) {
    if (!contains(kModuleParts, key)) name += (name.empty() ? "" : ".") + key;
  }
  return name;
}

void check_has_copy(const CheckpointMatch& match) {
  if (!match.copies.empty()) return;
  const auto first = match.unmatched.begin();
  throw errors::no_copy_of_network(
      first == match.unmatched.end() ? "" : first->first + ": " + first->second);
}

TensorNames::TensorNames(const Checkpoint& checkpoint) {
  for (const TensorId id : checkpoint.tensors().ids()) {
    ids_.try_emplace(dotted_name(checkpoint.tensors()[id]), id);
  }
}

TensorId TensorNames::find(const std::string& name) const {
  const auto found = ids_.find(name);
  return found == ids_.end() ? TensorId() : found->second;
}

CheckpointMatch match_checkpoint(const Graph& graph, const Checkpoint& checkpoint) {
  return Matcher(graph, checkpoint).run();
}

}  // namespace parsimony
