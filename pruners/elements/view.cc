#include "parsimony/pruners/elements/view.h"

#include <algorithm>
#include <numeric>

namespace parsimony::elements {

namespace {

std::vector<int64_t> kept(const Weight& weight, const std::vector<AxisKeep>& cuts, int axis) {
  if (const AxisKeep* cut = find_axis(cuts, axis); cut != nullptr) return cut->keep;
  std::vector<int64_t> all(weight.dims[axis]);
  std::iota(all.begin(), all.end(), int64_t{0});
  return all;
}

std::vector<int64_t> strides_of(const Shape& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

/// Offsets of all combinations of indices of the axes, the last axis running fastest.
std::vector<int64_t> offsets(const Weight& weight, const std::vector<AxisKeep>& cuts,
                             const std::vector<int>& axes) {
  const std::vector<int64_t> strides = strides_of(weight.dims);
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
  const std::vector<int64_t> strides = strides_of(weight.dims);
  const std::vector<int64_t> positions = offsets(weight, cuts, contraction.kernel);
  const auto count = static_cast<int64_t>(positions.size());
  const size_t input = contraction.input;
  for (int64_t channel : kept(weight, cuts, contraction.input)) {
    for (int64_t p = 0; p < count; ++p) {
      view.columns.push_back({channel * strides[input] + positions[p], channel * count + p, p});
    }
  }
  view.places = weight.dims[input] * count;
  // Of a grouped convolution the outputs are axis 0, divided into equal parts.
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
  // Which outputs belong together does not matter for what one output reads.
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
