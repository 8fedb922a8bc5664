// Pooling to a given size: window i of n over a dimension of s elements begins at floor(i s / n)
// and ends before ceil((i + 1) s / n). Where n divides s all windows are alike.
// @source at::adaptive_avg_pool2d

#include "parsimony/onnx_io/export/lowering_impl.h"

namespace parsimony::onnx_io {
namespace {

struct Part {
  int64_t begin, end;
};

Part part(int64_t i, int64_t parts, int64_t size) {
  return {i * size / parts, ((i + 1) * size + parts - 1) / parts};
}

struct WindowSizes {
  std::vector<int64_t> from, to;
  bool same = true, divide = true;
};

/// Of the dimensions after the channels.
WindowSizes sizes_of(const Lowering& s) {
  WindowSizes sizes;
  sizes.to = s.known_integers(3);
  sizes.from.assign(s.shape().begin() + 2, s.shape().end());
  s.require(sizes.to.size() == sizes.from.size(), "it has another number of sizes");
  for (size_t i = 0; i < sizes.to.size(); ++i) {
    s.require(sizes.to[i] > 0 && sizes.from[i] > 0, "a size is 0");
    sizes.same = sizes.same && sizes.to[i] == sizes.from[i];
    sizes.divide = sizes.divide && sizes.from[i] % sizes.to[i] == 0;
  }
  return sizes;
}

void windows(Lowering& s, const std::string& op, const WindowSizes& sizes) {
  std::vector<int64_t> kernel;
  for (size_t i = 0; i < sizes.to.size(); ++i) kernel.push_back(sizes.from[i] / sizes.to[i]);
  s.give(s.out.emit(op, {s.in(0)}, {{"kernel_shape", kernel}, {"strides", kernel}}));
}

/// [size, parts]: each column averages one window.
ValueId averages(Lowering& s, int64_t size, int64_t parts) {
  HostTensor matrix{.dtype = s.dtype(), .dims = {size, parts}, .ints = {}, .floats = {}};
  matrix.floats.resize(size * parts);
  for (int64_t i = 0; i < parts; ++i) {
    const Part window = part(i, parts, size);
    for (int64_t k = window.begin; k < window.end; ++k) {
      matrix.floats[k * parts + i] = 1.0 / static_cast<double>(window.end - window.begin);
    }
  }
  return s.out.constant(matrix);
}

ValueId swapped_with_last(Lowering& s, ValueId x, size_t axis) {
  std::vector<int64_t> perm;
  for (size_t d = 0; d < s.rank(); ++d) perm.push_back(static_cast<int64_t>(d));
  std::swap(perm[axis], perm.back());
  return s.out.emit("Transpose", {x}, {{"perm", perm}});
}

ValueId averaged(Lowering& s, ValueId x, size_t axis, int64_t size, int64_t parts) {
  const bool last = axis + 1 == s.rank();
  if (!last) x = swapped_with_last(s, x, axis);
  x = s.out.emit("MatMul", {x, averages(s, size, parts)});
  return last ? x : swapped_with_last(s, x, axis);
}

ValueId largest(Lowering& s, ValueId x, int64_t axis, int64_t size, int64_t parts) {
  std::vector<ValueId> slices;
  for (int64_t i = 0; i < parts; ++i) {
    const Part window = part(i, parts, size);
    const ValueId slice = s.out.emit(
        "Slice",
        {x, s.out.integers({window.begin}), s.out.integers({window.end}), s.out.integers({axis})});
    slices.push_back(s.out.emit("ReduceMax", {slice},
                                {{"axes", std::vector<int64_t>{axis}}, {"keepdims", int64_t{1}}}));
  }
  return slices.size() == 1 ? slices[0] : s.out.emit("Concat", slices, {{"axis", axis}});
}

}  // namespace

void lower_adaptive_average_pool(Lowering& s) {
  const WindowSizes sizes = sizes_of(s);
  if (sizes.same) return s.give(s.out.emit("Identity", {s.in(0)}));
  if (sizes.divide) return windows(s, "AveragePool", sizes);
  ValueId x = s.in(0);
  for (size_t i = 0; i < sizes.to.size(); ++i) {
    if (sizes.to[i] != sizes.from[i]) x = averaged(s, x, i + 2, sizes.from[i], sizes.to[i]);
  }
  s.give(x);
}

void lower_adaptive_max_pool(Lowering& s) {
  const WindowSizes sizes = sizes_of(s);
  if (sizes.same) return s.give(s.out.emit("Identity", {s.in(0)}));
  if (sizes.divide) return windows(s, "MaxPool", sizes);
  ValueId x = s.in(0);
  for (size_t i = 0; i < sizes.to.size(); ++i) {
    const auto axis = static_cast<int64_t>(i) + 2;
    if (sizes.to[i] != sizes.from[i]) x = largest(s, x, axis, sizes.from[i], sizes.to[i]);
  }
  s.give(x);
}

}  // namespace parsimony::onnx_io
