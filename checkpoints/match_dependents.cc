#include <algorithm>
#include <map>

#include "parsimony/checkpoints/matching_impl.h"

namespace parsimony::checkpoints {
namespace {

/// How the axes of a tensor that hangs on a matched weight follow those of the weight.
class Alignment {
 public:
  Alignment(const Matching& matching, const WeightMatch& found, const Dependent& dependent)
      : matching_(matching),
        found_(found),
        dependent_(dependent),
        weight_(matching.wanted_dims(found)),
        dims_(matching.tensor(dependent.tensor).dims) {}

  /// Empty if the shapes do not fit.
  std::optional<MatchTarget> target(const std::string& core) const {
    auto target = aligned();
    if (!target) return std::nullopt;
    target->name = core;
    target->what = dependent_.what;
    return target;
  }

 private:
  std::optional<MatchTarget> aligned() const {
    switch (dependent_.part) {
      case Part::kWeight:
      case Part::kMask:
        if (dims_ != weight_) return std::nullopt;
        return MatchTarget{.name = {}, .axes = axes()};
      case Part::kMagnitude:
        return magnitude();
      case Part::kLeft:
      case Part::kRight:
        return singular_vector();
      case Part::kDown:
        return factor(axis_of(false), 1);
      case Part::kUp:
        return factor(axis_of(true), 0);
      case Part::kPerOutput:
        return per_index(axis_of(true));
      case Part::kPerInput:
        return per_index(axis_of(false));
    }
    return std::nullopt;
  }

  const std::vector<int>& axes() const { return found_.targets.front().axes; }

  int axis_of(bool outputs) const {
    const bool is_known = matching_.uses[matching_.id_of(found_)].form.has_value();
    if (dependent_.is_lookup && !is_known) return outputs ? 1 : 0;
    return matching_.axis_of(found_, outputs);
  }

  /// Axis `to` of the tensor follows axis `from` of the weight as it is stored.
  MatchTarget along(int from, int to, int64_t block = 1) const {
    MatchTarget target{.name = {}, .axes = std::vector<int>(axes().size(), -1), .block = block};
    for (size_t axis = 0; axis < axes().size(); ++axis) {
      if (axes()[axis] == from) target.axes[axis] = to;
    }
    return target;
  }

  std::optional<MatchTarget> magnitude() const {
    if (!is_magnitude(dims_, weight_)) return std::nullopt;
    MatchTarget target{.name = {}, .axes = axes()};
    for (int& axis : target.axes) {
      if (dims_.size() != weight_.size() || dims_[axis] != weight_[axis]) axis = -1;
    }
    return target;
  }

  std::optional<MatchTarget> singular_vector() const {
    const TensorId weight = matching_.in_copy(0, found_.targets.front().name);
    if (weight == TensorId()) return std::nullopt;
    const Composition composition = matching_.composition(matching_.id_of(found_), weight, axes());
    if (!composition.is_spectral()) return std::nullopt;
    if (dependent_.part == Part::kLeft) return along(composition.rows, 0);
    const int columns = composition.rows == 0 ? 1 : 0;
    if (weight_[columns] == 0) return std::nullopt;
    return along(columns, 0, dims_[0] / weight_[columns]);
  }

  /// A factor whose axis `to` follows axis `from`, whole positions of a kernel at a time.
  std::optional<MatchTarget> factor(int from, int to) const {
    if (from < 0 || dims_.size() < 2 || weight_[from] == 0) return std::nullopt;
    int64_t kernel = 1;
    for (size_t axis = 2; axis < weight_.size(); ++axis) kernel *= weight_[axis];
    const int64_t block = dims_[to] / weight_[from];
    const bool is_side = to == 0 && weight_.size() > 2 && block == weight_.back();
    if (dims_[to] != block * weight_[from]) return std::nullopt;
    if (block != 1 && block != kernel && !is_side) return std::nullopt;
    return along(from, to, block);
  }

  std::optional<MatchTarget> per_index(int from) const {
    if (element_count(dims_) == 1) return along(-1, -1);
    const auto is_long = [](int64_t size) { return size != 1; };
    const auto axis = std::ranges::find_if(dims_, is_long);
    if (from < 0 || std::ranges::count_if(dims_, is_long) != 1 || *axis != weight_[from]) {
      return std::nullopt;
    }
    return along(from, static_cast<int>(axis - dims_.begin()));
  }

  const Matching& matching_;
  const WeightMatch& found_;
  const Dependent& dependent_;
  Shape weight_;  ///< as it is stored
  const Shape& dims_;
};

/// Adds what hangs on the matches, copy by copy.
class DependentPass {
 public:
  explicit DependentPass(Matching& matching) : matching_(matching) {
    for (size_t i = 0; i < matching.match.weights.size(); ++i) {
      const WeightMatch& found = matching.match.weights[i];
      by_dims_[matching.wanted_dims(found)].push_back(i);
      for (const MatchTarget& target : found.targets) matching.take(target.name);
      for (const NetworkCopy& copy : matching.match.copies) {
        const TensorId id = matching.names.find(copy.prefix + found.targets.front().name);
        if (id != TensorId()) by_weight_.try_emplace(matching.dependents.weight_of(id), i);
      }
    }
  }

  void run() {
    for (const TensorId id : matching_.checkpoint.tensors().ids()) {
      const std::string core = matching_.core_of(id);
      if (core.empty() || matching_.is_taken(core)) continue;
      if (matching_.dependents.weight_of(id) != matching_.full[id]) {
        add_dependent(id, core);
      } else if (matching_.in_copy(0, core) == id) {
        add_tied(id, core);
      }
    }
  }

 private:
  void add_dependent(TensorId id, const std::string& core) {
    const std::string& weight = matching_.dependents.weight_of(id);
    const auto found = by_weight_.find(weight);
    if (found == by_weight_.end()) return;
    WeightMatch& match = matching_.match.weights[found->second];
    for (const Dependent& dependent : matching_.dependents.of(weight)) {
      if (dependent.tensor != id) continue;
      if (auto target = Alignment(matching_, match, dependent).target(core)) {
        match.targets.push_back(std::move(*target));
        matching_.take(core);
      }
    }
  }

  /// A tensor with the elements of a weight is that weight, if the network reads it several times.
  void add_tied(TensorId id, const std::string& core) {
    const auto same_dims = by_dims_.find(matching_.tensor(id).dims);
    if (same_dims == by_dims_.end() || !matching_.has_numbers(id)) return;
    const StoredValues values = matching_.checkpoint.values(id);
    std::vector<size_t> equal;
    for (const size_t i : same_dims->second) {
      const TensorId other = matching_.in_copy(0, matching_.match.weights[i].targets.front().name);
      if (other == TensorId() || matching_.tensor(other).type != matching_.tensor(id).type)
        continue;
      if (std::ranges::equal(values.bytes(), matching_.checkpoint.values(other).bytes())) {
        equal.push_back(i);
      }
    }
    if (equal.empty() || all_equal(matching_.numbers(id))) return;
    WeightMatch& match = matching_.match.weights[equal.front()];
    const int reads = matching_.uses[matching_.id_of(match)].reads;
    if (equal.size() > 1 || reads < 2) {
      matching_.match.lookalikes.emplace(core, match.weight);
      return;
    }
    match.targets.push_back({.name = core, .axes = match.targets.front().axes, .what = kEqualCopy});
    matching_.take(core);
  }

  Matching& matching_;
  std::map<std::string, size_t> by_weight_;  ///< full names
  std::map<Shape, std::vector<size_t>> by_dims_;
};

}  // namespace

void match_dependents(Matching& matching) {
  if (!matching.match.copies.empty()) DependentPass(matching).run();
}

}  // namespace parsimony::checkpoints
