#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/checkpoints/optimizer_impl.h"

namespace parsimony::checkpoints {
namespace {

constexpr std::string_view kState = "state";
constexpr std::string_view kGroups = "param_groups";

using Path = std::vector<std::string>;

Path first(const Path& path, size_t count) {
  return {path.begin(), path.begin() + static_cast<std::ptrdiff_t>(count)};
}

/// "0.weight" and "exp_avg" of "state.0.weight.exp_avg", as torch.distributed.checkpoint flattens
/// states.
std::optional<std::pair<std::string, std::string>> flat_state(const std::string& key) {
  const size_t end = key.rfind('.');
  if (!key.starts_with("state.") || end <= kState.size()) return std::nullopt;
  const size_t begin = kState.size() + 1;
  return std::pair(key.substr(begin, end - begin), key.substr(end + 1));
}

bool is_number(const std::string& key) {
  return !key.empty() && std::ranges::all_of(key, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::vector<ParameterStates> optimizers_of(const Checkpoint& checkpoint) {
  std::map<Path, ParameterStates> optimizers;
  std::map<Path, std::vector<std::pair<int64_t, TensorId>>> lists;
  Path path;
  for (const CheckpointLine& line : checkpoint.tree()) {
    if (line.depth == 0) {  // the root, or a format that has none
      path.clear();
      continue;
    }
    path.resize(line.depth - 1);
    path.push_back(line.key);
    const size_t depth = path.size();
    if (line.tensor != TensorId()) {
      // OPTIMIZER/state/PARAMETER/WHAT; the parameter's name may hold anything but is one key.
      if (depth >= 3 && path[depth - 3] == kState) {
        optimizers[first(path, depth - 3)].states.push_back({line.tensor, path[depth - 2]});
      } else if (const auto flat = flat_state(line.key)) {
        ParameterStates& optimizer = optimizers[first(path, depth - 1)];
        optimizer.states.push_back({line.tensor, flat->first});
        if (!contains(optimizer.order, flat->first)) optimizer.order.push_back(flat->first);
      } else if (is_number(line.key)) {
        lists[first(path, depth - 1)].emplace_back(std::stoll(line.key), line.tensor);
      }
      continue;
    }
    // OPTIMIZER/param_groups/GROUP/params/I
    if (depth < 4 || path[depth - 4] != kGroups) continue;
    ParameterStates& optimizer = optimizers[first(path, depth - 4)];
    if (path[depth - 2] == "params") {
      optimizer.order.push_back(line.what);
      // Their numbers begin anew in each group.
      if (line.key == "0") optimizer.groups.push_back(0);
      if (!optimizer.groups.empty()) ++optimizer.groups.back();
    }
    if (path[depth - 2] == "param_names") optimizer.names.push_back(line.what);
  }
  std::vector<ParameterStates> found;
  const auto joined = [](const Path& keys) { return to_string(keys); };
  for (auto& [at, optimizer] : optimizers) {
    optimizer.path = joined(at);
    if (!optimizer.states.empty() && !optimizer.order.empty())
      found.push_back(std::move(optimizer));
  }
  for (const auto& [at, items] : lists) {
    ParameterStates list;
    list.path = joined(at);
    list.groups = {items.size()};
    list.is_list = true;
    for (const auto& [number, tensor] : items) {
      list.order.push_back(std::to_string(number));
      list.states.push_back({tensor, list.order.back()});
    }
    found.push_back(std::move(list));
  }
  return found;
}

namespace {

constexpr size_t kMostPermuted = 4;  // groups

/// A parameter of the optimizer: its states.
using Slot = std::vector<TensorId>;

/// Groups, one behind the other, whose parameters are tensors of a list in its order.
struct Sequence {
  std::vector<size_t> groups;
  std::vector<const ParameterTensor*> tensors;
};

bool is_gain(const ParameterTensor& parameter, const Shape& dims) {
  return dims.size() <= 1 && !parameter.name.ends_with("bias");
}

class OrderSearch {
 public:
  OrderSearch(std::span<const ParameterStates* const> optimizers,
              std::span<const ParameterTensor> parameters, const Checkpoint& checkpoint,
              const std::function<bool(TensorId, TensorId)>& are_cut_alike)
      : parameters_(parameters), checkpoint_(checkpoint), are_cut_alike_(are_cut_alike) {
    for (const ParameterStates* optimizer : optimizers) add(*optimizer);
    possible_.resize(slots_.size());
  }

  /// By shapes alone.
  std::vector<Possible> run_unordered() {
    if (slots_.size() > parameters_.size()) return {};
    for (size_t slot = 0; slot < slots_.size(); ++slot) {
      for (const ParameterTensor& parameter : parameters_) {
        if (fits(slot, parameter.tensor)) note(possible_[slot], parameter.tensor);
      }
      if (possible_[slot].empty()) return {};
    }
    return std::move(possible_);
  }

  std::vector<Possible> run() {
    try_ranges();
    try_classes([](const ParameterTensor&, const Shape& dims) { return dims.size() > 1 ? 0 : 1; });
    try_classes([](const ParameterTensor& parameter, const Shape&) {
      return parameter.name.ends_with("bias") ? 1 : 0;
    });
    try_classes([](const ParameterTensor& parameter, const Shape& dims) {
      return dims.size() > 1 ? 0 : (is_gain(parameter, dims) ? 1 : 2);
    });
    std::vector<std::string> normalisations;
    for (const ParameterTensor& parameter : parameters_) {
      if (is_gain(parameter, dims(parameter.tensor))) {
        normalisations.push_back(module_of(parameter.name));
      }
    }
    sort_unique(normalisations);
    try_classes([&](const ParameterTensor& parameter, const Shape&) {
      return std::ranges::binary_search(normalisations, module_of(parameter.name)) ? 1 : 0;
    });
    try_classes([](const ParameterTensor& parameter, const Shape&) {
      return parameter.name.find("lora_") != std::string::npos ? 1 : 0;
    });
    return fits_ ? std::move(possible_) : std::vector<Possible>();
  }

 private:
  static std::string module_of(const std::string& name) {
    return name.substr(0, name.rfind('.') + 1);
  }

  const Shape& dims(TensorId id) const { return checkpoint_.tensors()[id].dims; }

  void add(const ParameterStates& optimizer) {
    std::map<std::string, Slot> states;
    for (const ParameterState& state : optimizer.states) {
      states[state.parameter].push_back(state.tensor);
    }
    size_t at = slots_.size();
    for (const std::string& name : optimizer.order) slots_.push_back(states[name]);
    for (const size_t count : optimizer.groups) {
      groups_.emplace_back(count);
      std::iota(groups_.back().begin(), groups_.back().end(), at);
      at += count;
    }
    if (at < slots_.size()) {  // groups are not known
      groups_.emplace_back(slots_.size() - at);
      std::iota(groups_.back().begin(), groups_.back().end(), at);
    }
  }

  bool fits(size_t slot, TensorId parameter) const {
    return std::ranges::all_of(slots_[slot], [&](TensorId state) {
      const StoredTensor& stored = checkpoint_.tensors()[state];
      return stored.count() <= 1 || !state_axes(stored, dims(parameter)).empty();
    });
  }

  /// Groups are ranges of the parameters.
  void try_ranges() {
    std::vector<size_t> order(groups_.size());
    std::iota(order.begin(), order.end(), 0);
    Sequence sequence{order, {}};
    for (const ParameterTensor& parameter : parameters_) sequence.tensors.push_back(&parameter);
    if (groups_.size() > kMostPermuted) {
      try_sequences({sequence});
      std::ranges::reverse(sequence.groups);
      return try_sequences({sequence});
    }
    do {
      sequence.groups = order;
      try_sequences({sequence});
    } while (std::ranges::next_permutation(order).found);
  }

  /// Groups are classes of parameters.
  template <typename ClassOf>
  void try_classes(const ClassOf& class_of) {
    std::map<int, std::vector<const ParameterTensor*>> classes;
    for (const ParameterTensor& parameter : parameters_) {
      classes[class_of(parameter, dims(parameter.tensor))].push_back(&parameter);
    }
    if (classes.size() != groups_.size() || groups_.size() < 2) return;
    std::vector<size_t> order(groups_.size());
    std::iota(order.begin(), order.end(), 0);
    do {
      std::vector<Sequence> sequences;
      for (const auto& [number, tensors] : classes) {
        sequences.push_back({{order[sequences.size()]}, tensors});
      }
      try_sequences(sequences);
    } while (std::ranges::next_permutation(order).found);
  }

  /// Notes what parameters may be if the groups are these, unless their states do not fit.
  void try_sequences(const std::vector<Sequence>& sequences) {
    std::map<size_t, Possible> found;
    for (const Sequence& sequence : sequences) {
      if (!embed(sequence, found)) return;
    }
    fits_ = true;
    for (auto& [slot, tensors] : found) {
      for (const TensorId tensor : tensors) note(possible_[slot], tensor);
    }
  }

  void note(Possible& possible, TensorId tensor) const {
    const auto alike = [&](TensorId other) { return are_cut_alike_(tensor, other); };
    if (std::ranges::none_of(possible, alike)) possible.push_back(tensor);
  }

  /// Finds what the parameters of a sequence may be, as its tensors in order; false if impossible.
  bool embed(const Sequence& sequence, std::map<size_t, Possible>& found) const {
    std::vector<size_t> slots;
    for (const size_t group : sequence.groups) {
      slots.insert(slots.end(), groups_[group].begin(), groups_[group].end());
    }
    const size_t count = slots.size();
    const size_t tensors = sequence.tensors.size();
    if (count > tensors) return false;
    // The fewest first and last tensors that hold the first and last parameters.
    std::vector<size_t> first(count + 1, 0);
    std::vector<size_t> last(count + 1, 0);
    const auto fits_at = [&](size_t i, size_t k) {
      return fits(slots[i], sequence.tensors[k]->tensor);
    };
    for (size_t i = 0; i < count; ++i) {
      size_t k = first[i];
      while (k < tensors && !fits_at(i, k)) ++k;
      if (k == tensors) return false;
      first[i + 1] = k + 1;
    }
    for (size_t i = 0; i < count; ++i) {
      size_t k = last[i];
      while (!fits_at(count - 1 - i, tensors - 1 - k)) ++k;
      last[i + 1] = k + 1;
    }
    for (size_t i = 0; i < count; ++i) {
      for (size_t k = first[i]; k + last[count - 1 - i] < tensors; ++k) {
        if (fits_at(i, k)) note(found[slots[i]], sequence.tensors[k]->tensor);
      }
    }
    return true;
  }

  std::span<const ParameterTensor> parameters_;
  const Checkpoint& checkpoint_;
  const std::function<bool(TensorId, TensorId)>& are_cut_alike_;
  std::vector<Slot> slots_;
  std::vector<std::vector<size_t>> groups_;  ///< of slots
  std::vector<Possible> possible_;
  bool fits_ = false;
};

}  // namespace

std::vector<int> state_axes(const StoredTensor& state, const Shape& parameter) {
  const int rank = static_cast<int>(parameter.size());
  std::vector<int> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (state.dims == parameter) return axes;
  // The moments of Adafactor lack the last axis, or the one before.
  for (const auto& [ending, without] : {std::pair("row", rank - 1), std::pair("col", rank - 2)}) {
    if (without < 0 || state.path.empty() || !state.path.back().ends_with(ending)) continue;
    Shape expected = parameter;
    expected.erase(expected.begin() + without);
    if (state.dims != expected) continue;
    axes.erase(axes.begin() + without);
    return axes;
  }
  return {};
}

std::vector<Possible> possible_orders(
    std::span<const ParameterStates* const> optimizers, std::span<const ParameterTensor> parameters,
    bool in_order, const Checkpoint& checkpoint,
    const std::function<bool(TensorId, TensorId)>& are_cut_alike) {
  OrderSearch search(optimizers, parameters, checkpoint, are_cut_alike);
  return in_order ? search.run() : search.run_unordered();
}

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

  /// Whether names were sorted, as in safetensors, not only by chance: a bias precedes its weight.
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
