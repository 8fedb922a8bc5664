#include "parsimony/engines/machine/processor.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <sstream>

namespace parsimony::machine {
namespace {

/// Returns the value of the first line "KEY : VALUE".
std::string value_of(std::string_view text, std::string_view key) {
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || !line.starts_with(key)) continue;
    if (line.find_first_not_of(" \t", key.size()) != colon) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? std::string() : line.substr(begin);
  }
  return {};
}

bool has_all(const Processor& processor, std::initializer_list<std::string_view> flags) {
  return std::all_of(flags.begin(), flags.end(),
                     [&](std::string_view flag) { return processor.has(flag); });
}

}  // namespace

std::string_view name_of(Vectors vectors) {
  switch (vectors) {
    case Vectors::kAvx512:
      return "AVX-512";
    case Vectors::kAvx2:
      return "AVX2";
    case Vectors::kAvx:
      return "AVX";
    case Vectors::kNone:
      break;
  }
  return "no AVX";
}

bool Processor::has(std::string_view flag) const {
  return std::binary_search(flags.begin(), flags.end(), flag);
}

Processor parse_processor(std::string_view cpuinfo) {
  Processor processor;
  processor.model = value_of(cpuinfo, "model name");
  std::istringstream words(value_of(cpuinfo, "flags"));
  processor.flags = {std::istream_iterator<std::string>(words), {}};
  std::sort(processor.flags.begin(), processor.flags.end());
  return processor;
}

Processor this_processor() {
  std::ifstream file("/proc/cpuinfo");
  std::string text;
  // One processor suffices; machines may have hundreds.
  for (std::string line; std::getline(file, line) && !line.empty();) text += line + "\n";
  return parse_processor(text);
}

Vectors vectors_of(const Processor& processor) {
  if (has_all(processor, {"avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl"})) {
    return Vectors::kAvx512;
  }
  if (has_all(processor, {"avx2", "fma"})) return Vectors::kAvx2;
  return processor.has("avx") ? Vectors::kAvx : Vectors::kNone;
}

namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

double ratio_of(const std::string& quota, double period) {
  const double microseconds = std::strtod(quota.c_str(), nullptr);  // "max" and "-1" mean no limit
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
