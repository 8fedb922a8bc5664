#include "parsimony/engines/machine/cores.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace parsimony::machine {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

double ratio_of(const std::string& quota, double period) {
  const double microseconds = std::strtod(quota.c_str(), nullptr);  // "max" and "-1" are no limit
  return microseconds > 0 && period > 0 ? microseconds / period : kUnlimited;
}

double quota_in(const std::string& folder) {
  std::string quota;
  double period = 0;
  if (std::ifstream file(folder + "/cpu.max"); file >> quota >> period) {
    return ratio_of(quota, period);
  }
  std::ifstream(folder + "/cpu.cfs_period_us") >> period;
  std::ifstream(folder + "/cpu.cfs_quota_us") >> quota;
  return ratio_of(quota, period);
}

double tightest(const std::string& mount, std::string group) {
  double quota = quota_in(mount);
  while (group.size() > 1) {
    quota = std::min(quota, quota_in(mount + group));
    group.erase(group.rfind('/'));
  }
  return quota;
}

int allowed_cores(int online) {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return online;  // more than 1024 processors
  return std::max(1, CPU_COUNT(&mask));
}

}  // namespace

int Cores::usable() const {
  return std::max(1, static_cast<int>(std::min<double>(allowed, std::ceil(quota))));
}

double quota_of(std::string_view membership, const std::string& mount) {
  std::istringstream lines{std::string(membership)};
  double quota = kUnlimited;
  for (std::string line; std::getline(lines, line);) {
    // "4:cpu,cpuacct:/group" of version 1, "0::/group" of version 2
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) quota = std::min(quota, tightest(mount, group));
    if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      quota = std::min(quota, tightest(mount + "/" + controllers, group));
    }
  }
  return quota;
}

Cores these_cores() {
  Cores cores;
  cores.online = static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  cores.allowed = allowed_cores(cores.online);
  std::ostringstream membership;
  membership << std::ifstream("/proc/self/cgroup").rdbuf();
  cores.quota = quota_of(membership.str(), "/sys/fs/cgroup");
  std::array<double, 1> load{};
  if (getloadavg(load.data(), 1) == 1) cores.load = load[0];
  return cores;
}

}  // namespace parsimony::machine
