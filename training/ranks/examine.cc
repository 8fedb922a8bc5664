#include "parsimony/training/ranks/examine.h"

#include <ATen/ATen.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <map>
#include <string>

#include "parsimony/engines/timing.h"
#include "parsimony/training/ranks/group.h"

namespace parsimony::training {
namespace {

constexpr int64_t kMega = int64_t{1} << 20;
constexpr int kRounds = 9;

double seconds_of_sum(const RankGroup& group, int64_t bytes) {
  const at::Tensor numbers = at::zeros({bytes / 4}, at::kFloat);
  std::vector<double> times;
  for (int round = 0; round <= kRounds; ++round) {
    group.wait();
    const double begin = machine::steady_seconds();
    group.sum(numbers);
    if (round > 0) times.push_back(machine::steady_seconds() - begin);
  }
  return machine::summary_of(times).median;
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace

std::vector<machine::Finding> examine_ranks(const RankPlace& place) {
  const RankGroup group(place);
  std::map<std::string, int> hosts;
  for (const std::string& host : group.gather(host_name())) ++hosts[host];
  std::string where;
  for (const auto& [host, count] : hosts) {
    where += (where.empty() ? "" : ", ") + std::to_string(count) + " on " + host;
  }
  const double small = seconds_of_sum(group, 4);
  const double bucket = seconds_of_sum(group, kMega);
  const double large = seconds_of_sum(group, 25 * kMega);
  char measured[200];
  std::snprintf(
      measured, sizeof measured,
      "a sum over all takes %.2f ms for 4 bytes, %.2f ms for 1 MiB and %.1f ms for 25 MiB "
      "(%.2f GB/s)",
      1e3 * small, 1e3 * bucket, 1e3 * large, static_cast<double>(25 * kMega) / large / 1e9);
  return {{"processes", where, "", 0, ""}, {"Gloo", group.transport(), measured, 0, ""}};
}

}  // namespace parsimony::training
