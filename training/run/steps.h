// What a run does, one step after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "parsimony/configs/recipe.h"

namespace parsimony::training {

/// A checkpoint can stand between any two steps.
struct Step {
  enum class Kind : uint8_t { kEpoch, kSearch, kCut, kScoreBefore, kScorePruned, kScoreAfter };
  Kind kind;
  int epoch = 0;     ///< within the stage; candidates of the search
  int epochs = 0;    ///< of the stage; candidates
  bool last = true;  ///< cuts, and the stage behind the last cut
  size_t cut = 0;    ///< the how manieth

  bool ends_stage() const { return epoch + 1 == epochs; }
};

/// Warm-up, the search for ratios, cuts with epochs in between, and training, with the scores that
/// a ledger wants.
std::vector<Step> steps_of(const Recipe& recipe);

}  // namespace parsimony::training
