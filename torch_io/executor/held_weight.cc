#include "parsimony/torch_io/executor/held_weight_impl.h"

namespace parsimony::executor {

at::Tensor HeldWeight::flags(int64_t axis) const {
  at::Tensor all;
  for (const auto& [cut, stays] : kept) {
    if (cut == axis) all = all.defined() ? all.logical_and(stays) : stays;
  }
  return all;
}

at::Tensor HeldWeight::spread(int64_t axis, const at::Tensor& stays) const {
  return along(stays, axis, index(dims.size())).expand(dims);
}

at::Tensor HeldWeight::present() const {
  at::Tensor all;
  for (const auto& [axis, stays] : kept) {
    const at::Tensor wide = spread(axis, stays);
    all = all.defined() ? all.logical_and(wide) : wide;
  }
  return all;
}

at::Tensor HeldWeight::load(bool widened) const {
  if (tensor.defined() || !read) return tensor;
  const at::Tensor whole = read(widened && !own_type);
  for (const Edit& each : edits) each(whole, *this);
  return whole;
}

void HeldWeight::edit(Edit how) {
  if (tensor.defined()) {
    how(tensor.detach(), *this);
  } else {
    edits.push_back(std::move(how));
  }
}

}  // namespace parsimony::executor
