#include "parsimony/training/run/steps.h"

namespace parsimony::training {
namespace {

using enum Step::Kind;

void add_epochs(int epochs, bool last, std::vector<Step>& steps) {
  for (int epoch = 0; epoch < epochs; ++epoch) {
    steps.push_back({.kind = kEpoch, .epoch = epoch, .epochs = epochs, .last = last});
  }
}

void add_cuts(const PruneSettings& prune, std::vector<Step>& steps) {
  const bool searches = prune.schedule == PruningSchedule::kAnnealing;
  for (int i = 0; searches && i < prune.search_steps; ++i) {
    steps.push_back({.kind = kSearch, .epoch = i, .epochs = prune.search_steps});
  }
  const size_t count = cuts(prune).size();
  for (size_t i = 0; i < count; ++i) {
    const bool last = i + 1 == count;
    steps.push_back({.kind = kCut, .last = last, .cut = i});
    if (!last) add_epochs(prune.epochs_between, false, steps);
  }
  steps.push_back({.kind = kScorePruned});
}

}  // namespace

std::vector<Step> steps_of(const Recipe& recipe) {
  std::vector<Step> steps;
  if (recipe.prune) add_epochs(recipe.prune->warmup_epochs, false, steps);
  steps.push_back({.kind = kScoreBefore});
  if (recipe.prune) add_cuts(*recipe.prune, steps);
  add_epochs(recipe.train.epochs, true, steps);
  steps.push_back({.kind = kScoreAfter});
  return steps;
}

}  // namespace parsimony::training
