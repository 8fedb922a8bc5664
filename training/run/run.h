// One recipe on one network: warm-up, pruning and training in steps, between which checkpoints can
// be written.
#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/configs/recipe.h"
#include "parsimony/data/dataset.h"
#include "parsimony/report/event_file.h"
#include "parsimony/report/ledger.h"
#include "parsimony/training/loop/labelled.h"
#include "parsimony/training/loop/trainer.h"
#include "parsimony/training/net/trainable_model.h"
#include "parsimony/training/run/between_cuts.h"
#include "parsimony/training/run/ratio_search.h"
#include "parsimony/training/run/record.h"

namespace parsimony::training {

/// A step; checkpoints can be written between any two.
struct Step {
  enum class Kind : uint8_t { kEpoch, kSearch, kCut, kScoreBefore, kScorePruned, kScoreAfter };
  Kind kind;
  int epoch = 0;     ///< within the stage; for a search, the candidate
  int epochs = 0;    ///< of the stage; for a search, the number of candidates
  bool last = true;  ///< for cuts, and for the stage after the last cut
  size_t cut = 0;    ///< its index

  bool ends_stage() const { return epoch + 1 == epochs; }
};

struct TrainingRunOptions {
  c10::Device device{c10::kCPU};
  bool channels_last = false;
  bool verify = true;                ///< verify every cut
  bool latency = true;               ///< measure latency of the dense and the small network
  const RankGroup* ranks = nullptr;  ///< that train together; rank 0 plans the cuts
  TrainedModule* teacher =
      nullptr;  ///< for distillation; by default the dense network before its first cut
  Trace* trace = nullptr;
  EventFile* events = nullptr;  ///< for TensorBoard; its steps are epochs, over all stages
  std::string scratch = {};     ///< a folder to create and remove; empty: a temporary one
  std::function<void(const std::string& line)> say = {};  ///< called at every step
};

/// Returns the key of a run in ledgers and checkpoints: a hash of everything that determines its
/// result. The processor affects only the last bits.
/// @param teacher  file of another network to learn from; empty: none. @throws IoError for it
std::string run_key(const LedgerOrigin::Model& model, const Dataset& data,
                    const std::string& settings, const std::string& teacher = {});

class TrainingRun {
 public:
  /// Seeds libtorch's generator; `make` creates the network, with new weights if it has none.
  /// `data` must outlive the run.
  TrainingRun(const std::function<std::unique_ptr<TrainableModel>()>& make, const Dataset& data,
              const Recipe& recipe, TrainingRunOptions options);
  TrainingRun(const TrainingRun&) = delete;  // stages refer to it
  TrainingRun& operator=(const TrainingRun&) = delete;

  bool done() const { return next_ == steps_.size(); }
  /// Whether the warm-up is over.
  bool is_warm() const;
  /// Runs an epoch, a cut or an evaluation.
  void step();

  /// Writes a checkpoint: values, optimizer, random state and results so far. @throws IoError
  void save(const std::string& path, const std::string& key) const;
  /// Resumes from a checkpoint; returns false if there is none.
  /// @throws ConfigError if it belongs to another run; ModelError if it is not a checkpoint
  bool load(const std::string& path, const std::string& key);

  /// Returns the results so far. The caller fills in key, model, machine and command.
  const LedgerPoint& point() const { return record_.point; }
  const std::vector<Plan>& plans() const { return record_.plans; }
  TrainableModel& net() { return *net_; }
  /// Returns zeros, [1, …].
  at::Tensor example() const;

 private:
  void begin_stage(const Step& step);
  void epoch(const Step& step);
  void stop_early(const Step& step, const LedgerPoint::Score& score);
  PruneRequest cut_request(const ConfigList& config) const;
  PruneServices cut_services(const ConfigList& config) const;
  void begin_search();
  void search(const Step& step);
  void cut(const Step& step);
  /// @param seconds  set to this rank's time, without waiting for others
  PruneResult pruned(const ConfigList& config, double& seconds);
  void agree_on_weights() const;
  bool leads() const { return options_.ranks == nullptr || options_.ranks->is_first(); }
  void teach_by(std::unique_ptr<TrainableModel> dense);
  /// `of` is the end of its tag in event files.
  LedgerPoint::Score score(const std::string& of = {});
  double latency();
  void say(const std::string& line) const;
  void record(int64_t at, const std::vector<Scalar>& scalars) const;
  void record_size(int64_t at, int64_t params, int64_t macs) const;

  const Dataset& data_;
  Recipe recipe_;
  TrainingRunOptions options_;
  TrainContext context_;
  std::unique_ptr<TrainableModel> net_;
  std::unique_ptr<TrainableModel> dense_;  ///< the teacher, unless another is passed
  std::vector<ConfigList> cuts_;
  std::vector<Step> steps_;
  size_t next_ = 0;
  std::unique_ptr<Trainer> trainer_;   ///< of the stage
  std::optional<RatioSearch> search_;  ///< until the cut
  BetweenCuts between_cuts_;
  EarlyStop early_stop_;
  int64_t shuffle_ = 0;  ///< epochs trained, over all stages
  Record record_;
};

}  // namespace parsimony::training
