// How many cores this process may use.
#pragma once

#include <limits>
#include <string>
#include <string_view>

namespace parsimony::machine {

struct Cores {
  int online = 1;   ///< of the machine
  int allowed = 1;  ///< by the affinity mask
  /// Number of cores that the control group allows; infinite without a limit.
  double quota = std::numeric_limits<double>::infinity();
  double load = 0;  ///< runnable threads of the whole machine, mean of the last minute

  /// The threads that can run at once: at least 1.
  int usable() const;
};

Cores these_cores();

/// The tightest limit from the process's control group up to the root. `membership` is the text of
/// /proc/self/cgroup, `mount` where the hierarchy is mounted (versions 1 and 2).
/// @source https://docs.kernel.org/admin-guide/cgroup-v2.html#cpu-interface-files
double quota_of(std::string_view membership, const std::string& mount);

}  // namespace parsimony::machine
