#include "bench/support/loops.h"

#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <utility>

#include "parsimony/graph/elements.h"
#include "parsimony/graph/slice.h"
#include "parsimony/masks/magnitude.h"
#include "parsimony/masks/union_find.h"
#include "parsimony/pruners/members.h"

namespace parsimony::bench {
namespace {

constexpr int64_t kBytes = int64_t{64} << 20;

/// Numbers between 1 and 2 in either float type, so that no loop meets NaNs or subnormals.
struct Memory {
  std::vector<std::byte> from = std::vector<std::byte>(kBytes);
  std::vector<std::byte> to = std::vector<std::byte>(kBytes);

  Memory() {
    uint32_t state = 1;
    for (size_t i = 0; i < from.size(); i += sizeof(uint32_t)) {
      state = state * 1664525 + 1013904223;
      // 0x3C00 and 0x3F80 are 1 in float16 and float32.
      const uint32_t bits = 0x3F803C00U | ((state >> 9) & 0x007F03FFU);
      std::memcpy(from.data() + i, &bits, sizeof bits);
    }
  }
};

Weight weight_of(const Memory& memory, DType type, Shape dims) {
  Weight weight;
  weight.name = "weight";
  weight.dtype = type;
  weight.dims = std::move(dims);
  weight.data = memory.from.data();
  weight.stride = size_of(type);
  return weight;
}

AxisKeep every_second(int axis, int64_t size) {
  AxisKeep keep{axis, size, {}};
  for (int64_t i = 0; i < size; i += 2) keep.keep.push_back(i);
  return keep;
}

void unite_at_random() {
  constexpr uint64_t kCount = 200'000;
  UnionFind sets(kCount);
  uint64_t state = 1;
  const auto draw = [&] {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<int32_t>((state >> 33) % kCount);
  };
  for (uint64_t i = 0; i < kCount; ++i) sets.unite(draw(), draw());
  benchmark::DoNotOptimize(sets.find(0));
}

}  // namespace

std::vector<Loop> inner_loops() {
  const auto memory = std::make_shared<Memory>();
  const Weight matrix = weight_of(*memory, DType::kFloat32, {4096, 4096});
  const Weight half = weight_of(*memory, DType::kFloat16, {8192, 4096});
  const Weight kernels = weight_of(*memory, DType::kFloat32, {1024, 1820, 3, 3});
  std::vector<Loop> loops;
  const auto reads = [&](const std::string& name, const Weight& weight, auto work) {
    const auto bytes = static_cast<double>(weight.count() * weight.stride);
    loops.push_back({name, Bound::kRead, bytes, [memory, weight, work] { work(weight); }});
  };
  const auto norm = [](int axis) {
    return [axis](const Weight& weight) {
      const Window window{axis, 0, weight.dims[axis]};
      benchmark::DoNotOptimize(slice_norms(weight, window, Power::kOne));
    };
  };
  reads("norm of rows", matrix, norm(0));
  reads("norm of columns", matrix, norm(1));
  reads("norm of rows, float16", half, norm(0));
  reads("search for NaN", matrix,
        [](const Weight& weight) { benchmark::DoNotOptimize(find_nan(weight)); });
  reads("half the elements", matrix, [](const Weight& weight) {
    const Weight* only = &weight;
    benchmark::DoNotOptimize(find_threshold({&only, 1}, weight.count() / 2));
  });
  const auto slices = [&](const std::string& name, const Weight& weight, int axis) {
    const AxisKeep keep = every_second(axis, weight.dims[axis]);
    const auto bytes = static_cast<double>(weight.count() * weight.stride) / 2;
    loops.push_back(
        {name, Bound::kCopy, bytes, [memory, weight, keep] {
           slice(weight.data, weight.dims, weight.stride, {&keep, 1}, memory->to.data());
           benchmark::ClobberMemory();
         }});
  };
  slices("every second row", matrix, 0);
  slices("every second column", matrix, 1);
  slices("every second kernel", kernels, 1);
  loops.push_back({"disjoint sets", Bound::kPointers, 0, unite_at_random});
  return loops;
}

}  // namespace parsimony::bench
