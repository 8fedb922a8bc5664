#include <algorithm>
#include <array>
#include <set>

#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/checkpoints/optimizer_impl.h"

namespace parsimony::checkpoints {
namespace {

constexpr auto kStatistics = std::to_array<std::string_view>(
    {"running_mean", "running_var", "num_batches_tracked", "position_ids"});

class StateFollower {
 public:
  StateFollower(const Checkpoint& checkpoint, const CheckpointMatch& match, const Cuts& cuts)
      : checkpoint_(checkpoint),
        match_(match),
        cuts_(cuts),
        names_(checkpoint),
        parameters_(parameters()),
        in_order_(order_parameters()) {}

  std::vector<StateCut> run() {
    const std::vector<ParameterStates> all = optimizers_of(checkpoint_);
    std::map<std::string, std::vector<const ParameterStates*>> open;  // by what holds them
    for (const ParameterStates& states : all) {
      if (follow_names(states)) continue;
      const std::string holder = states.path.substr(0, states.path.rfind('/') + 1);
      open[states.is_list ? states.path : holder].push_back(&states);
    }
    for (const auto& [holder, optimizers] : open) {
      // Optimizers side by side share the parameters among them.
      if (optimizers.size() > 1 && follow_shapes(optimizers)) continue;
      for (const ParameterStates* states : optimizers) {
        if (!follow_shapes({states})) refuse_if_ours(*states);
      }
    }
    return std::move(result_);
  }

 private:
  const std::vector<std::string>& path(TensorId id) const { return checkpoint_.tensors()[id].path; }

  const Shape& dims(TensorId id) const { return checkpoint_.tensors()[id].dims; }

  /// The parameters of the first copy: what lies beside its weights in their dictionary, or is a
  /// parameter of a pickled module. A tensor under several names is one.
  std::vector<ParameterTensor> parameters() const {
    std::vector<ParameterTensor> found;
    std::set<std::string> copies;
    for (const WeightMatch& match : match_.weights) {
      for (const MatchTarget& target : match.targets) {
        if (target.what == kEqualCopy) copies.insert(target.name);
      }
    }
    if (match_.copies.empty() || match_.weights.empty()) return found;
    const std::string& prefix = match_.copies.front().prefix;
    const std::string& sample = match_.weights.front().targets.front().name;
    const std::vector<std::string>& beside = path(names_.find(prefix + sample));
    for (const TensorId id : checkpoint_.tensors().ids()) {
      const std::string name = dotted_name(checkpoint_.tensors()[id]);
      if (!name.starts_with(prefix) || names_.find(name) != id) continue;
      const bool is_parameter = contains(path(id), "_parameters") ||
                                (path(id).size() == beside.size() &&
                                 std::equal(path(id).begin(), path(id).end() - 1, beside.begin()));
      const bool is_counted =
          contains(kStatistics, std::string_view(name).substr(name.rfind('.') + 1)) ||
          copies.contains(name.substr(prefix.size())) ||
          std::ranges::any_of(found, [&](auto& one) { return is_same_view(one.tensor, id); });
      if (is_parameter && !is_counted) found.push_back({id, name});
    }
    return found;
  }

  /// Brings the parameters into the order of the network's module, if that has all of them; else
  /// the file's is it, unless that is sorted by name. @returns is it the module's?
  bool order_parameters() {
    if (match_.copies.empty()) return true;
    std::map<std::string, size_t> places;
    for (const std::string& name : match_.order) {
      places.emplace(match_.copies.front().prefix + name, places.size());
    }
    const auto is_placed = [&](const ParameterTensor& one) { return places.contains(one.name); };
    if (!std::ranges::all_of(parameters_, is_placed)) return !is_sorted_by_name();
    std::ranges::sort(parameters_, {}, [&](const auto& one) { return places.at(one.name); });
    return true;
  }

  /// As safetensors sorts them, and other formats by chance, though not a bias before its weight.
  bool is_sorted_by_name() const {
    const auto bias_first = [](const ParameterTensor& one, const ParameterTensor& next) {
      return one.name.ends_with("bias") && next.name.ends_with("weight") &&
             one.name.substr(0, one.name.rfind('.')) == next.name.substr(0, next.name.rfind('.'));
    };
    return std::ranges::is_sorted(parameters_, {}, &ParameterTensor::name) &&
           (!checkpoint_.format().starts_with("PyTorch") ||
            std::ranges::adjacent_find(parameters_, bias_first) != parameters_.end());
  }

  bool is_same_view(TensorId a, TensorId b) const {
    const StoredTensor& one = checkpoint_.tensors()[a];
    const StoredTensor& other = checkpoint_.tensors()[b];
    return one.storage == other.storage && one.offset == other.offset && one.dims == other.dims &&
           one.strides == other.strides && one.count() > 0;
  }

  const std::vector<AxisKeep>& cut_of(TensorId parameter) const {
    static const std::vector<AxisKeep> kNothing;
    const auto found = cuts_.find(parameter);
    return found == cuts_.end() ? kNothing : found->second;
  }

  /// By names: those of `param_names`, or the keys of the states themselves.
  bool follow_names(const ParameterStates& states) {
    const bool has_names = states.names.size() == states.order.size() && !states.names.empty();
    std::map<std::string, TensorId> named;
    for (size_t i = 0; i < states.order.size(); ++i) {
      const TensorId id = find_name(has_names ? states.names[i] : states.order[i]);
      if (id == TensorId()) return false;
      named[states.order[i]] = id;
    }
    for (const ParameterState& state : states.states) {
      const auto parameter = named.find(state.parameter);
      if (parameter != named.end()) follow(state.tensor, parameter->second);
    }
    return true;
  }

  TensorId find_name(const std::string& name) const {
    for (const NetworkCopy& copy : match_.copies) {
      // The optimizer may have the names with or without the wrapper's prefix.
      for (size_t at = 0; at != std::string::npos; at = copy.prefix.find('.', at)) {
        if (at > 0 && ++at > copy.prefix.size()) break;
        const TensorId id = names_.find(copy.prefix.substr(0, at) + name);
        if (id != TensorId()) return id;
      }
      const TensorId id = names_.find(copy.prefix + name);
      if (id != TensorId()) return id;
    }
    return {};
  }

  /// By the shapes of all states; false if they fit nothing.
  bool follow_shapes(const std::vector<const ParameterStates*>& optimizers) {
    const bool is_list = optimizers.front()->is_list;
    // A short list of a few shapes fits anything.
    if (is_list && 2 * optimizers.front()->order.size() <= parameters_.size()) return false;
    const std::vector<Possible> possible =
        possible_orders(optimizers, parameters_, in_order_, checkpoint_,
                        [&](TensorId a, TensorId b) { return are_alike(cut_of(a), cut_of(b)); });
    size_t at = 0;
    if (possible.empty()) return false;
    for (const ParameterStates* states : optimizers) {
      std::map<std::string, const Possible*> by_name;
      for (const std::string& name : states->order) by_name[name] = &possible[at++];
      for (const ParameterState& state : states->states) {
        const auto parameter = by_name.find(state.parameter);
        if (parameter == by_name.end() || dims(state.tensor).empty()) continue;
        if (element_count(dims(state.tensor)) <= 1) continue;
        const Possible& tensors = *parameter->second;
        if (tensors.size() > 1) {
          throw UnsupportedError(
              "optimizer ", in_quotes(states->path), ": by the shapes of all states its parameter ",
              state.parameter, " may be ", in_quotes(to_string(path(tensors[0]))), " or ",
              in_quotes(to_string(path(tensors[1]))),
              ", which are cut differently. Save it with names (torch.optim with "
              "named_parameters() writes `param_names`), or without the optimizer");
        }
        follow(state.tensor, tensors.front());
      }
    }
    return true;
  }

  void follow(TensorId state, TensorId parameter) {
    StateCut cut{state, parameter};
    const std::vector<AxisKeep>& axes = cut_of(parameter);
    const StoredTensor& stored = checkpoint_.tensors()[state];
    if (!axes.empty() && stored.count() > 1) {
      const std::vector<int> kept = state_axes(stored, dims(parameter));
      if (kept.empty()) {
        cut.why_left = "its shape " + to_string(stored.dims) + " is not that of its parameter, " +
                       to_string(dims(parameter));
      }
      for (const AxisKeep& axis : axes) {
        const auto at = std::ranges::find(kept, axis.axis);
        if (at == kept.end()) continue;
        cut.axes.push_back({static_cast<int>(at - kept.begin()), axis.size, axis.keep});
      }
    }
    result_.push_back(std::move(cut));
  }

  /// @throws UnsupportedError if its states could be those of parameters that are cut
  void refuse_if_ours(const ParameterStates& states) const {
    if (states.is_list) return;
    std::set<Shape> shapes;
    for (const auto& [id, axes] : cuts_) shapes.insert(dims(id));
    const auto ours = std::ranges::find_if(states.states, [&](const ParameterState& state) {
      return shapes.contains(dims(state.tensor));
    });
    if (ours == states.states.end()) return;
    throw UnsupportedError(
        "optimizer ", in_quotes(states.path), ": which of its ", states.order.size(),
        " parameters is which of the network's ", parameters_.size(), " cannot be known, so that ",
        in_quotes(to_string(path(ours->tensor))),
        " cannot be cut: their shapes agree in no order of the groups. Save it with names "
        "(torch.optim with named_parameters() writes `param_names`), or without the optimizer");
  }

  const Checkpoint& checkpoint_;
  const CheckpointMatch& match_;
  const Cuts& cuts_;
  TensorNames names_;
  std::vector<ParameterTensor> parameters_;
  bool in_order_;  ///< of the module
  std::vector<StateCut> result_;
};

}  // namespace

bool are_alike(const std::vector<AxisKeep>& a, const std::vector<AxisKeep>& b) {
  return std::ranges::equal(a, b, [](const AxisKeep& one, const AxisKeep& other) {
    return one.axis == other.axis && one.size == other.size && one.keep == other.keep;
  });
}

std::vector<StateCut> cuts_of_states(const Checkpoint& checkpoint, const CheckpointMatch& match,
                                     const Cuts& cuts) {
  if (cuts.empty()) return {};
  return StateFollower(checkpoint, match, cuts).run();
}

}  // namespace parsimony::checkpoints
