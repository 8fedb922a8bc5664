#include "parsimony/pruners/elements/contraction.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/attributes.h"
#include "parsimony/graph/operators/linear_form.h"
#include "parsimony/pruners/criterion.h"
#include "parsimony/pruners/layers.h"

namespace parsimony::elements {

namespace {

/// kNone where the layer is not pruned by elements.
int request_of(const LayerSetting& setting, const Settings& settings) {
  if (setting.state != LayerSetting::State::kPruned) return kNone;
  const Request& request = settings.requests[setting.request];
  return find_criterion(request.criterion).score == nullptr ? setting.request : kNone;
}

/// The more conservative of two requests for one matrix.
int more_careful(int a, int b, const Settings& settings) {
  if (a == kNone || b == kNone) return kNone;
  const auto ratio = [&](int r) { return settings.requests[r].ratio; };
  return ratio(b) < ratio(a) ? b : a;
}

}  // namespace

std::vector<ElementTask> element_tasks(const Graph& graph, const Settings& settings) {
  const Layers layers(graph);
  std::vector<ElementTask> tasks;
  std::map<WeightId, size_t> place;
  for (const NodeId n : graph.nodes.ids()) {
    const auto layer = n;
    if (!layers.contains(layer)) continue;
    const int request = request_of(settings.layers[n], settings);
    for (ValueId value : layers.weights(layer)) {
      const WeightId weight = graph.value(value).weight;
      const auto [found, is_new] = place.try_emplace(weight, tasks.size());
      if (is_new) tasks.push_back({weight, request, {}});
      ElementTask& task = tasks[found->second];
      task.request = more_careful(task.request, request, settings);
      task.readers.push_back({layer, value});
    }
  }
  std::erase_if(tasks, [](const ElementTask& task) { return task.request == kNone; });
  return tasks;
}

namespace {

/// Bounds the way from an operand to its weight; real ones are one or two nodes long.
constexpr int kMaxSteps = 8;

/// Returns, for each dimension of a Transpose's output, the dimension of its input.
std::vector<int> permutation(const Node& node, size_t rank) {
  std::vector<int> result(rank);
  std::iota(result.rbegin(), result.rend(), 0);
  const std::vector<int64_t> list = attrs(node, "perm");
  for (size_t i = 0; i < rank && list.size() == rank; ++i) {
    result[i] = static_cast<int>(list[i] + (list[i] < 0 ? static_cast<int64_t>(rank) : 0));
  }
  return result;
}

/// Returns, for each dimension of the operand, the dimension of the weight; empty if the operand is
/// not the weight with its axes in some order.
std::vector<int> axes_of(const Graph& graph, ValueId operand, ValueId weight) {
  const size_t rank = graph.weight_of(weight).dims.size();
  std::vector<int> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  for (int step = 0; step < kMaxSteps && operand != kNone; ++step) {
    if (operand == weight) return axes;
    const NodeId producer = graph.value(operand).producer;
    if (producer == kNone) return {};
    const Node& node = graph.node(producer);
    if (has_trait(node, kPermutes)) {
      const std::vector<int> from = permutation(node, rank);
      for (int& axis : axes) axis = from[static_cast<size_t>(axis)];
    } else if (!has_trait(node, kCopies)) {
      return {};
    }
    operand = node.inputs.empty() ? kNone : node.inputs[0];
  }
  return {};
}

}  // namespace

int operand_of(const Graph& graph, NodeId layer, ValueId weight) {
  const Node& node = graph.node(layer);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!axes_of(graph, node.inputs[i], weight).empty()) return static_cast<int>(i);
  }
  return kNone;
}

std::optional<Contraction> contraction_of(const Graph& graph, NodeId layer, ValueId weight) {
  const int operand = operand_of(graph, layer, weight);
  if (operand == kNone) return std::nullopt;
  const Node& node = graph.node(layer);
  const int rank = static_cast<int>(graph.weight_of(weight).dims.size());
  const auto form = linear_form(node, operand, static_cast<size_t>(rank));
  if (!form) return std::nullopt;
  const bool transposed = form->kind == LinearKind::kTransposedConvolution;
  if (transposed && form->groups != 1) return std::nullopt;
  const std::vector<int> axes = axes_of(graph, node.inputs[static_cast<size_t>(operand)], weight);
  const auto of_weight = [&](int axis) { return axes[static_cast<size_t>(axis)]; };
  Contraction result{.input = of_weight(form->in_axis), .groups = form->groups};
  auto& kernel = result.kernel;
  if (!transposed) std::ranges::transform(form->kernel, std::back_inserter(kernel), of_weight);
  for (int axis = 0; axis < rank; ++axis) {
    const bool summed = axis == result.input || contains(kernel, axis);
    if (!summed) result.outputs.push_back(axis);
  }
  return result;
}

std::optional<Contraction> common_contraction(const Graph& graph, const ElementTask& task) {
  std::optional<Contraction> common;
  for (const Reader& reader : task.readers) {
    const auto one = contraction_of(graph, reader.layer, reader.value);
    if (!one || (common && *one != *common)) return std::nullopt;
    common = one;
  }
  return common;
}

namespace {

std::vector<int64_t> kept(const Weight& weight, const std::vector<AxisKeep>& cuts, int axis) {
  if (const AxisKeep* cut = find_axis(cuts, axis); cut != nullptr) return cut->keep;
  std::vector<int64_t> all(weight.dims[axis]);
  std::iota(all.begin(), all.end(), int64_t{0});
  return all;
}

/// Offsets of all combinations of indices of the axes, the last axis running fastest.
std::vector<int64_t> offsets(const Weight& weight, const std::vector<AxisKeep>& cuts,
                             const std::vector<int>& axes) {
  const std::vector<int64_t> strides = dense_strides(weight.dims);
  std::vector<int64_t> result = {0};
  for (int axis : axes) {
    const std::vector<int64_t> indices = kept(weight, cuts, axis);
    std::vector<int64_t> longer;
    longer.reserve(result.size() * indices.size());
    for (int64_t base : result) {
      for (int64_t index : indices) {
        longer.push_back(base + index * strides[axis]);
      }
    }
    result = std::move(longer);
  }
  return result;
}

}  // namespace

View make_view(const Weight& weight, const Contraction& contraction,
               const std::vector<AxisKeep>& cuts) {
  View view;
  const std::vector<int64_t> strides = dense_strides(weight.dims);
  const std::vector<int64_t> positions = offsets(weight, cuts, contraction.kernel);
  const auto count = static_cast<int64_t>(positions.size());
  const size_t input = contraction.input;
  for (int64_t channel : kept(weight, cuts, contraction.input)) {
    for (int64_t p = 0; p < count; ++p) {
      view.columns.push_back({channel * strides[input] + positions[p], channel * count + p, p});
    }
  }
  view.places = weight.dims[input] * count;
  // The outputs of a grouped convolution are axis 0, divided into equal parts.
  view.rows.resize(contraction.groups);
  const int64_t part = weight.count() / contraction.groups;
  for (int64_t row : offsets(weight, cuts, contraction.outputs)) {
    view.rows[contraction.groups == 1 ? 0 : static_cast<size_t>(row / part)].push_back(row);
  }
  return view;
}

void order_by_position(View& view) {
  std::ranges::stable_sort(view.columns, {}, &View::Column::position);
}

Runs runs_of(const View& view) {
  const auto first =
      std::ranges::count_if(view.columns, [](const View::Column& c) { return c.position == 0; });
  return {std::max<int64_t>(first, 1)};
}

Matrix gather(const View& view, int64_t group, const std::vector<double>& elements) {
  const auto& rows = view.rows[group];
  Matrix matrix(static_cast<int64_t>(rows.size()), static_cast<int64_t>(view.columns.size()));
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t c = 0; c < view.columns.size(); ++c) {
      const size_t place = rows[r] + view.columns[c].offset;
      matrix(static_cast<int64_t>(r), static_cast<int64_t>(c)) = elements[place];
    }
  }
  return matrix;
}

bool has_pattern(const Weight& weight, const Contraction& contraction, NmPattern pattern) {
  // The grouping of outputs does not matter for what one output reads.
  Contraction ungrouped = contraction;
  ungrouped.groups = 1;
  View view = make_view(weight, ungrouped, {});
  order_by_position(view);
  const Runs runs = runs_of(view);
  const Matrix matrix = gather(view, 0, to_host(weight).floats);
  for (int64_t c = 0; c < matrix.cols();) {
    const int64_t end = runs.group_end(c, pattern.m);
    const auto group = matrix.middleCols(c, end - c).array();
    if (((group != 0).cast<int>().rowwise().sum() > pattern.n).any()) return false;
    c = end;
  }
  return true;
}

}  // namespace parsimony::elements
