// Pruning requests: plain data, from the command line, a recipe, a program or Python.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parsimony/api/ranks.h"
#include "parsimony/configs/config.h"
#include "parsimony/configs/recipe.h"
#include "parsimony/engines/network.h"
#include "parsimony/graph/interface.h"
#include "parsimony/masks/coupling.h"
#include "parsimony/masks/mask.h"
#include "parsimony/pruners/criterion.h"
#include "parsimony/speedup/proof.h"
#include "parsimony/speedup/recovery.h"

namespace parsimony {

struct OnnxRuntimeChoice {
  std::string library = {};   ///< its path; empty: the default locations
  std::string provider = {};  ///< see OnnxRuntime::Options

  bool operator==(const OnnxRuntimeChoice&) const = default;
};

/// The engine that runs networks.
struct EngineChoice {
  std::string name = "auto";  ///< "libtorch", "onnxruntime"; auto: see name_of and engine_of
  OnnxRuntimeChoice onnxruntime = {};

  bool operator==(const EngineChoice&) const = default;
};

/// A user's command that runs an ONNX file and prints its latency in milliseconds.
struct LatencyCommand {
  std::string line = {};  ///< "ssh board ./time {model}"; its last number is milliseconds
  int runs = 3;           ///< per measurement of a network
  double timeout = 60;    ///< seconds after which a run is stopped
  int retries = 3;        ///< of a run that fails
  double pause = 1;  ///< seconds before the first retry; each further delay is eight times as long

  bool operator==(const LatencyCommand&) const = default;
};

/// Settings of latency budgets.
struct LatencySettings {
  LatencyCommand command = {};  ///< measures whole networks; no line: an engine does
  std::string table = {};       ///< path of the tables; empty: in the cache
  int64_t batch = 1;            ///< samples per run, if the network's batch is symbolic
  double tolerance = 0.05;      ///< relative deviation from the budget that is accepted
  int rounds = 0;               ///< maximum number of networks to measure; 0: 6, or 10 by a command

  bool operator==(const LatencySettings&) const = default;
};

/// The number of residual blocks to remove.
struct DepthRequest {
  enum class Kind : uint8_t {
    kCount,     ///< this many
    kFraction,  ///< floor(share · number of blocks)
    kAuto,      ///< the number with the smallest error under the configuration's budget
  };
  Kind kind = Kind::kCount;
  int64_t count = 0;
  double share = 0;  ///< 0..1

  bool operator==(const DepthRequest&) const = default;
};

/// Data to run through a network, see docs/guide/data.md.
struct CalibrationData {
  std::string data;                     ///< "cifar10:DIR", "npz:FILE"; empty: none
  std::optional<int64_t> samples = {};  ///< the first of the training set; empty: see sample_count
  std::vector<double> mean = {};       ///< per channel, of the scaled values; empty: not normalised
  std::vector<double> deviation = {};  ///< per channel, as many as `mean`
  std::string image = {};              ///< preprocessing of pictures, see ImageSpec
  /// The loss between outputs and targets of the data, see parse_losses(); empty: from the labels,
  /// or none.
  std::string loss = {};
  /// Specs, from --input, of the inputs that SampleSource leaves open.
  std::vector<InputSpec> inputs = {};
  /// States, see InterfaceOptions: inputs without data take the dense network's last outputs.
  std::vector<std::string> states = {};
  /// This process's rank if several processes share the samples; empty for a single process.
  std::optional<RankPlace> ranks = {};
  std::string device = "cpu";  ///< "auto", "cpu", "cuda:0"
  /// The last fifth of the samples does not calibrate, but is held out.
  bool judges = false;

  /// Returns the number of samples: 256 if none is given.
  int64_t sample_count() const { return samples.value_or(256); }
  /// Returns how many of the data's samples calibrate.
  int64_t calibrating(int64_t available) const {
    constexpr int64_t kJudging = 5;
    const int64_t count = std::min(sample_count(), available);
    return judges ? count - count / kJudging : count;
  }
  /// Returns whether they may run on a device other than the CPU.
  bool uses_device() const { return device != "cpu"; }

  bool operator==(const CalibrationData&) const = default;
};

/// The default settings of fine-tuning after a cut: few epochs, small steps.
TrainSettings gentle_training();

/// Settings for training a small network to match the dense network, see training/recovery.
struct MatchSettings {
  /// A value to match, an output or an intermediate value, and its weight in the loss.
  struct Term {
    std::string value;
    double weight = 1;

    bool operator==(const Term&) const = default;
  };

  int epochs = 20;  ///< over the calibration data
  /// The largest step of a tensor relative to its root mean square; decays to zero along a cosine.
  double lr = 1e-3;
  double minutes = 0;            ///< time limit; 0: none
  std::vector<Term> terms = {};  ///< in addition to the outputs, or with their weights

  bool operator==(const MatchSettings&) const = default;
};

/// Settings for recovering part of a small network's accuracy.
struct RecoverySettings {
  std::vector<RecoveryMethod> steps;  ///< in this order
  int rounds = 3;                     ///< of least squares, see api/recovery/refit.h
  std::optional<double> ridge = {};   ///< of least squares, see validated_fit()
  MatchSettings outputs = {};         ///< of kOutputs
  /// kFinetune: on the whole training set, with the dense network as teacher if `distill` says so.
  TrainSettings finetune = gentle_training();
  bool accuracy = true;  ///< measure it on the test set before and after

  bool operator==(const RecoverySettings&) const = default;
};

/// The reaction to a small network that does not compute what it should.
enum class OnFailure : uint8_t {
  kRefuse,   ///< VerificationError
  kExclude,  ///< the group at fault is not pruned, the others are
};

/// A request to prune a file, a live module or a network in training. It is a value: it can be
/// copied, compared and changed, and nothing in it runs; PruneServices measure and recover for
/// it.
///
///     PruneRequest request = read_config("l1.json");
///     request.calibration.data = "folder:/data/val";
struct PruneRequest {
  PruneRequest() = default;
  /// A configuration alone is a request.
  PruneRequest(ConfigList what) : config(std::move(what)) {}

  ConfigList config = {};                           ///< layers to prune, and amounts
  std::vector<InputSpec> inputs = {};               ///< sizes of symbolic dimensions
  InterfaceOptions interface = {};                  ///< by default inputs and outputs stay
  Granularity granularity = Granularity::kChannel;  ///< overridden by the config's, if it has one
  uint64_t seed = 0;                                ///< for criteria that draw at random
  Mixing mixing = Mixing::kExceptOutcomes;          ///< the mixing groups to prune
  Constants constants = Constants::kDrop;           ///< reference for the small model
  bool rescale = false;                             ///< update numbers that encode a pruned size
  std::vector<ElementMask> masks = {};  ///< with exact constants: zeros in addition to the config's
  GivenScores scores = {};  ///< of channels, in place of the criterion's; see given_scores.h
  std::optional<DepthRequest> depth = {};  ///< removes residual blocks as well
  CalibrationData calibration = {};        ///< by default the config's
  RecoverySettings recovery = {};          ///< after the cut; by default the config's steps
  LatencySettings latency = {};            ///< of budgets of milliseconds
  std::optional<int> threads = {};  ///< side by side, and of what is timed; empty: the best number
  EngineChoice engine = {};         ///< for the proof and for milliseconds
  bool verify = true;               ///< run the masked original and the small network
  bool require_proof = false;       ///< UnsupportedError if the original cannot be run
  bool require_numbers = false;     ///< the same if it gives none, as a network that has diverged
  ProofOptions proof = {};
  TensorList sample = {};  ///< inputs for the proof, see place_sample(); empty: only random ones
  OnFailure on_failure = OnFailure::kRefuse;
  /// Numbers of the words that stay; empty: all. Inputs with numbers of words are then given other
  /// numbers, and outputs have a column for each word that stays.
  std::vector<int64_t> keep_tokens = {};
  std::vector<std::string> left_groups = {};  ///< groups that are not pruned: "g3"

  bool operator==(const PruneRequest&) const = default;
};

/// Returns the request's data, or those of its configuration; the request's number of samples and
/// image options take precedence over the configuration's.
/// @throws ConfigError as check_calibration
CalibrationData calibration_of(const PruneRequest& request);

/// Returns the request's recovery settings, by default with the steps of its configuration.
RecoverySettings recovery_of(const PruneRequest& request);

/// @throws ConfigError if means and deviations differ in number, or have no data
void check_calibration(const CalibrationData& calibration);

/// Writes the settings that differ from the defaults as JSON, with the names of the options of
/// `parsimony prune` and the Python keywords: {"config": {"config_list": […]}, "seed": 3}. @throws
/// ConfigError for masks, scores, a sample or ranks, which cannot be written as text
std::string to_json(const PruneRequest& request);

/// Reads the JSON written by to_json(); `file_name` is for messages. In place of "config" it may
/// have shorthand settings such as "ratio" and "criterion".
/// @throws ConfigError naming file and key, with close matches for an unknown key
PruneRequest parse_request(std::string_view json, std::string_view file_name);

/// Returns the configuration of shorthand settings on this machine: `round_to_target` without a
/// target refers to its processor. @throws ConfigError naming the option
ConfigList config_here(Shorthand shorthand);

}  // namespace parsimony
