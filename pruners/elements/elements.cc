#include "parsimony/pruners/elements/elements.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "parsimony/base/ranges.h"
#include "parsimony/masks/slice_values.h"
#include "parsimony/pruners/elements/element_tasks.h"

namespace parsimony {

namespace {

using elements::ElementTask;
using Cuts = std::map<WeightId, std::vector<AxisKeep>>;

/// What the masks leave of every weight that they cut.
Cuts cuts_of(const Graph& graph, const Coupling& coupling, const AxisMasks& masks) {
  Cuts cuts;
  for (const GroupId g : coupling.groups.ids()) {
    const auto& keep = masks.keep[g];
    if (!contains(keep, 0)) continue;
    for (const Member& member : coupling.groups[g].members) {
      cuts[graph.value(member.value).weight].push_back(
          {member.axis, member.size, kept_indices(member, keep)});
    }
  }
  for (auto& [weight, axes] : cuts) axes = merged(axes);
  return cuts;
}

class ElementPruner {
 public:
  ElementPruner(const Graph& graph, const Coupling& coupling, const Settings& settings,
                const ElementOptions& options, AxisMasks& masks)
      : graph_(graph), coupling_(coupling), settings_(settings), options_(options), masks_(masks) {}

  ElementPruning run() {
    result_.zeros = prune_elements(graph_, settings_);
    for (const ElementTask& task : elements::element_tasks(graph_, settings_)) {
      if (request_of(task).criterion != "level") tasks_.push_back(task);
    }
    cuts_ = cuts_of(graph_, coupling_, masks_);
    for (const ElementTask& task : tasks_) prune(task);
    if (result_.zeros.empty() && pruned_.empty()) return std::move(result_);
    mask_level();
    if (options_.drop_zero_channels) drop_zero_channels();
    collect();
    return std::move(result_);
  }

 private:
  const Request& request_of(const ElementTask& task) const {
    return settings_.requests[task.request];
  }

  void prune(const ElementTask& task) {
    auto outcome = elements::prune_matrix(graph_, task, request_of(task), cuts_[task.weight],
                                          options_.statistics);
    const Weight& weight = graph_.weight(task.weight);
    graph_.source->release(weight);
    if (const auto* why = std::get_if<elements::Refusal>(&outcome)) {
      result_.notes.push_back("weight \"" + weight.name + "\" keeps its elements: " + *why);
    } else {
      pruned_.emplace(task.weight, std::get<PrunedMatrix>(std::move(outcome)));
    }
  }

  void mask_level() {
    std::unordered_map<std::string_view, const Weight*> weights;
    for (const Weight& weight : graph_.weights) weights.emplace(weight.name, &weight);
    for (const TensorZeros& zeros : result_.zeros) {
      result_.zero_masks.push_back(mask_smallest(*weights.at(zeros.tensor), zeros.smallest));
    }
  }

  void drop_zero_channels() {
    std::vector<ElementMask> element_masks = result_.zero_masks;
    for (const auto& [weight, matrix] : pruned_) element_masks.push_back(matrix.mask);
    AxisMasks with_zero_channels = masks_;
    remove_zero_channels(graph_, coupling_, element_masks, with_zero_channels);
    int stay = 0;
    for (const GroupId g : coupling_.groups.ids()) {
      const Group& group = coupling_.groups[g];
      const int zero_channels = masks_.kept(g) - with_zero_channels.kept(g);
      if (!may_prune(group, options_.mixing)) continue;
      if (zero_channels > 0 && shifts_pattern(group)) {
        stay += zero_channels;
        continue;
      }
      masks_.keep[g] = std::move(with_zero_channels.keep[g]);
      result_.zero_channels += zero_channels;
    }
    if (stay > 0) {
      result_.notes.push_back(std::to_string(stay) +
                              " zero channels are kept: without them the patterns along their axis "
                              "would no longer hold");
    }
  }

  /// Whether a channel of the group is among the inputs of a matrix with a pattern.
  bool shifts_pattern(const Group& group) const {
    return std::ranges::any_of(group.members, [&](const Member& member) {
      const auto found = pruned_.find(graph_.value(member.value).weight);
      return found != pruned_.end() && found->second.rule.pattern.exists() &&
             found->second.contraction.input == member.axis;
    });
  }

  void collect() {
    for (const ElementTask& task : tasks_) {
      const auto found = pruned_.find(task.weight);
      if (found != pruned_.end()) result_.matrices.push_back(std::move(found->second));
    }
  }

  const Graph& graph_;
  const Coupling& coupling_;
  const Settings& settings_;
  const ElementOptions& options_;
  AxisMasks& masks_;
  std::vector<ElementTask> tasks_;
  Cuts cuts_;
  std::map<WeightId, PrunedMatrix> pruned_;
  ElementPruning result_;
};

}  // namespace

bool ElementPruning::only_zeros() const {
  return std::ranges::none_of(matrices, [](const PrunedMatrix& matrix) {
    return matrix.rule.method == ElementMethod::kSparseGpt;
  });
}

std::vector<ElementMask> ElementPruning::masks() const {
  std::vector<ElementMask> all = zero_masks;
  for (const PrunedMatrix& matrix : matrices) all.push_back(matrix.mask);
  return all;
}

ElementPruning zero_elements(const Graph& graph, const Coupling& coupling, const Settings& settings,
                             const ElementOptions& options, AxisMasks& masks) {
  return ElementPruner(graph, coupling, settings, options, masks).run();
}

void add_element_needs(const Graph& graph, const Settings& settings, Needs& needs) {
  for (const ElementTask& task : elements::element_tasks(graph, settings)) {
    const Request& request = settings.requests[task.request];
    if (!element_rule(request.criterion)->needs_data()) continue;
    needs.criteria.insert(request.criterion);
    const Weight& weight = graph.weight(task.weight);
    const bool fits = is_floating(weight.dtype) && elements::common_contraction(graph, task);
    if (fits) needs.inputs.insert(weight.name);
  }
}

}  // namespace parsimony
