// GroupNormalization(x[n (g c) ..s], gamma[(g c)], beta[(g c)]):
//   [n g (c ..s)] -> InstanceNormalization -> [n (g c) ..s] · gamma + beta
// @source GroupNormalization of opset 18
#include "parsimony/onnx_io/export/lowering_impl.h"

namespace parsimony::onnx_io {
namespace {

ValueId filled(Lowering& s, int64_t count, double number) {
  HostTensor tensor{.dtype = s.dtype(), .dims = {count}, .ints = {}, .floats = {}};
  tensor.floats.assign(count, number);
  return s.out.constant(tensor);
}

/// [c] -> [c 1 ..1], so that it stands along dimension 1 of x.
ValueId column(Lowering& s, ValueId vector) {
  std::vector<int64_t> axes;
  for (size_t d = 1; d + 1 < s.rank(); ++d) axes.push_back(static_cast<int64_t>(d));
  return axes.empty() ? vector : s.out.emit("Unsqueeze", {vector, s.out.integers(axes)});
}

}  // namespace

void lower_group_normalization(Lowering& s) {
  const int64_t groups = s.view.attr("num_groups", 0);
  s.require(groups > 0, "it has no groups");
  Shape back = s.shape();
  back[0] = 0;  // as it is
  const ValueId apart = s.out.emit("Reshape", {s.in(0), s.out.integers({0, groups, -1})});
  const ValueId normal =
      s.out.emit("InstanceNormalization", {apart, filled(s, groups, 1), filled(s, groups, 0)},
                 {{"epsilon", std::get<double>(*s.view.find("epsilon"))}});
  const ValueId together = s.out.emit("Reshape", {normal, s.out.integers(back)});
  const ValueId scaled = s.out.emit("Mul", {together, column(s, s.in(1))});
  s.give(s.out.emit("Add", {scaled, column(s, s.in(2))}));
}

}  // namespace parsimony::onnx_io
