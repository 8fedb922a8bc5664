// Convolutions and windows: conv2d(x, w, b, …) -> Conv(x, w, b). Unfolding, sampling, sorting.
#include "parsimony/base/ranges.h"
#include "parsimony/programs/call.h"

namespace parsimony::programs {
namespace {

/// Returns the padding of both ends; torch pads them alike.
std::vector<int64_t> both_ends(const std::vector<int64_t>& padding) {
  std::vector<int64_t> pads = padding;
  pads.insert(pads.end(), padding.begin(), padding.end());
  return pads;
}

/// Returns the spatial dimensions of a batch; an input without a batch is not lowered.
size_t spatial(Call& call) {
  const size_t rank = call.rank(call.tensor(1).value);
  call.require(rank >= 3);
  const Shape* x = call.out.shape(call.tensor(0).value);
  call.require(x == nullptr || x->size() == rank);
  return rank - 2;
}

struct Window {
  size_t stride, padding, dilation, output_padding, group;  // positions among the arguments
};

Attributes window_attributes(const Call& call, const Window& at, size_t n) {
  Attributes attributes{{"strides", call.integers(at.stride, n)},
                        {"dilations", call.integers(at.dilation, n)}};
  attributes.with("group", call.integer(at.group), call.location(at.group));
  if (!call.arg(at.padding).is(BindingKind::kString)) {
    return attributes.with("pads", both_ends(call.integers(at.padding, n)));
  }
  const bool same = call.text(at.padding) == "same";
  return attributes.with("auto_pad", std::string(same ? "SAME_UPPER" : "VALID"));
}

void convolution(Call& call, const Window& at, bool transposed) {
  const size_t n = spatial(call);
  Attributes attributes = window_attributes(call, at, n);
  const std::vector<Operand> inputs{call.tensor(0), call.tensor(1), call.optional_tensor(2)};
  const Shape weight = call.shape(call.tensor(1).value);
  call.require(weight.size() == n + 2);
  attributes.with("kernel_shape", std::vector<int64_t>(weight.begin() + 2, weight.end()));
  if (transposed) attributes.with("output_padding", call.integers(at.output_padding, n));
  call.set_node(transposed ? "ConvTranspose" : "Conv", inputs, std::move(attributes));
}

/// Returns 2 for "max_pool2d".
size_t dims_in_name(const std::string& op) {
  const size_t d = op.find('d', op.find_first_of("123"));
  return d == std::string::npos || d == 0 ? 2 : static_cast<size_t>(op[d - 1] - '0');
}

/// max_pool2d(x, kernel, stride, padding, …), avg_pool2d likewise
Attributes pool_attributes(const Call& call, size_t n) {
  const std::vector<int64_t> kernel = call.integers(1, n);
  const bool default_stride = call.none(2) || call.integers(2).empty();
  return {{"kernel_shape", kernel},
          {"strides", default_stride ? kernel : call.integers(2, n)},
          {"pads", both_ends(call.integers(3, n))}};
}

void require_batch(Call& call, size_t n) { call.require(call.rank(call.tensor(0).value) == n + 2); }

}  // namespace

/// conv2d(x, w, b, stride, padding, dilation, groups)
void lower_conv(Call& call) { convolution(call, {3, 4, 5, 0, 6}, false); }

/// _convolution(x, w, b, stride, padding, dilation, transposed, output_padding, groups, …)
void lower_convolution(Call& call) { convolution(call, {3, 4, 5, 7, 8}, call.flag(6)); }

/// conv_transpose2d(x, w, b, stride, padding, output_padding, groups, dilation)
void lower_conv_transpose(Call& call) { convolution(call, {3, 4, 7, 5, 6}, true); }

/// max_pool2d(x, kernel, stride, padding, dilation, ceil_mode)
void lower_max_pool(Call& call) {
  const size_t n = dims_in_name(call.op);
  require_batch(call, n);
  Attributes attributes = pool_attributes(call, n);
  attributes.with("dilations", call.integers(4, n)).with("ceil_mode", call.integer(5, 0));
  const auto results =
      call.out.emit_many("MaxPool", {call.tensor(0)}, call.results.size(), attributes);
  for (size_t i = 0; i < results.size(); ++i) call.set_result(i, Binding::tensor(results[i]));
}

/// avg_pool2d(x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override)
void lower_avg_pool(Call& call) {
  const size_t n = dims_in_name(call.op);
  require_batch(call, n);
  call.require(call.none(6));
  Attributes attributes = pool_attributes(call, n);
  attributes.with("ceil_mode", call.integer(4, 0)).with("count_include_pad", call.integer(5, 1));
  call.set_node("AveragePool", {call.tensor(0)}, std::move(attributes));
}

/// adaptive_avg_pool2d(x, output_size), adaptive_max_pool2d(x, output_size): the second result, the
/// indices of the maxima, is unknown.
void lower_adaptive_pool(Call& call) {
  const size_t n = dims_in_name(call.op);
  require_batch(call, n);
  const std::vector<int64_t> sizes = call.integers(1, n);
  if (sizes == std::vector<int64_t>(n, 1)) {
    return call.set_node("Global" + call.onnx, {call.tensor(0)});
  }
  const std::vector<Operand> inputs{call.tensor(0), {}, {}, {call.out.integers(sizes)}};
  call.set_node("Adaptive" + call.onnx, inputs, {{"axes", successive(2, n + 2)}}, "torch");
}

/// upsample_nearest2d(x, output_size, …), upsample_bilinear2d(x, output_size, align_corners, …),
/// _upsample_bilinear2d_aa(…); the scales are the last arguments: a list, or a number per
/// dimension.
void lower_upsample(Call& call) {
  const Operand x = call.tensor(0);
  const size_t rank = call.rank(x.value);
  call.require(rank >= 3 && call.size() >= 2);
  const size_t n = rank - 2;
  const bool nearest = call.op.find("nearest") != std::string::npos;
  const bool exact = call.op.find("exact") != std::string::npos;
  const bool corners = !nearest && call.flag(2);
  const bool smooths = call.op.ends_with("_aa");
  const std::string cubic = call.op.find("bicubic") != std::string::npos ? "cubic" : "linear";
  Attributes attributes{{"axes", successive(2, rank)},
                        {"mode", nearest ? std::string("nearest") : cubic}};
  attributes.with("coordinate_transformation_mode", std::string(corners ? "align_corners"
                                                                : nearest && !exact ? "asymmetric"
                                                                : smooths           ? "half_pixel"
                                                                          : "pytorch_half_pixel"));
  if (nearest) attributes.with("nearest_mode", std::string(exact ? "round_prefer_ceil" : "floor"));
  if (smooths) attributes.with("antialias", int64_t{1});
  if (cubic == "cubic") attributes.with("cubic_coeff_a", smooths ? -0.5 : -0.75);
  if (!call.none(1)) {
    std::vector<Element> sizes = call.elements(1);
    call.require(sizes.size() == n);
    call.set_node("Resize", {x, {}, {}, {call.out.list_of(sizes)}}, std::move(attributes));
    return;
  }
  const Binding& list = call.arg(call.size() - 1);
  HostTensor scales{
      .dtype = DType::kFloat32, .dims = {static_cast<int64_t>(n)}, .ints = {}, .floats = {}};
  for (size_t i = 0; i < n; ++i) {
    const bool listed = list.is(BindingKind::kList) && list.items->size() == n;
    const Binding& scale = listed ? (*list.items)[i] : call.arg(call.size() - n + i);
    call.require(scale.fixed_number());
    scales.floats.push_back(scale.as_double());
  }
  call.set_node("Resize", {x, {}, {call.out.constant(scales)}}, std::move(attributes));
}

/// pixel_shuffle(x, r) -> DepthToSpace, channels outermost
void lower_pixel_shuffle(Call& call) {
  require_batch(call, 2);
  call.set_node("DepthToSpace", {call.tensor(0)},
                {{"blocksize", call.integer(1)}, {"mode", std::string("CRD")}});
}

namespace {

constexpr int64_t kMostPlaces = 1 << 20;  // of all windows together

/// Windows over one dimension.
struct Windows {
  int64_t count;
  int64_t length;
  int64_t stride;
  int64_t dilation = 1;
};

Windows windows_over(Call& call, int64_t size, int64_t length, int64_t stride,
                     int64_t dilation = 1) {
  call.require(length > 0 && stride > 0 && dilation > 0 && size > 0);
  call.require(length - 1 <= (size - 1) / dilation);
  const int64_t reach = dilation * (length - 1) + 1;
  const int64_t count = (size - reach) / stride + 1;
  call.require(count <= kMostPlaces / length);
  return {count, length, stride, dilation};
}

/// Splits dimension `axis` into windows and positions within one, or vice versa. It is pinned,
/// since the positions are not literals.
ValueId windows_of(Call& call, ValueId x, int64_t axis, const Windows& of, bool windows_first) {
  const int64_t rows = windows_first ? of.count : of.length;
  const int64_t columns = windows_first ? of.length : of.count;
  std::vector<int64_t> which;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      which.push_back((windows_first ? r : c) * of.stride + (windows_first ? c : r) * of.dilation);
    }
  }
  call.out.pin_axis(x, axis);
  const ValueId matrix = reshaped(call, call.out.integers(which), {rows, columns});
  return call.out.emit("Gather", {{x}, {matrix}}, {{"axis", axis}});
}

/// Sets the first k elements of an order and their indices.
void ordered(Call& call, int64_t k, int64_t axis, bool largest) {
  const auto found = call.out.emit_many("TopK", {call.tensor(0), {call.out.integers({k})}}, 2,
                                        {{"axis", axis}, {"largest", int64_t{largest ? 1 : 0}}});
  if (call.op == "argsort") return call.set_result(found[1]);
  call.set_result(found[0]);
  call.set_result(1, Binding::tensor(found[1]));
}

}  // namespace

/// unfold(x, dim, size, step): windows along the dimension, their elements last
void lower_unfold(Call& call) {
  const ValueId x = call.tensor(0).value;
  const Shape shape = call.shape(x);
  const int64_t axis = call.axis(call.integer(1), shape.size());
  const Windows windows = windows_over(call, shape[axis], call.integer(2), call.integer(3));
  const ValueId apart = windows_of(call, x, axis, windows, /*windows_first=*/true);
  std::vector<int64_t> perm = successive(0, shape.size() + 1);
  perm.erase(perm.begin() + axis + 1);
  perm.push_back(axis + 1);
  call.set_result(permuted(call, apart, perm));
}

/// im2col(x[n c h w], kernel, dilation, padding, stride) -> [n (c kernel) windows]
void lower_im2col(Call& call) {
  ValueId x = call.tensor(0).value;
  const Shape shape = call.shape(x);
  call.require(shape.size() == 4);
  const std::vector<int64_t> kernel = call.integers(1, 2);
  const std::vector<int64_t> dilation = call.integers(2, 2);
  const std::vector<int64_t> padding = call.integers(3, 2);
  const std::vector<int64_t> stride = call.integers(4, 2);
  if (padding != std::vector<int64_t>{0, 0}) {
    const std::vector<int64_t> pads{0, 0, padding[0], padding[1], 0, 0, padding[0], padding[1]};
    x = call.out.emit("Pad", {{x}, {call.out.integers(pads)}}, {{"mode", std::string("constant")}});
  }
  for (size_t d = 0; d < 2; ++d) {  // [n c h w] -> [n c kh oh w] -> [n c kh oh kw ow]
    call.require(padding[d] >= 0 && padding[d] <= kMostPlaces);
    const Windows windows =
        windows_over(call, shape[2 + d] + 2 * padding[d], kernel[d], stride[d], dilation[d]);
    const auto axis = static_cast<int64_t>(2 + 2 * d);
    x = windows_of(call, x, axis, windows, /*windows_first=*/false);
  }
  const Shape apart = call.shape(x);
  call.set_result(
      reshaped(call, permuted(call, x, {0, 1, 2, 4, 3, 5}), {0, -1, apart[3] * apart[5]}));
}

/// col2im(x[n (c kernel) windows], size, kernel, dilation, padding, stride) -> [n c size]
void lower_col2im(Call& call) {
  call.require(call.rank(call.tensor(0).value) == 3);
  const std::vector<int64_t> padding = call.integers(4, 2);
  const ValueId size = call.out.list_of(call.elements(1));
  const ValueId kernel = call.out.integers(call.integers(2, 2));
  call.set_node("Col2Im", {call.tensor(0), {size}, {kernel}},
                {{"dilations", call.integers(3, 2)},
                 {"pads", std::vector<int64_t>{padding[0], padding[1], padding[0], padding[1]}},
                 {"strides", call.integers(5, 2)}});
}

/// pixel_unshuffle(x[n c (h r) (w r)], r) -> [n (c r r) h w]
void lower_pixel_unshuffle(Call& call) {
  const ValueId x = call.tensor(0).value;
  const Shape shape = call.shape(x);
  const int64_t r = call.integer(1);
  call.require(shape.size() == 4 && r > 0 && shape[2] % r == 0 && shape[3] % r == 0);
  const int64_t h = shape[2] / r;
  const int64_t w = shape[3] / r;
  const ValueId apart = permuted(call, reshaped(call, x, {0, 0, h, r, w, r}), {0, 1, 3, 5, 2, 4});
  call.set_result(reshaped(call, apart, {0, -1, h, w}));
}

/// grid_sampler(x, grid, mode, padding, align_corners), grid_sampler_2d likewise
void lower_grid_sampler(Call& call) {
  constexpr const char* kModes[] = {"bilinear", "nearest", "bicubic"};
  constexpr const char* kPaddings[] = {"zeros", "border", "reflection"};
  const int64_t mode = call.integer(2);
  const int64_t padding = call.integer(3);
  call.require(mode >= 0 && mode < 3 && padding >= 0 && padding < 3);
  call.require(call.rank(call.tensor(0).value) == 4);
  call.set_node("GridSample", {call.tensor(0), call.tensor(1)},
                {{"mode", std::string(kModes[mode])},
                 {"padding_mode", std::string(kPaddings[padding])},
                 {"align_corners", int64_t{call.flag(4) ? 1 : 0}}});
}

/// topk(x, k, dim, largest, sorted) -> (values, indices)
void lower_topk(Call& call) {
  const int64_t axis = call.axis(call.integer(2, -1), call.rank(call.tensor(0).value));
  ordered(call, call.integer(1), axis, call.integer(3, 1) != 0);
}

/// sort(x, dim, descending) -> (values, indices); argsort(x, dim, descending)
void lower_sort(Call& call) {
  const Shape shape = call.shape(call.tensor(0).value);
  const int64_t axis = call.axis(call.integer(1, -1), shape.size());
  ordered(call, shape[axis], axis, call.flag(2));
}

}  // namespace parsimony::programs
