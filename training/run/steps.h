// The steps of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "parsimony/configs/recipe.h"

namespace parsimony::training {

/// Checkpoints can be written between any two steps.
struct Step {
  enum class Kind : uint8_t { kEpoch, kSearch, kCut, kScoreBefore, kScorePruned, kScoreAfter };
  Kind kind;
  int epoch = 0;     ///< within the stage; for a search, the candidate
  int epochs = 0;    ///< of the stage; for a search, the number of candidates
  bool last = true;  ///< for cuts, and for the stage after the last cut
  size_t cut = 0;    ///< its index

  bool ends_stage() const { return epoch + 1 == epochs; }
};

/// Warm-up, the search for ratios, cuts with epochs in between, and training, with the evaluations
/// that a ledger needs.
std::vector<Step> steps_of(const Recipe& recipe);

}  // namespace parsimony::training
