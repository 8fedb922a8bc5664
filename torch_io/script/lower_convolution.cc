// Convolutions and windows: conv2d(x, w, b, …) -> Conv(x, w, b).
#include "parsimony/base/ranges.h"
#include "parsimony/torch_io/script/lowerings_impl.h"

namespace parsimony::torch_io::script {
namespace {

/// Torch pads both ends alike.
std::vector<int64_t> both_ends(const std::vector<int64_t>& padding) {
  std::vector<int64_t> pads = padding;
  pads.insert(pads.end(), padding.begin(), padding.end());
  return pads;
}

/// The spatial dimensions of a batch; an input without a batch is not lowered.
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
  call.give_node(transposed ? "ConvTranspose" : "Conv", inputs, std::move(attributes));
}

/// "max_pool2d" has windows of 2 dimensions.
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
  for (size_t i = 0; i < results.size(); ++i) call.give(i, Binding::tensor(results[i]));
}

/// avg_pool2d(x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override)
void lower_avg_pool(Call& call) {
  const size_t n = dims_in_name(call.op);
  require_batch(call, n);
  call.require(call.none(6));
  Attributes attributes = pool_attributes(call, n);
  attributes.with("ceil_mode", call.integer(4, 0)).with("count_include_pad", call.integer(5, 1));
  call.give_node("AveragePool", {call.tensor(0)}, std::move(attributes));
}

/// adaptive_avg_pool2d(x, output_size), adaptive_max_pool2d(x, output_size): the second result, the
/// places of the maxima, is left unknown.
void lower_adaptive_pool(Call& call) {
  const size_t n = dims_in_name(call.op);
  require_batch(call, n);
  const std::vector<int64_t> sizes = call.integers(1, n);
  if (sizes == std::vector<int64_t>(n, 1)) {
    return call.give_node("Global" + call.onnx, {call.tensor(0)});
  }
  const std::vector<Operand> inputs{call.tensor(0), {}, {}, {call.out.integers(sizes)}};
  call.give_node("Adaptive" + call.onnx, inputs, {{"axes", successive(2, n + 2)}}, "torch");
}

/// upsample_nearest2d(x, output_size, …), upsample_bilinear2d(x, output_size, align_corners, …);
/// the scales are the last arguments: a list, or a number per dimension.
void lower_upsample(Call& call) {
  const Operand x = call.tensor(0);
  const size_t rank = call.rank(x.value);
  call.require(rank >= 3 && call.size() >= 2);
  const size_t n = rank - 2;
  const bool nearest = call.op.find("nearest") != std::string::npos;
  const bool exact = call.op.find("exact") != std::string::npos;
  const bool corners = !nearest && call.flag(2);
  const std::string cubic = call.op.find("bicubic") != std::string::npos ? "cubic" : "linear";
  Attributes attributes{{"axes", successive(2, rank)},
                        {"mode", nearest ? std::string("nearest") : cubic}};
  attributes.with("coordinate_transformation_mode",
                  std::string(corners             ? "align_corners"
                              : nearest && !exact ? "asymmetric"
                                                  : "pytorch_half_pixel"));
  if (nearest) attributes.with("nearest_mode", std::string(exact ? "round_prefer_ceil" : "floor"));
  if (cubic == "cubic") attributes.with("cubic_coeff_a", -0.75);
  if (!call.none(1)) {
    std::vector<Element> sizes = call.elements(1);
    call.require(sizes.size() == n);
    call.give_node("Resize", {x, {}, {}, {call.out.list_of(sizes)}}, std::move(attributes));
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
  call.give_node("Resize", {x, {}, {call.out.constant(scales)}}, std::move(attributes));
}

/// pixel_shuffle(x, r) -> DepthToSpace, channels outermost
void lower_pixel_shuffle(Call& call) {
  require_batch(call, 2);
  call.give_node("DepthToSpace", {call.tensor(0)},
                 {{"blocksize", call.integer(1)}, {"mode", std::string("CRD")}});
}

}  // namespace parsimony::torch_io::script
