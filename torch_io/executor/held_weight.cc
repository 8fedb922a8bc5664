#include "parsimony/torch_io/executor/held_weight_impl.h"
#include "parsimony/torch_io/executor/weight_reader_impl.h"

namespace parsimony::executor {

at::Tensor HeldWeight::flags(int64_t axis) const {
  at::Tensor all;
  for (const auto& [cut, stays] : kept) {
    if (cut == axis) all = both(all, stays);
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
    all = both(all, wide);
  }
  return all;
}

at::Tensor HeldWeight::load(bool widened) const {
  if (tensor.defined() || !read) return tensor;
  const Ints all = every_row(dims);
  at::Tensor whole = read(all, widened && !own_type);
  for (const Edit& each : edits) each(whole, *this);
  for (const RowEdit& each : row_edits) each(whole, all);
  return whole;
}

at::Tensor HeldWeight::load_rows(const Ints& rows) const {
  at::Tensor loaded = read(rows, true);
  for (const RowEdit& each : row_edits) each(loaded, rows);
  return loaded;
}

Ints HeldWeight::present_rows() const {
  const at::Tensor stays = flags(0);
  Ints rows = every_row(dims);
  if (!stays.defined()) return rows;
  const at::Tensor host = stays.cpu();
  std::erase_if(rows, [&](int64_t row) { return !host.data_ptr<bool>()[row]; });
  return rows;
}

void HeldWeight::edit(Edit how) {
  if (tensor.defined()) {
    how(tensor.detach(), *this);
  } else {
    edits.push_back(std::move(how));
  }
}

void HeldWeight::edit(RowEdit how) {
  if (tensor.defined()) {
    how(tensor.detach(), every_row(dims));
  } else {
    row_edits.push_back(std::move(how));
  }
}

}  // namespace parsimony::executor
