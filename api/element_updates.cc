#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "parsimony/api/prune_impl.h"
#include "parsimony/graph/slice.h"
#include "parsimony/pruners/elements/contraction.h"

namespace parsimony {

namespace {

class ElementUpdates {
 public:
  explicit ElementUpdates(Plan& plan) : plan_(plan), cuts_(cuts_by_tensor(plan)) {}

  ElementOutcome add(const TensorZeros& zeros, const ElementMask& mask) {
    plan_.zeros.push_back({zeros.tensor, zeros.smallest});
    plan_.updates.push_back({zeros.tensor, "its smallest elements are zero"});
    return outcome_of(mask, "level");
  }

  ElementOutcome add(const PrunedMatrix& matrix) {
    ElementOutcome outcome = outcome_of(matrix.mask, matrix.criterion);
    const int64_t bytes = size_of(matrix.dtype);
    const std::span<const AxisKeep> axes = cuts_[matrix.tensor];
    const Shape dims = sliced(matrix.mask.dims, axes);
    std::vector<std::byte> values =
        sliced_bytes(matrix.values.data(), matrix.mask.dims, bytes, axes);
    if (matrix.rule.pattern.exists()) {
      const Weight remains = {matrix.tensor, matrix.dtype, dims, values.data(), bytes};
      outcome.pattern = to_text(matrix.rule.pattern);
      outcome.axis = matrix.contraction.input;
      outcome.pattern_holds =
          elements::has_pattern(remains, matrix.contraction, matrix.rule.pattern);
    }
    const bool compensated = matrix.rule.method == ElementMethod::kSparseGpt;
    plan_.updates.push_back({matrix.tensor,
                             matrix.criterion + ": elements are zero" +
                                 (compensated ? ", the others compensate for them" : ""),
                             std::move(values), matrix.dtype, dims});
    return outcome;
  }

 private:
  ElementOutcome outcome_of(const ElementMask& mask, const std::string& criterion) {
    const std::vector<std::byte> left =
        sliced_bytes(std::as_bytes(std::span(mask.keep)).data(), mask.dims, 1, cuts_[mask.tensor]);
    ElementOutcome outcome;
    outcome.tensor = mask.tensor;
    outcome.criterion = criterion;
    outcome.elements = static_cast<int64_t>(left.size());
    outcome.zeroed = std::ranges::count(left, std::byte{0});
    return outcome;
  }

  Plan& plan_;
  TensorCuts cuts_;
};

}  // namespace

std::vector<ElementOutcome> add_elements(const ElementPruning& pruning, Plan& plan) {
  ElementUpdates updates(plan);
  std::vector<ElementOutcome> outcomes;
  for (size_t i = 0; i < pruning.zeros.size(); ++i) {
    outcomes.push_back(updates.add(pruning.zeros[i], pruning.zero_masks[i]));
  }
  for (const PrunedMatrix& matrix : pruning.matrices) outcomes.push_back(updates.add(matrix));
  return outcomes;
}

}  // namespace parsimony
