#include "parsimony/api/recovery/row_sums.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "parsimony/graph/attributes.h"
#include "parsimony/graph/operators/schema.h"

namespace parsimony {
namespace {

using Ints = std::vector<int64_t>;

ValueId reshape(GraphBuilder& graph, ValueId x, const Ints& dims) {
  return graph.emit("Reshape", {x, graph.integers(dims)});
}

ValueId transpose(GraphBuilder& graph, ValueId x, Ints order) {
  return graph.emit("Transpose", {x}, {{"perm", std::move(order)}});
}

ValueId in_double(GraphBuilder& graph, ValueId x) {
  return graph.emit("Cast", {x}, {{"to", int64_t{onnx_number(DType::kFloat64)}}});
}

Ints ascending(size_t rank) {
  Ints order(rank);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

/// Slices the axes after the first two.
ValueId strided(GraphBuilder& graph, ValueId x, const Ints& begin, const Ints& end,
                const Ints& steps) {
  Ints axes = ascending(steps.size());
  for (int64_t& axis : axes) axis += 2;
  return graph.emit("Slice", {x, graph.integers(begin), graph.integers(end), graph.integers(axes),
                              graph.integers(steps)});
}

/// Returns [n, (g c), ..s] as [g, n·s, c].
ValueId by_group(GraphBuilder& graph, ValueId x, int64_t groups, int64_t channels) {
  const ValueId split = reshape(graph, x, {0, groups, channels, -1});
  return reshape(graph, transpose(graph, split, {1, 0, 3, 2}), {groups, -1, channels});
}

/// A convolution along one spatial axis.
struct Window {
  int64_t kernel = 1;
  int64_t stride = 1;  ///< between the sampled positions
  int64_t dilation = 1;
  int64_t begin = 0;  ///< padding
  int64_t end = 0;

  int64_t extent() const { return (kernel - 1) * dilation + 1; }
};

std::vector<Window> windows_of(const RowsOf& rows, const Shape& x) {
  const Node& layer = rows.layer;
  const size_t axes = x.size() - 2;
  Ints strides = attrs(layer, "strides");
  Ints dilations = attrs(layer, "dilations");
  Ints pads = attrs(layer, "pads");
  strides.resize(axes, 1);
  dilations.resize(axes, 1);
  pads.resize(2 * axes, 0);
  const std::string padding = attr(layer, "auto_pad", "NOTSET");
  std::vector<Window> windows(axes);
  for (size_t i = 0; i < axes; ++i) {
    Window& window = windows[i];
    window = {rows.weight[i + 2], strides[i], dilations[i], pads[i], pads[i + axes]};
    if (!padding.starts_with("SAME")) continue;
    const int64_t positions = (x[i + 2] + window.stride - 1) / window.stride;
    const int64_t missing =
        std::max<int64_t>(0, (positions - 1) * window.stride + window.extent() - x[i + 2]);
    window.begin = padding == "SAME_UPPER" ? missing / 2 : missing - missing / 2;
    window.end = missing - window.begin;
  }
  return windows;
}

/// Pads with zeros along the axes after the first two; negative padding crops.
ValueId padded(GraphBuilder& graph, ValueId x, const std::vector<Window>& windows) {
  Ints begin;
  Ints end;
  Ints around = {0, 0};
  for (const Window& window : windows) {
    begin.push_back(std::max<int64_t>(0, -window.begin));
    end.push_back(window.end < 0 ? window.end : std::numeric_limits<int64_t>::max());
    around.push_back(std::max<int64_t>(0, window.begin));
  }
  around.insert(around.end(), {0, 0});
  for (const Window& window : windows) around.push_back(std::max<int64_t>(0, window.end));
  const auto crops = [](const Window& window) { return window.begin < 0 || window.end < 0; };
  if (std::ranges::any_of(windows, crops)) {
    x = strided(graph, x, begin, end, Ints(windows.size(), 1));
  }
  if (std::ranges::all_of(around, [](int64_t zeros) { return zeros == 0; })) return x;
  return graph.emit("Pad", {x, graph.integers(around)});
}

/// Returns the element of every window at a kernel position, counted row-major.
ValueId element_of(GraphBuilder& graph, ValueId x, const std::vector<Window>& windows,
                   int64_t place) {
  Ints begin(windows.size());
  Ints end(windows.size());
  Ints steps(windows.size());
  for (size_t i = windows.size(); i-- > 0; place /= windows[i].kernel) {
    const Window& window = windows[i];
    begin[i] = place % window.kernel * window.dilation;
    const int64_t after = window.extent() - 1 - begin[i];
    end[i] = after == 0 ? std::numeric_limits<int64_t>::max() : -after;
    steps[i] = window.stride;
  }
  return strided(graph, x, begin, end, steps);
}

/// Returns the windows of the padded x: [groups, n·positions, channels · kernel]. @param channels
/// of a group @param flipped   reverse the elements of a window
ValueId window_rows(GraphBuilder& graph, const RowsOf& rows, ValueId x, std::vector<Window> windows,
                    int64_t channels, bool flipped) {
  int64_t kernel = 1;
  for (size_t i = 0; i < windows.size(); ++i) {
    if (!rows.steps.empty()) windows[i].stride *= rows.steps[i];
    kernel *= windows[i].kernel;
  }
  std::vector<ValueId> elements;
  for (int64_t place = 0; place < kernel; ++place) {
    const ValueId element = element_of(graph, x, windows, flipped ? kernel - 1 - place : place);
    elements.push_back(graph.emit("Unsqueeze", {element, graph.integers({2})}));
  }
  const ValueId all = graph.emit("Concat", std::move(elements), {{"axis", int64_t{2}}});
  return by_group(graph, all, groups_of_layer(rows.layer), channels * kernel);
}

ValueId convolution_rows(GraphBuilder& graph, const RowsOf& rows, ValueId x, const Shape& dims) {
  const std::vector<Window> windows = windows_of(rows, dims);
  return window_rows(graph, rows, padded(graph, x, windows), windows, rows.weight[1], false);
}

/// Returns x with `stride - 1` zeros after each element.
ValueId spread(GraphBuilder& graph, ValueId x, const Shape& dims,
               const std::vector<Window>& windows) {
  Ints apart = {0, dims[1]};
  Ints wide = {0, dims[1]};
  Ints zeros(2, 0);
  for (size_t i = 0; i < windows.size(); ++i) {
    apart.insert(apart.end(), {dims[i + 2], 1});
    wide.push_back(dims[i + 2] * windows[i].stride);
    zeros.insert(zeros.end(), {0, windows[i].stride - 1});
  }
  if (std::ranges::all_of(zeros, [](int64_t n) { return n == 0; })) return x;
  zeros.insert(zeros.begin(), zeros.size(), 0);
  const ValueId padded = graph.emit("Pad", {reshape(graph, x, apart), graph.integers(zeros)});
  return reshape(graph, padded, wide);
}

/// Returns the rows of a transposed convolution: an output position sums a reversed window of the
/// spread input.
ValueId transposed_rows(GraphBuilder& graph, const RowsOf& rows, ValueId x, const Shape& dims) {
  std::vector<Window> windows = windows_of(rows, dims);
  const ValueId wide = spread(graph, x, dims, windows);
  Ints beyond = attrs(rows.layer, "output_padding");
  beyond.resize(windows.size(), 0);
  for (size_t i = 0; i < windows.size(); ++i) {
    Window& window = windows[i];
    const int64_t reach = window.extent() - 1;
    window.begin = reach - window.begin;
    window.end = reach - window.end + beyond[i] - (window.stride - 1);
    window.stride = 1;
  }
  const int64_t channels = rows.weight[0] / groups_of_layer(rows.layer);
  return window_rows(graph, rows, padded(graph, wide, windows), windows, channels, true);
}

/// Returns the axes of a matrix product's data with the contracted one last: of a first operand it
/// is the last, of a second one the second to last.
Ints contracted_last(const RowsOf& rows, size_t rank) {
  Ints order = ascending(rank);
  if (rank == 1) return order;
  const bool turned = attr(rows.layer, rows.data == 0 ? "transA" : "transB", 0) != 0;
  if (turned == (rows.data == 0)) std::swap(order[rank - 2], order[rank - 1]);
  return order;
}

ValueId matrix_rows(GraphBuilder& graph, const RowsOf& rows, ValueId x, const Shape& dims) {
  if (dims.size() == 1) return reshape(graph, x, {1, 1, -1});
  Ints order = contracted_last(rows, dims.size());
  const int64_t in = dims[order.back()];
  const ValueId last = std::ranges::is_sorted(order) ? x : transpose(graph, x, std::move(order));
  return reshape(graph, last, {1, -1, in});
}

}  // namespace

ValueId input_in_floats(GraphBuilder& graph, DType dtype, size_t count) {
  std::vector<ValueId> inputs;
  while (inputs.size() < count) inputs.push_back(graph.input(graph.unused_name(), dtype));
  const ValueId all =
      count == 1 ? inputs.front() : graph.emit("Concat", std::move(inputs), {{"axis", int64_t{0}}});
  if (dtype == DType::kFloat32) return all;
  return graph.emit("Cast", {all}, {{"to", int64_t{onnx_number(DType::kFloat32)}}});
}

int64_t enough_rows(int64_t columns) { return std::min<int64_t>(columns, 1024); }

int64_t groups_of_layer(const Node& layer) {
  const LinearKind kind = schema_of(layer).linear.kind;
  const bool convolves =
      kind == LinearKind::kConvolution || kind == LinearKind::kTransposedConvolution;
  return convolves ? attr(layer, "group", 1) : 1;
}

ValueId rows_of(GraphBuilder& graph, const RowsOf& rows, ValueId x, const Shape& dims) {
  switch (schema_of(rows.layer).linear.kind) {
    case LinearKind::kConvolution:
      return convolution_rows(graph, rows, x, dims);
    case LinearKind::kTransposedConvolution:
      return transposed_rows(graph, rows, x, dims);
    case LinearKind::kMatrixProduct:
      return matrix_rows(graph, rows, x, dims);
    default:
      return reshape(graph, x, {1, -1, rows.weight.back()});
  }
}

ValueId columns_between(GraphBuilder& graph, ValueId rows, int64_t begin, int64_t end) {
  return graph.emit("Slice",
                    {rows, graph.integers({begin}), graph.integers({end}), graph.integers({2})});
}

bool rows_join(const RowsOf& rows, const Shape& dims) {
  if (schema_of(rows.layer).linear.kind != LinearKind::kMatrixProduct) return true;
  return dims.size() > 1 && contracted_last(rows, dims.size()).front() == 0;
}

int64_t columns_of(const RowsOf& rows, const Shape& dims) {
  const Shape& weight = rows.weight;
  const auto kernel = [&] { return element_count({weight.begin() + 2, weight.end()}); };
  switch (schema_of(rows.layer).linear.kind) {
    case LinearKind::kConvolution:
      return weight[1] * kernel();
    case LinearKind::kTransposedConvolution:
      return weight[0] / groups_of_layer(rows.layer) * kernel();
    case LinearKind::kMatrixProduct:
      return dims[contracted_last(rows, dims.size()).back()];
    default:
      return weight.back();
  }
}

int64_t input_columns_of(const RowsOf& rows, const Shape& dims) {
  const bool transposed = schema_of(rows.layer).linear.kind == LinearKind::kTransposedConvolution;
  return transposed ? rows.weight[0] / groups_of_layer(rows.layer) : columns_of(rows, dims);
}

ValueId input_rows_of(GraphBuilder& graph, const RowsOf& rows, ValueId x, const Shape& dims) {
  if (schema_of(rows.layer).linear.kind != LinearKind::kTransposedConvolution) {
    return rows_of(graph, rows, x, dims);
  }
  const int64_t groups = groups_of_layer(rows.layer);
  return by_group(graph, x, groups, rows.weight[0] / groups);
}

ValueId output_rows_of(GraphBuilder& graph, const RowsOf& rows, ValueId answer, size_t rank,
                       int64_t axis, int64_t channels) {
  const int64_t groups = groups_of_layer(rows.layer);
  const Ints begin(rows.steps.size(), 0);
  const Ints end(rows.steps.size(), std::numeric_limits<int64_t>::max());
  const ValueId every =
      rows.steps.empty() ? answer : strided(graph, answer, begin, end, rows.steps);
  Ints order = ascending(rank);
  const auto place = order.begin() + (axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
  std::rotate(place, place + 1, order.end());
  const ValueId last =
      std::ranges::is_sorted(order) ? every : transpose(graph, every, std::move(order));
  return transpose(graph, reshape(graph, last, {-1, groups, channels / groups}), {1, 0, 2});
}

ValueId products(GraphBuilder& graph, ValueId a, ValueId b) {
  return graph.emit("MatMul", {transpose(graph, a, {0, 2, 1}), b});
}

ValueId channels_of(GraphBuilder& graph, ValueId answer, int64_t axis,
                    const std::vector<int64_t>& kept) {
  if (kept.empty()) return answer;
  return graph.emit("Gather", {answer, graph.integers(kept)}, {{"axis", axis}});
}

ValueId residual(GraphBuilder& graph, ValueId target, ValueId found, bool rectified) {
  const ValueId lack = graph.emit("Sub", {target, found});
  if (!rectified) return lack;
  const ValueId active = graph.emit("Greater", {target, graph.number(0, DType::kFloat32)});
  const ValueId above = graph.emit("Neg", {graph.emit("Relu", {found})});
  return graph.emit("Where", {active, lack, above});
}

ValueId sizes_of(GraphBuilder& graph, ValueId a) { return graph.emit("Shape", {a}); }

ValueId sum_of_squares(GraphBuilder& graph, ValueId a) {
  return sum_of_rows(graph, graph.emit("Mul", {a, a}));
}

ValueId sum_of_rows(GraphBuilder& graph, ValueId a) {
  return graph.emit("ReduceSum", {a, graph.integers({1})}, {{"keepdims", int64_t{0}}});
}

ValueId samples_of(GraphBuilder& graph, ValueId x, ValueId begin, ValueId end) {
  return graph.emit("Slice", {x, begin, end, graph.integers({0})});
}

ValueId where_present(GraphBuilder& graph, ValueId x, ValueId flags, std::vector<int64_t> flag_of,
                      int axis, size_t rank) {
  Ints dims(rank, 1);
  dims[static_cast<size_t>(axis)] = -1;
  const ValueId own = graph.emit("Gather", {flags, graph.integers(std::move(flag_of))});
  const ValueId is_there =
      graph.emit("Cast", {reshape(graph, own, dims)}, {{"to", int64_t{onnx_number(DType::kBool)}}});
  return graph.emit("Where", {is_there, x, graph.emit("Sub", {x, x})});
}

void sum_norms(GraphBuilder& graph, ValueId x, ValueId y, std::vector<int64_t> axes) {
  const ValueId own = graph.emit("Sub", {in_double(graph, x), in_double(graph, y)});
  const ValueId squares =
      graph.emit("ReduceSum", {graph.emit("Mul", {own, own}), graph.integers(std::move(axes))},
                 {{"keepdims", int64_t{0}}});
  const ValueId norms = graph.emit("Sqrt", {squares});
  const ValueId is_there = graph.emit("Greater", {norms, graph.number(0, DType::kFloat64)});
  for (const ValueId a : {norms, in_double(graph, is_there)}) {
    graph.output(graph.emit("ReduceSum", {a}, {{"keepdims", int64_t{0}}}));
  }
}

void sum_cosines(GraphBuilder& graph, ValueId x, ValueId y, int64_t axis, bool rectified) {
  const auto wide = [&](ValueId value) {
    return in_double(graph, rectified ? graph.emit("Relu", {value}) : value);
  };
  const ValueId a = wide(x);
  const ValueId b = wide(y);
  const auto product = [&](ValueId left, ValueId right) {
    return graph.emit("ReduceSum", {graph.emit("Mul", {left, right}), graph.integers({axis})},
                      {{"keepdims", int64_t{0}}});
  };
  const ValueId aa = product(a, a);
  const ValueId bb = product(b, b);
  const auto is_zero = [&](ValueId value) {
    return graph.emit("Equal", {value, graph.number(0, DType::kFloat64)});
  };
  const ValueId alike = in_double(graph, graph.emit("And", {is_zero(aa), is_zero(bb)}));
  const ValueId lengths = graph.emit("Mul", {graph.emit("Sqrt", {aa}), graph.emit("Sqrt", {bb})});
  // A product with a zero vector is zero for any denominator.
  constexpr double kNotZero = std::numeric_limits<double>::min();
  const ValueId over = graph.emit("Max", {lengths, graph.number(kNotZero, DType::kFloat64)});
  const ValueId cosine = graph.emit("Add", {graph.emit("Div", {product(a, b), over}), alike});
  graph.output(graph.emit("ReduceSum", {cosine}, {{"keepdims", int64_t{0}}}));
  graph.output(graph.emit("Size", {cosine}));
}

void sum_channels(GraphBuilder& graph, ValueId x, size_t rank) {
  const ValueId wide = in_double(graph, x);
  Ints axes = ascending(rank);
  axes.erase(axes.begin() + 1);
  for (const ValueId a : {wide, graph.emit("Mul", {wide, wide})}) {
    graph.output(graph.emit("ReduceSum", {a, graph.integers(axes)}, {{"keepdims", int64_t{0}}}));
  }
}

}  // namespace parsimony
