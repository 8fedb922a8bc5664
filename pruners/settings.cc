#include "parsimony/pruners/settings.h"

#include <cmath>
#include <map>
#include <string>
#include <utility>

namespace parsimony {
namespace {

constexpr double kRounding = 1e-9;

}  // namespace

int64_t floor_of(double share, int64_t count) {
  return static_cast<int64_t>(std::floor(share * static_cast<double>(count) + kRounding));
}

int64_t ceil_of(double share, int64_t count) {
  return static_cast<int64_t>(std::ceil(share * static_cast<double>(count) - kRounding));
}

std::vector<std::vector<int>> shared_budgets(const Settings& settings) {
  std::vector<std::vector<int>> shared;
  std::map<std::pair<std::string, int>, size_t> index;
  for (size_t r = 0; r < settings.requests.size(); ++r) {
    const Request& request = settings.requests[r];
    std::string sharing = request.amount                  ? "amount"
                          : !request.global_group.empty() ? "group " + request.global_group
                          : !request.equal_width.empty()  ? "width " + request.equal_width
                                                          : "";
    if (!sharing.empty()) {
      const int budget = request.amount ? static_cast<int>(request.budget) : kNone;
      const auto [place, fresh] = index.try_emplace({std::move(sharing), budget}, shared.size());
      if (!fresh) {
        shared[place->second].push_back(static_cast<int>(r));
        continue;
      }
    }
    shared.push_back({static_cast<int>(r)});
  }
  return shared;
}

}  // namespace parsimony
