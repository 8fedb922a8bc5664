// Converts axes and sizes to the form of opset 17.

#include "parsimony/onnx_io/export/lowering_impl.h"

namespace parsimony::onnx_io {
namespace {

NodeAttributes without(const Lowering& s, std::string_view name) {
  NodeAttributes rest;
  for (const auto& attribute : s.node().attributes) {
    if (attribute.first != name) rest.push_back(attribute);
  }
  return rest;
}

/// Widens the input: torch sums booleans and small integers as int64.
void widen(Lowering& s) {
  if (!is_floating(s.dtype())) s.inputs[0] = s.out.cast(s.in(0), DType::kInt64);
}

/// Prepends sizes of x to those in operand 3.
ValueId all_sizes(Lowering& s, size_t leading) {
  std::vector<int64_t> front(s.shape().begin(),
                             s.shape().begin() + static_cast<std::ptrdiff_t>(leading));
  if (!s.open_batch) {
    const std::vector<int64_t> back = s.known_integers(3);
    front.insert(front.end(), back.begin(), back.end());
    return s.out.integers(front);
  }
  const ValueId shape = s.out.emit("Shape", {s.in(0)});
  const ValueId first = s.out.emit(
      "Slice", {shape, s.out.integers({0}), s.out.integers({static_cast<int64_t>(leading)})});
  return s.out.emit("Concat", {first, s.in(3)}, {{"axis", int64_t{0}}});
}

/// Prepends ones to the scales in operand 2.
ValueId all_scales(Lowering& s, size_t leading) {
  const HostTensor* given = s.view.constant(2);
  s.require(given != nullptr, "its scales are unknown");
  HostTensor scales{.dtype = DType::kFloat32, .dims = {}, .ints = {}, .floats = {}};
  scales.floats.assign(leading, 1);
  for (int64_t i = 0; i < given->count(); ++i) scales.floats.push_back(given->number(i));
  scales.dims = {scales.count()};
  return s.out.constant(scales);
}

}  // namespace

/// The axes are an operand since opset 18, an attribute before.
void lower_reduce(Lowering& s) {
  if (s.node().op == "ReduceProd") widen(s);
  NodeAttributes attributes = s.node().attributes;
  if (s.in(1) != kNone) attributes.emplace_back("axes", s.known_integers(1));
  s.set_result(s.out.emit(s.node().op, {s.in(0)}, std::move(attributes)));
}

void lower_reduce_sum(Lowering& s) {
  widen(s);
  s.set_result(s.out.emit("ReduceSum", s.inputs, s.node().attributes));
}

/// Resize has the attributes axes and antialias since opset 18.
void lower_resize(Lowering& s) {
  s.require(s.view.attr("antialias", 0) == 0, "antialiased resizing needs opset 18");
  const std::vector<int64_t> axes = s.view.attrs("axes");
  const size_t leading = s.rank() - axes.size();
  s.require(!axes.empty() && axes.front() == static_cast<int64_t>(leading),
            "its axes are not the last ones");
  std::vector<ValueId> inputs{s.in(0), kNone, kNone, kNone};
  if (s.in(3) != kNone) {
    inputs[3] = all_sizes(s, leading);
  } else {
    inputs[2] = all_scales(s, leading);
  }
  s.set_result(s.out.emit("Resize", inputs, without(s, "axes")));
}

/// Appends the conjugates of the frequencies that a one-sided transform of length `n` omits.
ValueId both_sides(Lowering& s, int64_t axis, int64_t n) {
  std::vector<int64_t> omitted;
  for (int64_t k = (n - 1) / 2; k > 0; --k) omitted.push_back(k);
  if (omitted.empty()) return s.in(0);
  const ValueId rest = s.out.emit("Gather", {s.in(0), s.out.integers(omitted)}, {{"axis", axis}});
  const ValueId signs =
      s.out.constant({.dtype = s.dtype(), .dims = {2}, .ints = {}, .floats = {1, -1}});
  const ValueId conjugates = s.out.emit("Mul", {rest, signs});
  return s.out.emit("Concat", {s.in(0), conjugates}, {{"axis", axis}});
}

/// The axis is an attribute before opset 20, counted from the left, and an inverse transform takes
/// both sides.
void lower_dft(Lowering& s) {
  const int64_t given = s.in(2) == kNone ? 1 : s.known_integers(2).at(0);
  const int64_t axis = given < 0 ? given + static_cast<int64_t>(s.rank()) : given;
  const bool inverse = s.view.attr("inverse", 0) != 0;
  const bool onesided = s.view.attr("onesided", 0) != 0;
  if (!inverse || !onesided) {
    NodeAttributes attributes = s.node().attributes;
    attributes.emplace_back("axis", axis);
    return s.set_result(s.out.emit("DFT", {s.in(0), s.in(1)}, std::move(attributes)));
  }
  const int64_t frequencies = s.shape().at(static_cast<size_t>(axis));
  const int64_t n = s.in(1) == kNone ? 2 * (frequencies - 1) : s.known_integers(1).at(0);
  s.require(n / 2 + 1 == frequencies, "its length is not that of its frequencies");
  const ValueId both =
      s.out.emit("DFT", {both_sides(s, axis, n)}, {{"axis", axis}, {"inverse", int64_t{1}}});
  s.set_result(s.out.emit("Gather", {both, s.out.integers({0})}, {{"axis", int64_t{-1}}}));
}

/// ConstantOfShape: in ONNX the value has an element type.
void lower_filled(Lowering& s) {
  const DType type = s.view.graph().value(s.node().outputs[0]).dtype;
  NodeAttributes attributes = s.node().attributes;
  if (!s.view.find("value.dtype")) {
    attributes.emplace_back("value.dtype", std::string(name_of(type)));
  }
  const ValueId result = s.out.emit("ConstantOfShape", {s.in(0)}, std::move(attributes));
  s.out.set_dtype(result, type);
  s.set_result(result);
}

}  // namespace parsimony::onnx_io
