// From the indices of a dimension to the channels of a group.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace parsimony::training {

/// Sums over all dimensions except one, in double. [size of the dimension]
inline at::Tensor sum_but(const at::Tensor& x, int64_t dim) {
  std::vector<int64_t> others;
  for (int64_t i = 0; i < x.dim(); ++i) {
    if (i != dim) others.push_back(i);
  }
  return others.empty() ? x.to(at::kDouble) : at::sum(x, others, false, at::kDouble);
}

/// Scatter-adds values [.., indices] to channels [.., size], in double, on the processor;
/// `channels` is `size` for indices of other groups.
inline at::Tensor by_channel(const at::Tensor& values, const at::Tensor& channels, int64_t size) {
  std::vector<int64_t> dims = values.sizes().vec();
  dims.back() = size + 1;
  return at::zeros(dims, values.options())
      .index_add_(-1, channels.to(values.device()), values)
      .narrow(-1, 0, size)
      .cpu();
}

inline std::vector<double> to_vector(const at::Tensor& values) {
  const at::Tensor own = values.contiguous();
  return {own.data_ptr<double>(), own.data_ptr<double>() + own.numel()};
}

}  // namespace parsimony::training
