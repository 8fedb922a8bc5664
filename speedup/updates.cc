#include "parsimony/speedup/updates.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

namespace parsimony {

const TensorUpdate* incomplete_update(const Plan& plan) {
  std::unordered_set<std::string_view> zeroed;
  for (const PlanZeros& entry : plan.zeros) zeroed.insert(entry.tensor);
  const auto found =
      std::find_if(plan.updates.begin(), plan.updates.end(), [&](const TensorUpdate& update) {
        const bool missing = update.dtype != DType::kUnknown || !zeroed.contains(update.tensor);
        return update.values.empty() && missing;
      });
  return found == plan.updates.end() ? nullptr : &*found;
}

}  // namespace parsimony
