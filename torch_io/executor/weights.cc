#include <algorithm>
#include <vector>

#include "parsimony/base/ranges.h"
#include "parsimony/torch_io/cut.h"
#include "parsimony/torch_io/executor/weights_impl.h"
#include "parsimony/torch_io/tensor.h"

namespace parsimony::executor {

at::Tensor StoredWeight::flags(int64_t axis) const {
  at::Tensor all;
  for (const auto& [cut, stays] : kept) {
    if (cut == axis) all = both(all, stays);
  }
  return all;
}

at::Tensor StoredWeight::spread(int64_t axis, const at::Tensor& stays) const {
  return along(stays, axis, index(dims.size())).expand(dims);
}

at::Tensor StoredWeight::present() const {
  at::Tensor all;
  for (const auto& [axis, stays] : kept) {
    const at::Tensor wide = spread(axis, stays);
    all = both(all, wide);
  }
  return all;
}

at::Tensor StoredWeight::load(bool widened) const {
  if (tensor.defined() || !read) return tensor;
  // New values have the weight's stored type.
  const bool as_stored =
      std::ranges::any_of(masks, [](const TensorMask& mask) { return !mask.values.empty(); });
  at::Tensor whole = read(every_row(dims), widened && !as_stored);
  for (const TensorMask& mask : masks) torch_io::mask_values(mask, whole);
  return whole;
}

at::Tensor StoredWeight::load_rows(const Ints& rows) const {
  at::Tensor loaded = read(rows, true);
  for (const TensorMask& mask : masks) torch_io::mask_rows(mask, loaded, dims, rows);
  return loaded;
}

Ints StoredWeight::present_rows() const {
  const at::Tensor stays = flags(0);
  Ints rows = every_row(dims);
  if (!stays.defined()) return rows;
  const at::Tensor host = stays.cpu();
  std::erase_if(rows, [&](int64_t row) { return !host.data_ptr<bool>()[row]; });
  return rows;
}

bool StoredWeight::comes_in_rows() const {
  const auto only_slices = [](const TensorMask& mask) {
    return mask.smallest == 0 && mask.values.empty() && mask.elements == nullptr;
  };
  return read && !dims.empty() && std::ranges::all_of(masks, only_slices);
}

void StoredWeight::add(const TensorMask& mask) {
  if (!mask.changes_values()) return;
  if (tensor.defined()) {
    torch_io::mask_values(mask, tensor);
  } else {
    masks.push_back(mask);
  }
}

namespace {

/// Returns how many rows from there on are consecutive.
size_t neighbours(const Ints& rows, size_t from) {
  size_t to = from;
  while (to < rows.size() && rows[to] == rows[from] + index(to - from)) ++to;
  return to - from;
}

}  // namespace

Ints every_row(const Shape& dims) { return successive(0, dims.empty() ? 1 : dims[0]); }

WeightReader::WeightReader(const Graph& graph, const Weight& weight)
    : weight_(weight), source_(graph.source), made_(weight.data == nullptr && weight.count() > 0) {}

at::Tensor WeightReader::operator()(const Ints& rows, bool widened) const {
  const at::Tensor tensor = read(rows, widened);
  if (!made_ && !rows.empty()) {  // including gaps between rows: the system reads ahead
    const auto [first, last] = std::minmax_element(rows.begin(), rows.end());
    source_->release(part(*first, *last - *first + 1));
  }
  return tensor;
}

at::Tensor WeightReader::whole() const { return (*this)(every_row(weight_.dims), false); }

at::Tensor WeightReader::read(const Ints& rows, bool widened) const {
  if (rows.size() == neighbours(rows, 0) && !made_) {
    const Weight some = part(rows.empty() ? 0 : rows[0], index(rows.size()));
    return widened ? torch_io::to_floats(some) : torch_io::to_tensor(some);
  }
  const Weight shape = part(0, index(rows.size()));
  const at::Tensor tensor = at::empty(shape.dims, torch_io::stored_as(shape.dtype));
  auto* out = static_cast<std::byte*>(tensor.data_ptr());
  for (size_t i = 0, count = 0; i < rows.size(); i += count) {
    count = neighbours(rows, i);
    out = copy(rows[i], index(count), out);
  }
  return widened && is_half(tensor) ? tensor.to(at::kFloat) : tensor;
}

Weight WeightReader::part(int64_t first, int64_t count) const {
  Weight some = weight_;
  if (some.dims.empty()) return some;
  if (first > 0) some.data += first * (weight_.count() / weight_.dims[0]) * weight_.stride;
  some.dims[0] = count;
  return some;
}

/// @returns the end of the written bytes
std::byte* WeightReader::copy(int64_t first, int64_t count, std::byte* out) const {
  if (!made_) return torch_io::copy_elements(part(first, count), out);
  const std::vector<std::byte> made = source_->make(weight_, first, count);
  Weight some = part(0, count);
  some.data = made.data();
  some.stride = size_of(some.dtype);
  return torch_io::copy_elements(some, out);
}

}  // namespace parsimony::executor
