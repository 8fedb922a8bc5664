#include <algorithm>

#include "parsimony/torch_io/cut.h"
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
  // New values are of the type in which the weight is stored.
  const bool as_stored =
      std::ranges::any_of(masks, [](const TensorMask& mask) { return !mask.values.empty(); });
  at::Tensor whole = read(every_row(dims), widened && !as_stored);
  for (const TensorMask& mask : masks) torch_io::mask_values(mask, whole);
  return whole;
}

at::Tensor HeldWeight::load_rows(const Ints& rows) const {
  at::Tensor loaded = read(rows, true);
  for (const TensorMask& mask : masks) torch_io::mask_rows(mask, loaded, dims, rows);
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

bool HeldWeight::comes_in_rows() const {
  const auto only_slices = [](const TensorMask& mask) {
    return mask.smallest == 0 && mask.values.empty() && mask.elements == nullptr;
  };
  return read && !dims.empty() && std::ranges::all_of(masks, only_slices);
}

void HeldWeight::add(const TensorMask& mask) {
  if (!mask.changes_values()) return;
  if (tensor.defined()) {
    torch_io::mask_values(mask, tensor);
  } else {
    masks.push_back(mask);
  }
}

}  // namespace parsimony::executor
