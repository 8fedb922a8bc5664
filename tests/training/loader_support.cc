#include "tests/training/loader_support.h"

#include <ATen/ATen.h>

#include <cstring>
#include <utility>

#include "parsimony/base/random.h"

namespace parsimony::training::data_test {

Samples some_samples(int64_t count, Shape dims) {
  Samples samples;
  samples.dims = std::move(dims);
  Random random(7);
  for (int64_t i = 0; i < count; ++i) samples.labels.push_back(i);
  samples.values.resize(count * samples.stride());
  for (std::byte& value : samples.values) value = static_cast<std::byte>(random.between(1, 255));
  return samples;
}

at::Tensor stored(const Samples& samples, int64_t index) {
  at::Tensor bytes = at::empty(samples.dims, at::kByte);
  std::memcpy(bytes.data_ptr(), samples.values.data() + index * samples.stride(), samples.stride());
  return bytes.to(at::kFloat);
}

std::vector<Batch> epoch_of(Loader& loader, int64_t epoch, int64_t first_batch) {
  loader.start(epoch, first_batch);
  std::vector<Batch> batches;
  while (auto batch = loader.next()) batches.push_back(std::move(*batch));
  return batches;
}

}  // namespace parsimony::training::data_test
