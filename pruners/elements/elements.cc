#include "parsimony/pruners/elements/elements.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/elements.h"
#include "parsimony/masks/magnitude.h"
#include "parsimony/masks/slice_values.h"
#include "parsimony/pruners/elements/contraction.h"
#include "parsimony/pruners/elements/matrix.h"
#include "parsimony/pruners/errors.h"

namespace parsimony::elements {

namespace {

/// The moments of what group `group` reads, of the columns in the view, in their order.
Eigen::MatrixXd moments_of(const Eigen::MatrixXd& second, const View& view, int64_t group) {
  std::vector<int64_t> places;
  for (const View::Column& column : view.columns) places.push_back(column.place);
  std::vector<int64_t> of_group = places;
  for (int64_t& place : of_group) place += group * view.places;
  return second(places, of_group);
}

class MatrixPruner {
 public:
  MatrixPruner(const Weight& weight, const ElementRule& rule, const Request& request, View view,
               const Eigen::MatrixXd* second)
      : weight_(weight),
        rule_(rule),
        ratio_(rule.pattern.exists()
                   ? rule.pattern.ratio()
                   : std::clamp(request.ratio, request.min_ratio, request.max_ratio)),
        view_(std::move(view)),
        second_(second),
        elements_(to_host(weight).floats) {}

  void run(PrunedMatrix& result) {
    result.values = dense_bytes(weight_);
    result.mask = {weight_.name, weight_.dims, {}};
    result.mask.keep.assign(weight_.count(), 0);
    for (int64_t group = 0; group < view_.groups(); ++group) prune(group, result);
    for (size_t i = 0; i < result.mask.keep.size(); ++i) {
      if (result.mask.keep[i] == 0) put(0, static_cast<int64_t>(i), result);
    }
  }

 private:
  void prune(int64_t group, PrunedMatrix& result) const {
    const Matrix weights = gather(view_, group, elements_);
    if (rule_.method == ElementMethod::kSparseGpt) {
      const SparseGptOptions options{
          .ratio = ratio_, .pattern = rule_.pattern, .runs = runs_of(view_)};
      const auto found = sparsegpt(weights, moments_of(*second_, view_, group), options);
      visit(group,
            [&](int64_t r, int64_t c, int64_t place) { put(found.weights(r, c), place, result); });
      scatter(found.keep, group, result.mask);
    } else {
      scatter(choose(weights, group), group, result.mask);
    }
  }

  Keep choose(const Matrix& weights, int64_t group) const {
    if (rule_.method == ElementMethod::kBlock) {
      return keep_blocks(weights, rule_.block_rows, rule_.block_columns, ratio_, runs_of(view_));
    }
    const Matrix scores = rule_.method == ElementMethod::kWanda
                              ? wanda_scores(weights, moments_of(*second_, view_, group))
                              : Matrix(weights.cwiseAbs());
    if (rule_.pattern.exists()) return keep_n_of_m(scores, rule_.pattern, runs_of(view_));
    return keep_of_rows(scores, ratio_);
  }

  void put(double value, int64_t place, PrunedMatrix& result) const {
    write_number(value, weight_.dtype, result.values.data() + place * width_);
  }

  void scatter(const Keep& keep, int64_t group, ElementMask& mask) const {
    visit(group, [&](int64_t r, int64_t c, int64_t place) { mask.keep[place] = keep(r, c); });
  }

  template <typename Use>
  void visit(int64_t group, const Use& use) const {
    const auto& rows = view_.rows[group];
    for (size_t r = 0; r < rows.size(); ++r) {
      for (size_t c = 0; c < view_.columns.size(); ++c) {
        use(static_cast<int64_t>(r), static_cast<int64_t>(c), rows[r] + view_.columns[c].offset);
      }
    }
  }

  const Weight& weight_;
  const int64_t width_ = size_of(weight_.dtype);
  const ElementRule rule_;
  const double ratio_;
  const View view_;
  const Eigen::MatrixXd* second_;
  const std::vector<double> elements_;
};

}  // namespace

void check_moments(const Weight& weight, const View& view, const Eigen::MatrixXd& second) {
  const Shape found = {second.rows(), second.cols()};
  const Shape expected = {view.places, view.places * view.groups()};
  if (found != expected) {
    throw ModelError("tensor ", in_quotes(weight.name), ": its layer's input moments are ",
                     to_string(found), ", expected ", to_string(expected));
  }
  if (!second.allFinite()) {
    throw ModelError("tensor ", in_quotes(weight.name),
                     ": what its layer reads is not finite: the calibration data or the network "
                     "makes NaN or infinity");
  }
}

std::variant<PrunedMatrix, Refusal> prune_matrix(const Graph& graph, const ElementTask& task,
                                                 const Request& request,
                                                 const std::vector<AxisKeep>& cuts,
                                                 const Statistics* statistics) {
  const Weight& weight = graph.weight(task.weight);
  const ElementRule rule = element_rule(request.criterion).value();
  if (!is_floating(weight.dtype)) {
    return "it is stored as " + std::string(name_of(weight.dtype));
  }
  const auto contraction = common_contraction(graph, task);
  if (!contraction) {
    return "node \"" + label_of(graph, graph.node(task.readers[0].layer)) +
           "\" does not multiply with it along one input axis";
  }
  View view = make_view(weight, *contraction, cuts);
  const bool by_position = rule.pattern.exists() || rule.method == ElementMethod::kBlock;
  if (by_position) order_by_position(view);
  if (rule.pattern.exists() && runs_of(view).length < rule.pattern.m) {
    return "its input axis of " + std::to_string(runs_of(view).length) +
           " is shorter than a group of " + std::to_string(rule.pattern.m);
  }
  const Eigen::MatrixXd* second = nullptr;
  if (rule.needs_data()) {
    if (statistics == nullptr) throw errors::needs_data(request.criterion);
    const auto found = statistics->inputs.find(weight.name);
    if (found == statistics->inputs.end()) return "what its layer reads was not measured";
    second = &found->second.second;
    check_moments(weight, view, *second);
  }
  reject_nan(weight);
  PrunedMatrix result{weight.name, weight.dtype, request.criterion, rule, *contraction, {}, {}};
  MatrixPruner(weight, rule, request, std::move(view), second).run(result);
  return result;
}

}  // namespace parsimony::elements

namespace parsimony {

namespace {

using elements::ElementTask;
using Cuts = std::map<WeightId, std::vector<AxisKeep>>;

/// Returns what the masks leave of every weight that they cut.
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
