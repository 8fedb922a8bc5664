// From a graph and a config list to a plan, for every front end.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/api/engines.h"
#include "parsimony/api/latency/budget.h"
#include "parsimony/api/ranks.h"
#include "parsimony/configs/config.h"
#include "parsimony/configs/recipe.h"
#include "parsimony/engines/network.h"
#include "parsimony/graph/blocks.h"
#include "parsimony/graph/infer.h"
#include "parsimony/graph/interface.h"
#include "parsimony/masks/cost.h"
#include "parsimony/masks/coupling.h"
#include "parsimony/masks/element_mask.h"
#include "parsimony/pruners/allocate.h"
#include "parsimony/pruners/statistics.h"
#include "parsimony/speedup/constants.h"
#include "parsimony/speedup/plan.h"
#include "parsimony/speedup/proof.h"
#include "parsimony/speedup/recovery.h"
#include "parsimony/speedup/scales.h"

namespace parsimony {

/// How many residual blocks to remove.
struct DepthRequest {
  enum class Kind : uint8_t {
    kCount,     ///< this many
    kFraction,  ///< floor(share · number of blocks)
    kAuto,      ///< the number with the smallest error under the configuration's budget
  };
  Kind kind = Kind::kCount;
  int64_t count = 0;
  double share = 0;  ///< 0..1
};

/// Runs data through a network and returns, for each block, how much it changes its input.
using BlockInfluence =
    std::function<std::vector<double>(const Graph&, const std::vector<ResidualBlock>&)>;

/// The error of the small network of a plan relative to the original; 0: none.
using PlanError = std::function<double(const Plan&)>;

/// Data to run through a network, see docs/guide/data.md.
struct CalibrationData {
  std::string data;                    ///< "cifar10:DIR", "npz:FILE"; empty: none
  int64_t samples = 256;               ///< the first samples of the training set
  std::vector<double> mean = {};       ///< per channel, of the scaled values; empty: not normalised
  std::vector<double> deviation = {};  ///< per channel, as many as `mean`
  std::string image = {};              ///< what is done to pictures: see ImageSpec
  /// Between outputs and targets of the data, see parse_losses(); empty: by the labels, or none.
  std::string loss = {};
  /// Of inputs that SampleSource leaves open: those of --input.
  std::vector<InputSpec> inputs = {};
  /// As of InterfaceOptions: inputs that have no data take the dense network's last outputs.
  std::vector<std::string> states = {};
  /// Processes that do the same, each with its share of the samples; empty: there is but one.
  std::optional<RankPlace> ranks = {};
  std::string device = "cpu";  ///< where they run: "auto", "cpu", "cuda:0"
};

/// The default settings of fine-tuning after a cut: few epochs, small steps.
TrainSettings gentle_training();

/// How a small network is trained to give the dense network's outputs, see training/recovery.
struct MatchSettings {
  /// A value that is compared, an output or an inner one, and its share of the loss.
  struct Term {
    std::string value;
    double weight = 1;
  };

  int epochs = 20;  ///< over the calibration data
  /// The largest step of a tensor, as a share of its root mean square; it falls to zero along a
  /// cosine.
  double lr = 1e-3;
  double minutes = 0;            ///< after which it ends at the latest; 0: never
  std::vector<Term> terms = {};  ///< in addition to the outputs, or with their weights
};

/// How a small network recovers part of its accuracy.
struct RecoverySettings {
  std::vector<RecoveryMethod> steps;  ///< in this order
  int rounds = 3;                     ///< of least squares, see api/recovery/refit.h
  std::optional<double> ridge = {};   ///< of least squares, see judged_fit()
  MatchSettings outputs = {};         ///< of kOutputs
  /// kFinetune: on the whole training set, with the dense network as teacher if `distill` says so.
  TrainSettings finetune = gentle_training();
  std::function<void(const std::string& line)> say = {};  ///< called at every step
  bool accuracy = true;  ///< measure it on the test set before and after
};

/// Changes values of the small network of a plan: see training/recovery.
using Recovery = std::function<Recovered(const Graph& original, const Plan&)>;

/// What happens where the small network does not compute what it should.
enum class OnFailure : uint8_t {
  kRefuse,   ///< VerificationError
  kExclude,  ///< the group at fault is left as it is, and the others are pruned
};

/// The options of a pruning besides the config list, for files, live modules and networks in
/// training.
struct PruneOptions {
  std::vector<InputSpec> inputs = {};               ///< sizes of symbolic dimensions
  InterfaceOptions interface = {};                  ///< by default inputs and outputs stay
  Granularity granularity = Granularity::kChannel;  ///< overridden by the config's, if it has one
  uint64_t seed = 0;                                ///< for criteria that draw at random
  Mixing mixing = Mixing::kExceptOutcomes;          ///< which groups that mix are pruned
  Constants constants = Constants::kDrop;           ///< what the small model is equal to
  bool rescale = false;                             ///< update numbers that encode a pruned size
  std::optional<Settings> settings = {};  ///< of the graph's layers, overriding the config's
  std::vector<ElementMask> masks = {};  ///< with exact constants: zeros in addition to the config's
  Observe observe = {};        ///< with exact constants; without it only zero channels are removed
  ScoreFunction score = {};    ///< a custom criterion, overriding the configured one
  ChooseFunction choose = {};  ///< a custom allocator
  RSquared r_squared = {};     ///< runs networks, for scope "outputs"
  Measurement measure = {};    ///< runs data through the network, for criteria that need it
  /// Called when a stage begins; may be empty.
  std::function<void(std::string_view stage)> progress = {};
  LatencyBudgetOptions latency = LatencyBudgetOptions();  ///< for milliseconds; {} misleads GCC 12
  LatencyTables* tables = nullptr;  ///< from earlier runs, receives new ones; may be null

  std::optional<DepthRequest> depth = {};  ///< removes residual blocks as well
  /// With `depth`: those of least influence are removed first.
  BlockInfluence influence = {};
  PlanError error = {};              ///< with `depth`, for kAuto
  Recovery recover = {};             ///< after the cut; by default values are not changed
  CalibrationData calibration = {};  ///< for those of the above that need data: see Supplies
  RecoverySettings recovery = {};    ///< settings from which `recover` is made
  std::optional<int> threads = {};   ///< side by side, and of what is timed; empty: the best number
  EngineChoice engine = {};          ///< for the proof and for milliseconds
  bool verify = true;                ///< run the masked original and the small network
  bool require_proof = false;        ///< UnsupportedError if the original cannot be run
  bool require_numbers = false;      ///< the same if it gives none, as a network that has diverged
  ProofOptions proof = {};
  TensorList sample = {};  ///< inputs for the proof, see place_sample(); empty: only random ones
  OnFailure on_failure = OnFailure::kRefuse;
  std::vector<std::string> left_groups = {};  ///< groups that are not pruned: "g3"
};

/// The duration of one stage.
struct StageTime {
  std::string stage;
  double seconds = 0;
};

/// The analysis of a network, before any decision.
struct Analysis {
  Probe probe;
  Facts facts;
  Coupling coupling;
  Facts sample;  ///< `facts` for a batch of one if the batch is symbolic; used to count costs
};

/// Infers shapes and solves for groups. Separates shared vectors in `graph`.
/// @throws ModelError
Analysis analyse(Graph& graph, const PruneOptions& options = {});

/// Coupling options from the configuration, for the whole network or the layers of an entry, with
/// the options as defaults.
CouplingOptions coupling_options(const ConfigList& config, const Settings& settings,
                                 const PruneOptions& options);

/// What rounding to a target's widths cost and brought.
struct RoundingOutcome {
  Target target = Target::kGeneric;
  double score = 1;                 ///< share of all scores that is kept
  double score_without = 1;         ///< the same, had widths not been rounded
  int64_t macs_without = 0;         ///< multiply-adds of that network
  std::optional<double> time = {};  ///< of the rounded network relative to that one, if measured
};

struct Pruning {
  Analysis analysis;
  Allocation allocation;
  Plan plan;  ///< complete except for the source's fingerprint
  /// Shapes of the graph's values after pruning; empty if none changes.
  ValueShapes small_shapes;
  std::vector<CutScale> scales;  ///< that encode a pruned size, whether kept or updated by the plan
  Cost dense;
  Cost small;
  std::optional<LatencyOutcome> latency;    ///< of a latency budget
  std::optional<RoundingOutcome> rounding;  ///< of a target; not with a latency budget
  std::vector<MaskOutcome> masked;          ///< with exact constants, per masked tensor
  int absorbers = 0;  ///< channels that are kept because they absorb constants of others
  std::vector<ElementMask> element_masks;  ///< of tensors that lose single elements
  std::vector<ElementOutcome> elements;    ///< their outcomes, in the same order
  std::vector<std::string> notes;          ///< conflicts, layers that could not be pruned
  std::vector<StageTime> times;
};

/// Decides what to remove and checks on the graph that the result is consistent. The model itself
/// is not changed; see `prune_model` (api/prune_model.h).
///
///     auto graph = onnx_io::to_graph(file);
///     Pruning pruning = plan_pruning(graph, read_config("l1.json"), {});
///     apply_plan(pruning, graph, editor);
///
/// @throws ConfigError, ModelError, UnsupportedError
Pruning plan_pruning(Graph& graph, const ConfigList& config, const PruneOptions& options = {});

}  // namespace parsimony
