#include "parsimony/pruners/elements/prune_matrix.h"

#include <algorithm>
#include <utility>

#include "parsimony/graph/elements.h"
#include "parsimony/masks/magnitude.h"
#include "parsimony/pruners/elements/masks.h"
#include "parsimony/pruners/elements/sparsegpt.h"
#include "parsimony/pruners/elements/view.h"
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

void check_moments(const Weight& weight, const View& view, const Eigen::MatrixXd& second) {
  const Shape found = {second.rows(), second.cols()};
  const Shape wanted = {view.places, view.places * view.groups()};
  if (found != wanted) {
    throw ModelError("tensor ", in_quotes(weight.name), ": its layer's input moments are ",
                     to_string(found), ", wanted ", to_string(wanted));
  }
  if (!second.allFinite()) {
    throw ModelError("tensor ", in_quotes(weight.name),
                     ": what its layer reads is not finite: the calibration data or the network "
                     "makes NaN or infinity");
  }
}

}  // namespace

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
