#include "parsimony/speedup/folds.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

namespace parsimony {

const PlanFold* unexplained_fold(const Plan& plan) {
  std::unordered_set<std::string_view> zeroed;
  for (const PlanZeros& entry : plan.zeros) zeroed.insert(entry.tensor);
  const auto found = std::find_if(plan.folds.begin(), plan.folds.end(), [&](const PlanFold& fold) {
    const bool missing = fold.dtype != DType::kUnknown || !zeroed.contains(fold.tensor);
    return fold.values.empty() && missing;
  });
  return found == plan.folds.end() ? nullptr : &*found;
}

}  // namespace parsimony
