// Gradual pruning inside the user's own training loop.
#pragma once

#include <optional>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/configs/recipe.h"
#include "parsimony/torch_io/prune.h"

namespace parsimony {

/// Prunes a live module by a schedule: after the warm-up and, if the schedule has several steps,
/// again after every `epochs_between`.
///
///     GradualPruner pruner(read_recipe("agp.json").prune.value());
///     for (int epoch = 0; epoch < epochs; ++epoch) {
///       train(model, optimizer);
///       if (auto cut = pruner.after_epoch(model, example)) carry_over(optimizer, *cut);
///     }
class GradualPruner {
 public:
  /// @throws UnsupportedError for the schedules lottery and annealing
  explicit GradualPruner(const PruneSettings& settings)
      : cuts_(cuts(settings)), wait_(settings.warmup_epochs), between_(settings.epochs_between) {
    const bool lottery = settings.schedule == PruningSchedule::kLottery;
    if (lottery || settings.schedule == PruningSchedule::kAnnealing) {
      throw UnsupportedError(
          "schedule ", in_quotes(lottery ? "lottery" : "annealing"),
          " is not supported by GradualPruner: it changes weights between cuts or tries cuts on "
          "data; use `parsimony train` or training::TrainingRun");
    }
  }

  /// Call once per epoch. If a cut is due, prunes the module like parsimony::prune, using the
  /// schedule's configuration in place of the request's, and returns the result.
  /// @throws as parsimony::prune does; the module is then unchanged
  template <typename Model>
  std::optional<Pruned> after_epoch(Model& model, const at::Tensor& example,
                                    PruneRequest request = {}, const PruneServices& services = {}) {
    if (done() || --wait_ > 0) return {};
    request.config = cuts_[next_];
    Pruned pruned = prune(model, example, request, services);
    ++next_;
    wait_ = between_;
    return pruned;
  }

  /// Whether all cuts have been made.
  bool done() const { return next_ == cuts_.size(); }

 private:
  std::vector<ConfigList> cuts_;
  size_t next_ = 0;
  int wait_;  ///< epochs until the next cut
  int between_;
};

}  // namespace parsimony
