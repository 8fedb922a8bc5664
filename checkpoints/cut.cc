#include "parsimony/checkpoints/cut.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "parsimony/base/ranges.h"
#include "parsimony/checkpoints/errors.h"
#include "parsimony/checkpoints/optimizer_impl.h"

namespace parsimony {
namespace {

using checkpoints::ParameterState;
using checkpoints::ParameterStates;

constexpr auto kStatistics = std::to_array<std::string_view>(
    {"running_mean", "running_var", "num_batches_tracked", "position_ids"});

/// "running_mean" of "layer1.0.bn1.running_mean".
std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

class Cutter {
 public:
  Cutter(const Plan& plan, const CheckpointMatch& match, Checkpoint& checkpoint)
      : plan_(plan), match_(match), checkpoint_(checkpoint), names_(checkpoint) {
    for (const WeightMatch& weight : match.weights) by_weight_.emplace(weight.weight, &weight);
  }

  CheckpointCut run() {
    for (const NetworkCopy& copy : match_.copies) result_.copies.push_back(copy.prefix);
    for (const TensorCut& cut : cuts_of(plan_)) collect(cut);
    for (const PlanCopy& copy : plan_.copies) {
      leave(copy.tensor, "the plan gives it a tensor of its own, which the checkpoint lacks");
    }
    result_.tensors = static_cast<int64_t>(cuts_.size());
    for (const ParameterStates& states : checkpoints::optimizers_of(checkpoint_)) follow(states);
    for (const TensorUpdate& update : plan_.updates) assign(update);
    for (auto& [id, axes] : cuts_) checkpoint_.cut(id, axes);
    return std::move(result_);
  }

 private:
  void leave(std::string_view tensor, const std::string& why) {
    result_.left.push_back(std::string(tensor) + ": " + why);
  }

  std::string why_unmatched(std::string_view weight) const {
    const auto found = match_.unmatched.find(weight);
    return found == match_.unmatched.end() ? "no tensor has its name or its elements"
                                           : found->second;
  }

  const WeightMatch* match_of(std::string_view weight) const {
    const auto found = by_weight_.find(weight);
    return found == by_weight_.end() ? nullptr : found->second;
  }

  void collect(const TensorCut& cut) {
    const WeightMatch* match = match_of(cut.tensor);
    if (match == nullptr) return leave(cut.tensor, why_unmatched(cut.tensor));
    for (const NetworkCopy& copy : match_.copies) {
      for (const MatchTarget& target : match->targets) {
        const TensorId id = names_.find(copy.prefix + target.name);
        if (id == TensorId()) continue;
        for (const AxisKeep& axis : cut.axes) {
          if (target.axes[axis.axis] >= 0) add(id, {target.axes[axis.axis], axis.size, axis.keep});
        }
      }
    }
  }

  void add(TensorId id, const AxisKeep& axis) {
    const StoredTensor& tensor = checkpoint_.tensors()[id];
    if (!tensor.why_fixed.empty()) {
      throw errors::fixed_tensor(to_string(tensor.path), tensor.why_fixed);
    }
    if (tensor.dims[axis.axis] != axis.size) {
      throw errors::another_network(to_string(tensor.path), tensor.dims, axis.axis, axis.size);
    }
    std::vector<AxisKeep>& axes = cuts_[id];
    if (AxisKeep* known = find_axis(axes, axis.axis)) {
      known->keep = common(known->keep, axis.keep);
    } else {
      axes.push_back(axis);
    }
  }

  /// The parameters of the first copy, in the order of the file: what lies beside its weights in
  /// their dictionary, or is a parameter of a pickled module.
  std::vector<TensorId> parameters() const {
    std::vector<TensorId> found;
    const std::string& prefix = match_.copies.front().prefix;
    const std::string& sample = match_.weights.front().targets.front().name;
    const std::vector<std::string>& beside = path(names_.find(prefix + sample));
    for (const TensorId id : checkpoint_.tensors().ids()) {
      const std::string name = dotted_name(checkpoint_.tensors()[id]);
      if (!name.starts_with(prefix) || names_.find(name) != id) continue;
      const bool is_parameter = contains(path(id), "_parameters") ||
                                (path(id).size() == beside.size() &&
                                 std::equal(path(id).begin(), path(id).end() - 1, beside.begin()));
      if (is_parameter && !contains(kStatistics, last_part(name))) found.push_back(id);
    }
    return found;
  }

  const std::vector<std::string>& path(TensorId id) const { return checkpoint_.tensors()[id].path; }

  const Shape& dims(TensorId id) const { return checkpoint_.tensors()[id].dims; }

  /// Does a state have the parameter's shape, or that of a factor of it, or no shape to cut?
  bool fits(TensorId state, TensorId parameter) const {
    const Shape& found = dims(state);
    const Shape& wanted = dims(parameter);
    return found == wanted || element_count(found) <= 1 ||
           !factor_axes(found, wanted, path(state).back()).empty();
  }

  /// The parameter's axes that the moments of Adafactor have: all but the last, or all but the one
  /// before.
  static std::vector<int> factor_axes(const Shape& found, const Shape& wanted,
                                      const std::string& key) {
    if (found.size() + 1 != wanted.size()) return {};
    const int last = static_cast<int>(wanted.size()) - 1;
    for (const auto& [ending, without] : {std::pair("row", last), std::pair("col", last - 1)}) {
      if (without < 0 || !key.ends_with(ending)) continue;
      std::vector<int> axes;
      Shape left;
      for (int axis = 0; axis <= last; ++axis) {
        if (axis == without) continue;
        axes.push_back(axis);
        left.push_back(wanted[axis]);
      }
      if (left == found) return axes;
    }
    return {};
  }

  using Order = std::map<std::string, TensorId>;  ///< by the optimizer's name of the parameter

  std::optional<Order> try_order(const ParameterStates& states,
                                 const std::vector<TensorId>& parameters) const {
    if (states.order.size() != parameters.size()) return std::nullopt;
    Order order;
    for (size_t i = 0; i < parameters.size(); ++i) order[states.order[i]] = parameters[i];
    for (const ParameterState& state : states.states) {
      const auto parameter = order.find(state.parameter);
      if (parameter == order.end() || !fits(state.tensor, parameter->second)) return std::nullopt;
    }
    return order;
  }

  /// By names: those of `param_names`, or the keys of the states themselves.
  std::optional<Order> named_order(const ParameterStates& states) const {
    const bool has_names = states.names.size() == states.order.size() && !states.names.empty();
    Order order;
    for (size_t i = 0; i < states.order.size(); ++i) {
      const std::string& name = has_names ? states.names[i] : states.order[i];
      TensorId id;
      for (const NetworkCopy& copy : match_.copies) {
        // The optimizer may have the names with or without the wrapper's prefix.
        for (size_t at = 0; id == TensorId() && at != std::string::npos;
             at = copy.prefix.find('.', at)) {
          if (at > 0 && ++at > copy.prefix.size()) break;
          id = names_.find(copy.prefix.substr(0, at) + name);
        }
        if (id == TensorId()) id = names_.find(copy.prefix + name);
      }
      if (id == TensorId()) return std::nullopt;
      order[states.order[i]] = id;
    }
    return order;
  }

  std::optional<Order> order_of(const ParameterStates& states) const {
    if (auto named = named_order(states)) return named;
    const std::vector<TensorId> natural = parameters();
    if (auto order = try_order(states, natural)) return order;
    for (const bool matrices_first : {true, false}) {
      std::vector<TensorId> sorted = natural;
      std::stable_partition(sorted.begin(), sorted.end(),
                            [&](TensorId id) { return (dims(id).size() > 1) == matrices_first; });
      if (auto order = try_order(states, sorted)) return order;
    }
    return std::nullopt;
  }

  void follow(const ParameterStates& states) {
    const bool is_list = states.order.size() == states.states.size() && states.names.empty() &&
                         std::ranges::all_of(states.states, [&](const ParameterState& state) {
                           return path(state.tensor).back() == state.parameter;
                         });
    const auto order = order_of(states);
    if (!order) {
      if (is_list || cuts_.empty() || !may_be_ours(states)) return;
      throw errors::unknown_order(states.path, states.order.size(), parameters().size());
    }
    for (const ParameterState& state : states.states) {
      const auto parameter = order->find(state.parameter);
      if (parameter == order->end()) continue;
      const auto cut = cuts_.find(parameter->second);
      if (cut == cuts_.end() || element_count(dims(state.tensor)) <= 1) continue;
      const std::vector<AxisKeep> axes = cut->second;
      const Shape& wanted = dims(parameter->second);
      std::vector<int> kept(wanted.size());
      for (size_t i = 0; i < kept.size(); ++i) kept[i] = static_cast<int>(i);
      if (dims(state.tensor) != wanted) {
        kept = factor_axes(dims(state.tensor), wanted, path(state.tensor).back());
        if (kept.empty()) {
          leave(to_string(path(state.tensor)), "its shape " + to_string(dims(state.tensor)) +
                                                   " is not that of its parameter, " +
                                                   to_string(wanted));
          continue;
        }
      }
      bool is_cut = false;
      for (const AxisKeep& axis : axes) {
        const auto at = std::ranges::find(kept, axis.axis);
        if (at == kept.end()) continue;
        add(state.tensor, {static_cast<int>(at - kept.begin()), axis.size, axis.keep});
        is_cut = true;
      }
      if (is_cut) ++result_.states;
    }
  }

  /// Could its states be those of parameters that are cut?
  bool may_be_ours(const ParameterStates& states) const {
    std::set<Shape> shapes;
    for (const auto& [id, axes] : cuts_) shapes.insert(dims(id));
    return std::ranges::any_of(states.states, [&](const ParameterState& state) {
      return shapes.contains(dims(state.tensor));
    });
  }

  void assign(const TensorUpdate& update) {
    const WeightMatch* match = match_of(update.tensor);
    if (match == nullptr) return leave(update.tensor, why_unmatched(update.tensor));
    if (update.values.empty()) return leave(update.tensor, "its new elements are not in the plan");
    const bool is_plain = match->kind != MatchKind::kFolded && match->normalisation.empty() &&
                          match->kind != MatchKind::kTransposed;
    if (!is_plain) {
      return leave(update.tensor,
                   "its new elements cannot be taken apart into those of a "
                   "normalisation, or are transposed");
    }
    for (const NetworkCopy& copy : match_.copies) {
      const TensorId id = names_.find(copy.prefix + match->targets.front().name);
      if (id == TensorId()) continue;
      if (!copy.equal) {
        leave(to_string(path(id)),
              "its new elements follow from those of the model's file, which are others");
      } else if (checkpoint_.tensors()[id].type->dtype != update.dtype) {
        leave(to_string(path(id)), "its new elements are of another type");
      } else {
        checkpoint_.assign(id, update.values);
      }
    }
  }

  const Plan& plan_;
  const CheckpointMatch& match_;
  Checkpoint& checkpoint_;
  TensorNames names_;
  std::map<std::string, const WeightMatch*, std::less<>> by_weight_;
  std::map<TensorId, std::vector<AxisKeep>> cuts_;
  CheckpointCut result_;
};

}  // namespace

CheckpointCut cut_checkpoint(const Plan& plan, const CheckpointMatch& match, bool strict,
                             Checkpoint& checkpoint) {
  if (!plan.empty()) check_has_copy(match);
  if (!plan.blocks.empty()) throw errors::blocks_in_checkpoint();
  CheckpointCut cut = Cutter(plan, match, checkpoint).run();
  if (strict && !cut.left.empty()) throw errors::left_in_checkpoint(cut.left);
  return cut;
}

}  // namespace parsimony
