// What this machine can do just now: work that is none of ours and is bound by what bounds ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace parsimony::bench {

/// What limits a piece of work, on any machine.
enum class Bound : uint8_t {
  kCopy,      ///< memory that is read once and written once
  kRead,      ///< memory that is read once
  kPointers,  ///< small blocks from the heap, hashes, jumps from one to the next
};

std::string_view name_of(Bound bound);

class Yardstick {
 public:
  /// Larger than a processor's caches.
  static constexpr size_t kBytes = size_t{64} << 20;

  Yardstick();

  /// Does the work once. @returns seconds of this thread's processor time: of copying or of reading
  /// kBytes, or of a fixed walk over a few thousand small vectors
  double measure(Bound bound);

 private:
  void copy();
  void read();
  void walk();

  std::vector<uint64_t> from_;
  std::vector<uint64_t> to_;
  uint64_t sink_ = 0;
};

}  // namespace parsimony::bench
