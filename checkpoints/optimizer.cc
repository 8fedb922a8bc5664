#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>

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

  /// What the parameters of a sequence may be, as its tensors in order; false if they cannot be.
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
    Shape wanted = parameter;
    wanted.erase(wanted.begin() + without);
    if (state.dims != wanted) continue;
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

}  // namespace parsimony::checkpoints
