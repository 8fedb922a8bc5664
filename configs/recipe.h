// A training recipe: the network, the data, how to train, and when to prune.
//
//   {"model": "cnn", "data": "shapes",
//    "train": {"epochs": 10, "batch": 64, "optimizer": "adam", "lr": 1e-3},
//    "prune": {"warmup_epochs": 1, "config_list": [{"op_types": ["Conv2d"], "sparse_ratio": 0.5}]},
//    "sweep": {"sparsity": [0.1, 0.5], "criterion": ["l1"], "seed": [0]}}
//
// configs/recipe_schema.json says what each key means.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/configs/config.h"

namespace parsimony {

enum class OptimizerKind : uint8_t { kSgd, kAdam, kAdamW, kMuon };
enum class RateSchedule : uint8_t { kConstant, kCosine, kStep, kOneCycle };
enum class Precision : uint8_t { kFloat32, kBFloat16, kFloat16 };
enum class MemoryFormat : uint8_t { kAuto, kContiguous, kChannelsLast };

struct TrainSettings {
  int epochs = 10;
  int batch = 64;
  OptimizerKind optimizer = OptimizerKind::kAdam;
  double lr = 1e-3;  ///< the peak, if a schedule varies it
  double momentum = 0.9;
  double weight_decay = 0;
  RateSchedule schedule = RateSchedule::kConstant;
  int step_epochs = 30;      ///< step: period in epochs
  double step_factor = 0.1;  ///< step: factor of the learning rate
  double label_smoothing = 0;
  bool flip = false;
  int crop = 0;    ///< pixels of padding around the image before a crop
  int cutout = 0;  ///< side of the square that is blanked
  /// Inputs have mean 0 and deviation 1 per channel; otherwise they are in [0, 1].
  bool normalise = false;
  std::vector<double> mean = {};       ///< taken from inputs in [0, 1], per channel
  std::vector<double> deviation = {};  ///< by which they are then divided; as many as `mean`
  int evaluate_every = 1;              ///< in epochs; 0: only after the last
  int early_stop = 0;                  ///< epochs without a better test accuracy; 0: never
  bool batch_norm = false;  ///< train with BatchNorms, folded into the file's convolutions
  double distill = 0;       ///< weight of the dense network's outputs in the loss
  double temperature = 4;   ///< of those outputs
  Precision precision = Precision::kFloat32;
  MemoryFormat memory_format = MemoryFormat::kAuto;
  /// The loss as given to --loss, for one output: "cross_entropy:ignore=255". Empty: cross_entropy.
  std::string loss = {};
  uint64_t seed = 0;

  bool operator==(const TrainSettings&) const = default;
};

/// Sparsity-inducing penalties while the dense network trains: their factors in the loss; 0: none.
struct PenaltySettings {
  double slimming = 0;  ///< of Σ|γ|, the scales of BatchNorm
  double group = 0;     ///< of Σ ½ s_c ‖w_c‖², over all members of a channel

  bool any() const { return slimming > 0 || group > 0; }
};

struct PruneSettings {
  int warmup_epochs = 1;
  PruningSchedule schedule = PruningSchedule::kOneShot;
  int steps = 1;  ///< linear, agp, lottery: in how many cuts
  /// Linear, agp, lottery: of training after each cut except the last.
  int epochs_between = 1;
  int rewind_epoch = 0;          ///< lottery: weights are rewound to those after this warm-up epoch
  int search_steps = 40;         ///< annealing: candidates that are tried
  int search_samples = 1000;     ///< annealing: training samples that score a candidate
  PenaltySettings penalty = {};  ///< in every epoch before the last cut
  ConfigList config = {};
  std::string text = {};  ///< JSON of `config`
};

struct SweepSettings {
  std::vector<double> sparsity;        ///< 0 is the dense network
  std::vector<std::string> criterion;  ///< empty: those of the entries
  std::vector<uint64_t> seed;          ///< empty: that of `train`
};

/// One of several parts of a sweep.
struct Shard {
  int index = 0;  ///< from 0
  int count = 1;
};

struct Recipe {
  std::string model;  ///< a built-in network's name, or a file; may be empty
  std::string data;   ///< "cifar10:DIR"; may be empty
  TrainSettings train;
  std::optional<PruneSettings> prune;
  std::optional<SweepSettings> sweep;
};

/// @throws IoError, ConfigError, UnsupportedError
Recipe read_recipe(const std::string& path);

/// @throws ConfigError naming file and line, or file and key
Recipe parse_recipe(std::string_view json, std::string_view file_name);

/// One JSON object with every key of `train` and `prune`, whether given or not, but for empty
/// texts: equal settings give equal texts. Model, data and sweep are omitted.
std::string settings_json(const Recipe& recipe);

/// @throws ConfigError if settings contradict each other; `place` is where they were given
void check_settings(const TrainSettings& train, std::string_view place);

/// Is it a schedule of several cuts?
bool has_steps(PruningSchedule schedule);

/// @throws ConfigError for an unknown word
PruningSchedule parse_pruning_schedule(std::string_view text, std::string_view place);

/// Names used in recipes and on the command line. @throws ConfigError
OptimizerKind parse_optimizer(std::string_view text, std::string_view place);

/// Does an entry name the criterion?
bool asks_for(const ConfigList& config, std::string_view criterion);

/// Sets the ratio of every entry that prunes, and its criterion unless that is empty.
ConfigList at_sparsity(ConfigList config, double ratio, const std::string& criterion);

/// Cumulative share of removed channels after each cut; the last is `ratio`. In the lottery every
/// cut removes the same share of the remaining channels.
/// @source AGP: Zhu and Gupta, To prune, or not to prune, 2017: s_t = s (1 - (1 - t/n)^3)
/// @source lottery: Frankle and Carbin, The Lottery Ticket Hypothesis, 2019: s_t = 1 - (1-s)^(t/n)
std::vector<double> sparsities(const PruneSettings& settings, double ratio);

/// The configurations of the cuts in order. Ratios are relative to what the previous cut left.
std::vector<ConfigList> cuts(const PruneSettings& settings);

enum class LossKind : uint8_t { kCrossEntropy, kBce, kMse, kL1, kHuber, kKl, kCtc };

/// The loss of one output, or of all that the data have targets for.
struct LossTerm {
  std::string output = {};  ///< empty: all
  LossKind kind = LossKind::kCrossEntropy;
  double weight = 1;
  std::optional<int64_t> ignore = {};  ///< cross_entropy: targets that do not count
  double delta = 1;                    ///< huber: where it becomes linear
  int64_t blank = 0;                   ///< ctc: the class between two others
};

/// Reads "huber" or "boxes=huber:delta=0.1:weight=2,scores=cross_entropy:ignore=255".
/// @throws ConfigError naming the part
std::vector<LossTerm> parse_losses(std::string_view text);

std::string_view name_of(LossKind kind);

}  // namespace parsimony
