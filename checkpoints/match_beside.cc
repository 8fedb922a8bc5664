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
    for (WeightMatch& found : matching_.match.weights) look_behind(found);
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
  std::string module_behind(const WeightMatch& found, int64_t channels, const Numbers& factors,
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

  void look_behind(WeightMatch& found) {
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
        module_behind(found, weight.dims[form->out_axis], factors, found.equal);
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
    WeightMatch behind = found;
    behind.weight = matching_.graph.weight(bias).name;
    behind.targets = along;
    biases_[behind.weight] = std::move(behind);
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

}  // namespace parsimony::checkpoints
