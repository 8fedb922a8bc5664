#include "bench/support/yardstick.h"

#include <benchmark/benchmark.h>

#include <cstring>
#include <unordered_map>

#include "bench/support/pipeline.h"

namespace parsimony::bench {
namespace {

constexpr uint64_t kSpread = 0x9E3779B97F4A7C15ULL;  // 2^64 / golden ratio: no two neighbours meet

}  // namespace

std::string_view name_of(Bound bound) {
  switch (bound) {
    case Bound::kCopy:
      return "copy";
    case Bound::kRead:
      return "read";
    case Bound::kPointers:
      break;
  }
  return "pointers";
}

Yardstick::Yardstick() : from_(kBytes / sizeof(uint64_t), 1), to_(from_.size(), 2) {}

void Yardstick::copy() {
  std::memcpy(to_.data(), from_.data(), kBytes);
  benchmark::ClobberMemory();
}

void Yardstick::read() {
  uint64_t sum = 0;
  for (const uint64_t value : from_) sum += value;
  sink_ += sum;
  benchmark::DoNotOptimize(sink_);
}

/// What an analysis of a graph does: it makes small vectors, finds them by key and follows numbers
/// from one to the next.
void Yardstick::walk() {
  constexpr uint64_t kNodes = 12'000;
  std::vector<std::vector<uint32_t>> edges(kNodes);
  std::unordered_map<uint64_t, uint32_t> index;
  for (uint32_t i = 0; i < kNodes; ++i) {
    index.emplace(i * kSpread, i);
    for (uint64_t e = 0; e < 4 + i % 4; ++e) {
      edges[i].push_back(static_cast<uint32_t>((i + 1) * (e + 1) * kSpread % kNodes));
    }
  }
  uint32_t at = 0;
  for (uint64_t step = 0; step < 4 * kNodes; ++step) {
    at = index.at(edges[at][step % edges[at].size()] * kSpread);
    sink_ += at;
  }
  benchmark::DoNotOptimize(sink_);
}

double Yardstick::measure(Bound bound) {
  const Clock clock;
  switch (bound) {
    case Bound::kCopy:
      copy();
      break;
    case Bound::kRead:
      read();
      break;
    case Bound::kPointers:
      walk();
      break;
  }
  return clock.cpu();
}

}  // namespace parsimony::bench
