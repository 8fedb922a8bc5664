#include "parsimony/torch_io/executor/held_weight_impl.h"

namespace parsimony::executor {

at::Tensor HeldWeight::present() const {
  at::Tensor all;
  for (const auto& [axis, stays] : kept) {
    const at::Tensor wide = along(stays, axis, index(dims.size())).expand(dims);
    all = all.defined() ? all.logical_and(wide) : wide;
  }
  return all;
}

at::Tensor HeldWeight::load() const {
  if (tensor.defined() || !read) return tensor;
  const at::Tensor whole = read();
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
