// The processor and the cores that this process may use, as reported by the system.
#pragma once

#include <cstdint>
#include <limits>
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

/// Parses the first processor in /proc/cpuinfo.
Processor parse_processor(std::string_view cpuinfo);

Processor this_processor();

Vectors vectors_of(const Processor& processor);

struct Cores {
  int online = 1;   ///< of the machine
  int allowed = 1;  ///< by the affinity mask
  /// Number of cores that the control group allows; infinite without a limit.
  double quota = std::numeric_limits<double>::infinity();
  double load = 0;  ///< runnable threads of the whole machine, mean of the last minute

  /// Returns the number of threads that can run at once, at least 1.
  int usable() const;
};

Cores these_cores();

/// Returns the tightest limit from the process's control group up to the root. `membership` is the
/// text of /proc/self/cgroup, `mount` where the hierarchy is mounted (versions 1 and 2).
/// @source https://docs.kernel.org/admin-guide/cgroup-v2.html#cpu-interface-files
double quota_of(std::string_view membership, const std::string& mount);

}  // namespace parsimony::machine
