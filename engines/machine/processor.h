// Capabilities of the processor, as reported by the system.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace parsimony::machine {

/// The widest vectors that kernels for matrix products are written for, in ascending order.
enum class Vectors : uint8_t { kNone, kAvx, kAvx2, kAvx512 };

/// "AVX-512"
std::string_view name_of(Vectors vectors);

struct Processor {
  std::string model;               ///< "AMD EPYC"
  std::vector<std::string> flags;  ///< of /proc/cpuinfo, sorted: "avx2", "fma"

  bool has(std::string_view flag) const;
};

/// Parses /proc/cpuinfo; the first processor is taken for all.
Processor parse_processor(std::string_view cpuinfo);

Processor this_processor();

Vectors vectors_of(const Processor& processor);

}  // namespace parsimony::machine
