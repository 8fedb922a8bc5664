#include "parsimony/checkpoints/cut.h"

#include <algorithm>
#include <map>
#include <set>

#include "parsimony/base/ranges.h"
#include "parsimony/checkpoints/composed_impl.h"
#include "parsimony/checkpoints/errors.h"
#include "parsimony/checkpoints/matching_impl.h"
#include "parsimony/checkpoints/optimizer_impl.h"

namespace parsimony {
namespace {

using checkpoints::are_alike;
using checkpoints::Cuts;

/// Axes of a weight as axes of a tensor that is cut with it.
std::vector<AxisKeep> followed(const std::vector<AxisKeep>& cut, const MatchTarget& target) {
  std::vector<AxisKeep> axes;
  for (const AxisKeep& axis : cut) {
    if (target.axes[axis.axis] < 0) continue;
    AxisKeep& along = axes.emplace_back(
        AxisKeep{.axis = target.axes[axis.axis], .size = axis.size * target.block, .keep = {}});
    for (const int64_t index : axis.keep) {
      for (int64_t i = 0; i < target.block; ++i) along.keep.push_back(index * target.block + i);
    }
  }
  std::ranges::sort(axes, {}, &AxisKeep::axis);
  return axes;
}

class Cutter {
 public:
  Cutter(const Plan& plan, const CheckpointMatch& match, Checkpoint& checkpoint)
      : plan_(plan),
        match_(match),
        checkpoint_(checkpoint),
        names_(checkpoint),
        dependents_(checkpoint, names_) {
    for (const WeightMatch& found : match.weights) by_weight_.emplace(found.weight, &found);
    for (TensorCut& cut : cuts_of(plan)) expected_.emplace(cut.tensor, std::move(cut.axes));
    for (const TensorId id : checkpoint.tensors().ids()) {
      outcomes_.push_back({.tensor = to_string(path(id)), .before = dims(id)});
    }
  }

  CheckpointCut run() {
    for (const NetworkCopy& copy : match_.copies) result_.copies.push_back(copy.prefix);
    for (const WeightMatch& match : match_.weights) collect(match);
    for (const auto& [weight, targets] : match_.ambiguous) collect_ambiguous(weight, targets);
    for (const auto& [weight, axes] : expected_) note_missing(weight);
    for (const PlanCopy& copy : plan_.copies) {
      leave(copy.tensor, "the plan gives it a tensor of its own, which the checkpoint lacks");
    }
    for (const NetworkCopy& copy : match_.copies) note_uncut(copy);
    result_.tensors = static_cast<int64_t>(cuts_.size());
    for (const auto& cut : checkpoints::cuts_of_states(checkpoint_, match_, cuts_)) follow(cut);
    for (const WeightMatch& match : match_.weights) keep_normalised(match);
    for (const TensorUpdate& update : plan_.updates) assign(update);
    for (auto& [id, axes] : cuts_) checkpoint_.cut(id, axes);
    for (const PlanFile& file : plan_.files) checkpoint_.replace_file(file.name, file.text);
    for (const PlanRenaming& renaming : plan_.renamings) rename(renaming);
    finish_outcomes();
    return std::move(result_);
  }

 private:
  void leave(std::string_view tensor, const std::string& why) {
    result_.left.push_back(std::string(tensor) + ": " + why);
  }

  void leave(TensorId id, const std::string& why) {
    leave(outcomes_[id].tensor, why);
    outcomes_[id].why_left = why;
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

  /// Returns what the plan keeps of a weight; nothing if it keeps all.
  const std::vector<AxisKeep>& expected(std::string_view weight) const {
    static const std::vector<AxisKeep> kNothing;
    const auto found = expected_.find(weight);
    return found == expected_.end() ? kNothing : found->second;
  }

  const std::vector<std::string>& path(TensorId id) const { return checkpoint_.tensors()[id].path; }

  const Shape& dims(TensorId id) const { return checkpoint_.tensors()[id].dims; }

  TensorId find(const NetworkCopy& copy, const MatchTarget& target) const {
    return names_.find(copy.prefix + target.name);
  }

  void collect(const WeightMatch& match) {
    for (const NetworkCopy& copy : match_.copies) {
      for (const MatchTarget& target : match.targets) {
        const TensorId id = find(copy, target);
        if (id == TensorId()) continue;
        note_owner(id, match, target);
        const std::vector<AxisKeep> axes = followed(expected(match.weight), target);
        if (!axes.empty()) add(id, axes);
        if (target.what == kMagnitudeOfFactors && axes.size() < expected(match.weight).size()) {
          leave(id,
                "its norm runs over inputs that are removed, and cannot be computed without the "
                "scale of the factors");
        }
      }
    }
  }

  /// The first weight that has the tensor; another one must have it cut alike.
  void note_owner(TensorId id, const WeightMatch& match, const MatchTarget& target) {
    TensorOutcome& outcome = outcomes_[id];
    const std::vector<AxisKeep> axes = followed(expected(match.weight), target);
    if (outcome.weight.empty()) {
      outcome.weight = match.weight;
      outcome.matched = target.what.empty() ? name_of(match.kind) : target.what;
      return;
    }
    const auto cut = cuts_.find(id);
    const bool is_alike = cut == cuts_.end() ? axes.empty() : are_alike(cut->second, axes);
    if (!is_alike) {
      throw UnsupportedError(
          "tensor ", in_quotes(outcome.tensor), " is both ", in_quotes(outcome.weight), " and ",
          in_quotes(match.weight),
          " of the model, which are cut differently: tie them in the model, or save both");
    }
  }

  /// A weight that may be any of several tensors: they are cut if all weights that may be one of
  /// them are cut alike.
  void collect_ambiguous(const std::string& weight, const std::vector<MatchTarget>& targets) {
    for (const auto& [other, theirs] : match_.ambiguous) {
      for (const MatchTarget& target : theirs) {
        const auto ours = std::ranges::find(targets, target.name, &MatchTarget::name);
        if (ours == targets.end() ||
            are_alike(followed(expected(weight), *ours), followed(expected(other), target))) {
          continue;
        }
        throw UnsupportedError(
            "weight ", in_quotes(weight), ": the elements of ", in_quotes(targets[0].name), " and ",
            in_quotes(targets[1].name),
            " in the checkpoint both fit, and would be cut differently. Export the model with the "
            "names of its parameters, or with weights that differ");
      }
    }
    for (const NetworkCopy& copy : match_.copies) {
      for (const MatchTarget& target : targets) {
        const TensorId id = find(copy, target);
        if (id == TensorId()) continue;
        outcomes_[id].weight = weight;
        outcomes_[id].matched = "elements, like others that are cut alike";
        const std::vector<AxisKeep> axes = followed(expected(weight), target);
        if (!axes.empty()) add(id, axes);
      }
    }
  }

  void note_missing(const std::string& weight) {
    if (match_of(weight) != nullptr || match_.ambiguous.contains(weight)) return;
    leave(weight, why_unmatched(weight));
    for (const NetworkCopy& copy : match_.copies) {
      for (const Dependent& dependent : dependents_.of(copy.prefix + weight)) {
        leave(dependent.tensor,
              "it hangs on " + in_quotes(weight) + ", which the checkpoint lacks");
      }
    }
  }

  void add(TensorId id, const std::vector<AxisKeep>& axes) {
    const StoredTensor& tensor = checkpoint_.tensors()[id];
    if (!tensor.why_fixed.empty()) {
      throw errors::fixed_tensor(to_string(tensor.path), tensor.why_fixed);
    }
    for (const AxisKeep& axis : axes) {
      if (tensor.dims[axis.axis] == axis.size) continue;
      throw ModelError("tensor ", in_quotes(to_string(tensor.path)), " has shape ",
                       to_string(tensor.dims), "; the plan cuts an axis ", axis.axis, " of ",
                       axis.size, ": a checkpoint of another network?");
    }
    cuts_[id] = axes;
  }

  void follow(const checkpoints::StateCut& cut) {
    TensorOutcome& outcome = outcomes_[cut.state];
    outcome.matched = "optimizer state";
    outcome.weight = outcomes_[cut.parameter].weight;
    if (!cut.why_left.empty()) leave(cut.state, cut.why_left);
    if (cut.axes.empty()) return;
    add(cut.state, cut.axes);
    ++result_.states;
  }

  /// The module of a tensor's weight, with the dot behind it: "layer1." of "layer1.weight_g".
  std::string module_of(TensorId id) const {
    const std::string& weight = dependents_.weight_of(id);
    return weight.substr(0, weight.rfind('.') + 1);
  }

  /// Lists what a copy has in a module with a cut weight, of a size that was cut, that no pass has
  /// recognised.
  void note_uncut(const NetworkCopy& copy) {
    std::map<std::string, std::set<int64_t>> sizes;  // that were cut, by module
    for (const auto& [id, axes] : cuts_) {
      for (const AxisKeep& axis : axes) sizes[module_of(id)].insert(axis.size);
    }
    for (const TensorId id : checkpoint_.tensors().ids()) {
      const std::string name = dotted_name(checkpoint_.tensors()[id]);
      if (!name.starts_with(copy.prefix) || !outcomes_[id].matched.empty()) continue;
      if (!outcomes_[id].why_left.empty()) continue;
      const auto twin = match_.lookalikes.find(name.substr(copy.prefix.size()));
      if (twin != match_.lookalikes.end() && !expected(twin->second).empty()) {
        leave(id, "it has the elements of " + in_quotes(twin->second) +
                      ", but the model does not say that they are one");
        continue;
      }
      for (std::string module = name; module.size() > copy.prefix.size();) {
        module = module.substr(0, module.substr(0, module.size() - 1).rfind('.') + 1);
        const auto cut = sizes.find(module);
        const bool is_below = module.size() > copy.prefix.size() ||
                              name.find('.', copy.prefix.size()) == std::string::npos;
        if (cut == sizes.end() || !is_below) continue;
        const auto size = std::ranges::find_if(
            dims(id), [&](int64_t length) { return cut->second.contains(length); });
        if (size == dims(id).end()) continue;
        leave(id, "it lies beside a cut weight and has the size " + std::to_string(*size) +
                      " that was cut, but what it is to the weight is not known");
        break;
      }
    }
  }

  /// Scales the magnitude or singular vector of a normalised weight so that what is kept of the
  /// weight stays what it was.
  void keep_normalised(const WeightMatch& match) {
    const auto cut = [&](TensorId id) {
      const auto found = cuts_.find(id);
      return found == cuts_.end() ? nullptr : &found->second;
    };
    for (const NetworkCopy& copy : match_.copies) {
      const TensorId id = find(copy, match.targets.front());
      if (id == TensorId() || cut(id) == nullptr) continue;
      const auto composition =
          checkpoints::composition_of(match, copy.prefix, names_, dependents_, checkpoint_);
      const auto scaled = checkpoints::rescaled(composition, checkpoint_, cut);
      if (!scaled) continue;
      const DType dtype = checkpoint_.tensors()[scaled->tensor].type->dtype;
      checkpoint_.assign(scaled->tensor, checkpoints::bytes_of(scaled->numbers, dtype));
    }
  }

  void assign(const TensorUpdate& update) {
    const WeightMatch* match = match_of(update.tensor);
    if (match == nullptr) return leave(update.tensor, why_unmatched(update.tensor));
    if (update.values.empty()) return leave(update.tensor, "its new elements are not in the plan");
    if (!is_stored_plain(*match)) {
      return leave(update.tensor,
                   "its new elements cannot be taken apart into those of a "
                   "normalisation, or are transposed");
    }
    for (const NetworkCopy& copy : match_.copies) {
      for (const MatchTarget& target : match->targets) {
        const TensorId id = find(copy, target);
        const bool is_weight = target.what.empty() || target.what == kEqualCopy;
        if (id != TensorId() && is_weight) assign(id, copy, update);
      }
    }
  }

  /// Are the elements in the checkpoint those of the weight, in their order?
  bool is_stored_plain(const WeightMatch& match) const {
    return match.kind != MatchKind::kFolded && match.kind != MatchKind::kTransposed &&
           match.normalisation.empty() &&
           checkpoints::composition_of(match, match_.copies.front().prefix, names_, dependents_,
                                       checkpoint_)
               .is_plain();
  }

  void assign(TensorId id, const NetworkCopy& copy, const TensorUpdate& update) {
    if (!copy.equal) {
      leave(id, "its new elements follow from those of the model's file, which are others");
    } else if (checkpoint_.tensors()[id].type->dtype != update.dtype) {
      leave(id, "its new elements are of another type");
    } else {
      checkpoint_.assign(id, update.values);
    }
  }

  void rename(const PlanRenaming& renaming) {
    for (const NetworkCopy& copy : match_.copies) {
      const TensorId id = names_.find(copy.prefix + renaming.tensor);
      if (id == TensorId()) {
        leave(renaming.tensor, "the checkpoint has no such tensor");
        continue;
      }
      if (!renaming.name.empty() && !new_names_.insert(copy.prefix + renaming.name).second) {
        throw ConfigError("the plan calls two tensors ", in_quotes(renaming.name));
      }
      checkpoint_.rename(id, renaming.name);
    }
  }

  void finish_outcomes() {
    for (const TensorId id : checkpoint_.tensors().ids()) {
      TensorOutcome& outcome = outcomes_[id];
      outcome.after = outcome.before;
      const auto cut = cuts_.find(id);
      if (cut == cuts_.end()) continue;
      for (const AxisKeep& axis : cut->second) {
        outcome.after[axis.axis] = static_cast<int64_t>(axis.keep.size());
      }
    }
    for (TensorOutcome& outcome : outcomes_) result_.outcomes.push_back(std::move(outcome));
  }

  const Plan& plan_;
  const CheckpointMatch& match_;
  Checkpoint& checkpoint_;
  TensorNames names_;
  Dependents dependents_;
  std::map<std::string_view, const WeightMatch*> by_weight_;
  std::map<std::string, std::vector<AxisKeep>, std::less<>> expected_;  ///< of the plan's tensors
  Cuts cuts_;
  std::set<std::string> new_names_;  ///< of tensors that are renamed
  IdVector<TensorId, TensorOutcome> outcomes_;
  CheckpointCut result_;
};

}  // namespace

std::optional<CheckpointMatch> match_names(const Plan& plan, const Checkpoint& checkpoint) {
  std::set<std::string> tensors;
  for (const TensorCut& cut : cuts_of(plan)) tensors.emplace(cut.tensor);
  for (const TensorUpdate& update : plan.updates) tensors.insert(update.tensor);
  for (const PlanRenaming& renaming : plan.renamings) tensors.insert(renaming.tensor);
  if (tensors.empty()) return std::nullopt;
  const TensorNames names(checkpoint);
  const std::string& first = *tensors.begin();
  CheckpointMatch match;
  for (const StoredTensor& tensor : checkpoint.tensors()) {
    const std::string full = dotted_name(tensor);
    if (!full.ends_with(first)) continue;
    const std::string prefix = full.substr(0, full.size() - first.size());
    if (!prefix.empty() && !prefix.ends_with('.')) continue;
    const bool has_all = std::ranges::all_of(
        tensors, [&](const std::string& name) { return names.find(prefix + name) != TensorId(); });
    if (has_all) match.copies.push_back({.prefix = prefix, .equal = match.copies.empty()});
  }
  if (match.copies.empty()) return std::nullopt;
  for (const std::string& name : tensors) {
    const TensorId id = names.find(match.copies.front().prefix + name);
    const size_t rank = checkpoint.tensors()[id].dims.size();
    match.weights.push_back({.weight = name,
                             .targets = {{.name = name, .axes = checkpoints::same_axes(rank)}},
                             .equal = true});
  }
  return match;
}

CheckpointCut cut_checkpoint(const Plan& plan, const CheckpointMatch& match, bool strict,
                             Checkpoint& checkpoint) {
  if (!plan.empty()) check_has_copy(match);
  if (!plan.blocks.empty()) {
    throw UnsupportedError(
        "the plan removes modules, which the checkpoint's class would still construct: ",
        removes_blocks(plan)
            ? "blocks; prune without --layers"
            : "experts with layers of their own; prune without granularity expert");
  }
  CheckpointCut cut = Cutter(plan, match, checkpoint).run();
  if (strict && !cut.left.empty()) {
    std::string lines;
    for (const std::string& line : cut.left) lines += "\n  " + line;
    throw UnsupportedError("--strict: ", cut.left.size(), " tensors are left as they are:", lines);
  }
  return cut;
}

}  // namespace parsimony
