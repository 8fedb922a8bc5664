// The way from a graph and a config list to a plan; the same for every front end.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/api/latency/budget.h"
#include "parsimony/configs/config.h"
#include "parsimony/configs/recipe.h"
#include "parsimony/graph/blocks.h"
#include "parsimony/graph/infer.h"
#include "parsimony/masks/cost.h"
#include "parsimony/masks/coupling.h"
#include "parsimony/masks/element_mask.h"
#include "parsimony/masks/element_outcome.h"
#include "parsimony/pruners/allocate.h"
#include "parsimony/pruners/statistics.h"
#include "parsimony/speedup/constants.h"
#include "parsimony/speedup/plan.h"
#include "parsimony/speedup/proof.h"
#include "parsimony/speedup/recovery.h"
#include "parsimony/speedup/scales.h"

namespace parsimony {

/// How many residual blocks go.
struct DepthRequest {
  enum class Kind : uint8_t {
    kCount,  ///< so many
    kShare,  ///< floor(share · all)
    kAuto,   ///< as many as leave the smallest error under the configuration's budget
  };
  Kind kind = Kind::kCount;
  int64_t count = 0;
  double share = 0;  ///< 0..1
};

/// Runs data through a network: for each block, how much it changes what flows through it.
using BlockInfluence =
    std::function<std::vector<double>(const Graph&, const std::vector<ResidualBlock>&)>;

/// How far the small network that a plan makes is from the original; 0: not at all.
using PlanError = std::function<double(const Plan&)>;

/// Data that run through a network, as docs/guide/data.md names them.
struct CalibrationData {
  std::string data;                    ///< "cifar10:DIR"; empty: none were given
  int64_t samples = 256;               ///< the first so many of the training part
  std::vector<double> mean = {};       ///< per channel, of the scaled values; empty: as they are
  std::vector<double> deviation = {};  ///< per channel, as many as `mean`
};

/// How fine-tuning behind a cut trains, where nobody says otherwise: few epochs, small steps.
TrainSettings gentle_training();

/// How a small network gets back some of what it lost.
struct RecoverySettings {
  std::vector<RecoveryMethod> steps;  ///< in this order
  int rounds = 3;                     ///< of least squares, see training/recovery/refit.h
  double ridge = 1e-3;                ///< of least squares, see least_squares()
  /// kFinetune: on the whole training part. The dense network teaches, where `distill` says so.
  TrainSettings finetune = gentle_training();
  std::function<void(const std::string& line)> say = {};  ///< told of every step
  bool accuracy = true;  ///< is to be measured on the test part before and after
};

/// Changes values of the small network that a plan makes of the original: see training/recovery.
using Recovery = std::function<Recovered(const Graph& original, const Plan&)>;

/// All that can be asked of a pruning beside the config list; the same for files, live modules and
/// networks in training.
struct PruneOptions {
  std::vector<InputSpec> inputs = {};               ///< sizes that the model leaves open
  Granularity granularity = Granularity::kChannel;  ///< the config's wins, if it names one
  uint64_t seed = 0;                                ///< for criteria that draw at random
  bool exact_only = false;                          ///< leave groups that mix whole
  Constants constants = Constants::kDrop;           ///< what the small model is equal to
  bool rescale = false;                             ///< numbers that encode a pruned size follow it
  std::optional<Settings> settings = {};  ///< of the graph's layers, in place of the config's
  std::vector<ElementMask> masks =
      {};                      ///< with exact constants: zeros beside what the config asks for
  Observe observe = {};        ///< with exact constants; without it none but zeros are removed
  ScoreFunction score = {};    ///< a criterion of one's own, in place of what is asked for
  ChooseFunction choose = {};  ///< an allocator of one's own
  Fidelity fidelity = {};      ///< runs networks, where outputs say which channels go
  Measurement measure = {};    ///< runs data through the network, where a criterion needs it
  std::function<void(std::string_view stage)> progress = {};  ///< told what begins; may be empty
  LatencyBudgetOptions latency = LatencyBudgetOptions();  ///< for milliseconds; {} misleads GCC 12
  LatencyTables* tables = nullptr;  ///< of former runs, and where new ones go; may be null

  std::optional<DepthRequest> depth = {};  ///< whole residual blocks go too
  BlockInfluence influence = {};           ///< with `depth`: those of least influence go first
  PlanError error = {};                    ///< with `depth`, for kAuto
  Recovery recover = {};                   ///< behind the cut; without it values stay as they are
  CalibrationData calibration = {};        ///< for what of the above runs data: see Supplies
  RecoverySettings recovery = {};          ///< what `recover` is made from
  std::optional<int> threads = {};         ///< of libtorch; empty: as many as are best
  bool verify = true;                      ///< run the masked original and the small network
  ProofOptions proof = {};
};

/// Seconds that one stage took.
struct StageTime {
  std::string stage;
  double seconds = 0;
};

/// What is known about a network before anything is decided.
struct Analysis {
  Probe probe;
  Facts facts;
  Coupling coupling;
  Facts sample;  ///< as `facts`, for one sample where the batch is open: what costs are counted for
};

/// Infers shapes and solves for groups. Separates shared vectors in `graph`.
/// @throws ModelError
Analysis analyse(Graph& graph, const PruneOptions& options = {});

/// How the network is coupled: as the configuration names it, for the whole network or for the
/// layers of an entry, and as the options say otherwise.
CouplingOptions coupling_options(const ConfigList& config, const Settings& settings,
                                 const PruneOptions& options);

struct Pruning {
  Analysis analysis;
  Allocation allocation;
  Plan plan;  ///< complete but for the source's fingerprint
  /// Of the graph's values once they are small; empty where no shape changes.
  ValueShapes small_shapes;
  std::vector<CutScale> scales;  ///< that encode a pruned size: kept, or among the plan's scales
  Cost dense;
  Cost small;
  std::optional<LatencyOutcome> latency;  ///< of a budget of milliseconds
  std::vector<MaskOutcome> masked;        ///< with exact constants, per masked tensor
  int carriers = 0;  ///< channels that stay because they carry constants of others
  std::vector<ElementMask> element_masks;  ///< of the tensors that lose single elements
  std::vector<ElementOutcome> elements;    ///< and what became of them, in the same order
  std::vector<std::string> notes;  ///< compromises, layers left whole because they did not fit
  std::vector<StageTime> times;
};

/// Decides what to remove and checks on the graph alone that what remains fits together. The model
/// itself is not touched: `prune_model` (api/prune_model.h) does all of it.
///
///     auto graph = onnx_io::to_graph(file);
///     Pruning pruning = plan_pruning(graph, read_config("l1.json"), {});
///     apply_plan(pruning, graph, editor);
///
/// @throws ConfigError, ModelError, UnsupportedError
Pruning plan_pruning(Graph& graph, const ConfigList& config, const PruneOptions& options = {});

}  // namespace parsimony
