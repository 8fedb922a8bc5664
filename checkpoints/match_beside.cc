// Biases beside matrices that are matched, and what hangs on weights under other names.
#include <algorithm>
#include <map>

#include "parsimony/checkpoints/matching_impl.h"

namespace parsimony::checkpoints {
namespace {

/// Finds the normalisations that an exporter folded into layers; they are cut with the layers.
class NormalisationPass {
 public:
  explicit NormalisationPass(Matching& matching) : matching_(matching) {}

  void run() {
    // Biases are added to the matches in the end.
    for (WeightMatch& found : matching_.match.weights) visit_followers(found);
    for (auto& [name, bias] : biases_) {
      for (MatchTarget& target : bias.targets) target.axes = {0};
      matching_.add(std::move(bias));
    }
  }

 private:
  TensorId find(const std::string& core) const { return matching_.in_copy(0, core); }

  /// A vector of a module of the first copy; `otherwise` where the module has none.
  Numbers vector_of(const std::string& module, const char* name, size_t size,
                    double otherwise) const {
    const TensorId id = find(module + "." + name);
    return id == TensorId() ? Numbers(size, otherwise) : matching_.numbers(id);
  }

  /// Modules with statistics over `channels`, in the order of the file, that no weight of the graph
  /// matches.
  std::vector<std::string> normalisations(int64_t channels) const {
    constexpr std::string_view kVariance = ".running_var";
    const std::string& prefix = matching_.match.copies.front().prefix;
    std::vector<std::string> modules;
    for (const TensorId id : matching_.checkpoint.tensors().ids()) {
      const std::string& full = matching_.full[id];
      if (!full.starts_with(prefix) || !full.ends_with(kVariance)) continue;
      if (matching_.tensor(id).dims != Shape{channels} || !matching_.has_numbers(id)) continue;
      const std::string core = full.substr(prefix.size());
      if (matching_.is_taken(core)) continue;
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
    const TensorId at = find(layer);
    for (const std::string& module : modules) {
      if (find(module + ".running_var") > at) return module;
    }
    return {};
  }

  /// The normalisation behind a layer whose elements are others than the checkpoint's; empty if
  /// there is none. Sets whether the factors show it.
  std::string following_module(const WeightMatch& found, int64_t channels, const Numbers& factors,
                               bool& is_shown) const {
    const std::string& core = found.targets.front().name;
    const std::vector<std::string> all = normalisations(channels);
    std::vector<std::string> fitting;
    std::ranges::copy_if(all, std::back_inserter(fitting), [&](const std::string& module) {
      return epsilon(module, factors).has_value();
    });
    is_shown = !fitting.empty();
    const std::string module = nearest(fitting, core);
    if (!module.empty()) return module;
    if (!fitting.empty()) return fitting.front();
    // Other elements: an older export. A layer that has a bias in the file and none in the
    // checkpoint has it from the normalisation behind it.
    const WeightId bias = matching_.uses[matching_.id_of(found)].bias;
    const bool has_own = find(beside(core, "bias")) != TensorId();
    return bias != WeightId() && !has_own ? nearest(all, core) : "";
  }

  /// Are the elements the checkpoint's, as they lie there or composed?
  bool is_equal(const WeightMatch& found, WeightId id, TensorId tensor) const {
    const Weight& weight = matching_.graph.weight(id);
    if (same_bytes(matching_, weight, tensor)) return true;
    if (!is_floating(weight.dtype)) return false;
    const Composition composition = matching_.composition(id, tensor, found.targets.front().axes);
    if (!composition.is_plain()) {
      return nearly_equal(composed(composition, matching_.checkpoint), weight);
    }
    return equal_numbers(as_weight(matching_.tensor(tensor), matching_.checkpoint.values(tensor)),
                         weight);
  }

  void visit_followers(WeightMatch& found) {
    const WeightId id = matching_.id_of(found);
    const Weight& weight = matching_.graph.weight(id);
    const auto& form = matching_.uses[id].form;
    const std::string core = found.targets.front().name;
    const TensorId tensor = find(core);
    if (tensor == TensorId() || !matching_.has_numbers(tensor) || weight.data == nullptr) return;
    const bool as_it_lies = found.targets.front().axes == same_axes(weight.dims.size());
    found.equal = found.kind == MatchKind::kValue || found.kind == MatchKind::kTransposed ||
                  found.kind == MatchKind::kComposed || (as_it_lies && is_equal(found, id, tensor));
    if (found.equal || !form || !as_it_lies || !is_floating(weight.dtype)) return;
    const StoredValues values = matching_.checkpoint.values(tensor);
    const Numbers factors =
        factors_between(weight, as_weight(matching_.tensor(tensor), values), form->out_axis);
    const std::string module =
        following_module(found, weight.dims[form->out_axis], factors, found.equal);
    if (module.empty()) return;
    found.normalisation = module;
    found.epsilon = epsilon(module, factors);
    if (found.equal) found.kind = MatchKind::kFolded;
    add_targets(found, id, module);
  }

  void add_targets(WeightMatch& found, WeightId id, const std::string& module) {
    const Weight& weight = matching_.graph.weight(id);
    std::vector<MatchTarget> along;
    std::vector<int> axes(weight.dims.size(), -1);
    axes[matching_.uses[id].form->out_axis] = 0;
    for (const char* part : {"bias", "weight", "running_mean", "running_var"}) {
      const std::string name = module + "." + part;
      if (find(name) == TensorId()) continue;
      along.push_back({.name = name, .axes = axes, .what = "folded normalisation"});
      matching_.take(name);
    }
    const std::string own_bias = beside(found.targets.front().name, "bias");
    if (find(own_bias) != TensorId()) {
      along.push_back({.name = own_bias, .axes = axes, .what = "bias"});
      matching_.take(own_bias);
    }
    found.targets.insert(found.targets.end(), along.begin(), along.end());
    const WeightId bias = matching_.uses[id].bias;
    if (bias == WeightId() || along.empty()) return;
    WeightMatch after = found;
    after.weight = matching_.graph.weight(bias).name;
    after.targets = along;
    biases_[after.weight] = std::move(after);
  }

  Matching& matching_;
  std::map<std::string, WeightMatch> biases_;
};

}  // namespace

void match_beside(Matching& matching) {
  if (matching.match.copies.empty()) return;
  NormalisationPass(matching).run();
  for (const WeightId id : matching.graph.weights.ids()) {
    const WeightMatch* matrix = matching.match_of(id);
    const WeightId bias = matching.uses[id].bias;
    if (matrix == nullptr || bias == WeightId() || matching.is_matched(bias)) continue;
    const TensorId stored = matching.in_copy(0, matrix->targets.front().name);
    if (stored == TensorId()) continue;
    const std::string name = beside(matching.dependents.weight_of(stored), "bias");
    for (const auto& [prefix, found] : matching.ending_in(name)) {
      const Weight& weight = matching.graph.weight(bias);
      if (!prefix.empty() || matching.tensor(found).dims != weight.dims) continue;
      const std::string core =
          matching.full[found].substr(matching.match.copies.front().prefix.size());
      matching.add({.weight = weight.name,
                    .kind = MatchKind::kBeside,
                    .targets = {{core, {0}}},
                    .equal = same_bytes(matching, weight, found)});
      break;
    }
  }
}

namespace {

/// Aligns the axes of a tensor that hangs on a matched weight with those of the weight.
class Alignment {
 public:
  Alignment(const Matching& matching, const WeightMatch& found, const Dependent& dependent)
      : matching_(matching),
        found_(found),
        dependent_(dependent),
        weight_(matching.expected_dims(found)),
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
      case DependentPart::kWeight:
      case DependentPart::kMask:
        if (dims_ != weight_) return std::nullopt;
        return MatchTarget{.name = {}, .axes = axes()};
      case DependentPart::kMagnitude:
        return magnitude();
      case DependentPart::kLeft:
      case DependentPart::kRight:
        return singular_vector();
      case DependentPart::kDown:
        return factor(axis_of(false), 1);
      case DependentPart::kUp:
        return factor(axis_of(true), 0);
      case DependentPart::kPerOutput:
        return per_index(axis_of(true));
      case DependentPart::kPerInput:
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
    if (dependent_.part == DependentPart::kLeft) return along(composition.rows, 0);
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
      by_dims_[matching.expected_dims(found)].push_back(i);
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
