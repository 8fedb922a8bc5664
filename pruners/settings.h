// The settings of each layer, resolved from a config list or from the command line.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/masks/coupling.h"

namespace parsimony {

/// kIsomorphic ranks globally, but only among groups whose sub-graphs have the same shape; kOutputs
/// ranks globally by the loss of the network's outputs per unit of cost saved, see
/// ImportanceCurves.
/// @source Fang et al., Isomorphic Pruning for Vision Models, 2024
enum class Scope : uint8_t { kLocal, kGlobal, kIsomorphic, kOutputs };
/// kWeights: elements of the matrices that produce the request's own channels; params and MACs are
/// the whole network's. kLatency: milliseconds of the whole network on this machine. Bytes of the
/// whole network are only given as amounts or shares that may remain: kWeightBytes of its weights,
/// kFile of these and of all else in its file, kPeakRam of its activations, see ActivationMemory.
enum class Budget : uint8_t {
  kChannels,
  kParams,
  kMacs,
  kLatency,
  kWeights,
  kWeightBytes,
  kFile,
  kPeakRam,
};

/// Whether the budget counts channels, parameters or multiply-adds, not bytes or milliseconds.
constexpr bool is_counted(Budget budget) {
  return budget == Budget::kChannels || budget == Budget::kParams || budget == Budget::kMacs ||
         budget == Budget::kWeights;
}

/// The hardware that the small network will run on.
enum class Target : uint8_t { kGeneric, kX86Avx2, kX86Avx512, kArmNeon, kCudaTensorCore };

/// A limit on how much of a quantity a whole network may have.
struct Limit {
  Budget budget = Budget::kMacs;
  std::optional<double> amount = {};
  double ratio = 0;  ///< without an amount: the share to remove
  bool operator==(const Limit&) const = default;
};

/// A request for pruning a layer: how its channels are chosen.
struct Request {
  std::string criterion = "l1";  ///< a name of the criterion table
  /// Several to choose from, of which `criterion` and `scope` are one each: prune_model() tries
  /// each criterion in each scope, and keeps the network with the smallest output error, once it is
  /// repaired. Empty: there is nothing to choose.
  std::vector<std::string> criteria = {};
  std::vector<Scope> scopes = {};
  double ratio = 0;  ///< share to remove, 0 <= ratio < 1, of what `budget` counts
  /// Instead of a ratio, how much of the budgeted quantity may remain: parameters, MACs,
  /// milliseconds.
  std::optional<double> amount = {};
  std::vector<Limit> also = {};  ///< that hold beside the ratio or the amount of `budget`
  /// Instead of a ratio: channels that score less are removed. In the criterion's own unit, not
  /// normalised.
  std::optional<double> threshold = {};
  Scope scope = Scope::kLocal;
  Budget budget = Budget::kChannels;
  double min_ratio = 0;   ///< per group: at least this share of channels is removed
  double max_ratio = 1;   ///< per group: at most this share of channels is removed
  int keep_at_least = 1;  ///< per group: this many channels are kept, if the group is that large
  int round_to = 1;       ///< kept channels are a multiple of this, if the group is that large
  std::optional<Target> target = {};  ///< and of what it computes well: see multiple_for()
  /// Number of consecutive parts of equal size, each of which loses the same number of channels.
  int metric_blocks = 1;
  bool in_channels = false;  ///< remove the channels that the layers read, not those they produce
  /// The one of several competing axes to remove at these layers; empty: the network's default.
  std::optional<Granularity> granularity = {};
  std::string global_group = {};      ///< requests of one name share a budget; may be empty
  std::string dependency_group = {};  ///< their layers lose the same channels; may be empty
  std::string equal_width = {};       ///< their layers keep equally many channels; may be empty
  NodeId aligned_with = kNone;        ///< its layers lose the channels that this layer loses
  int entry = kNone;                  ///< index of the config entry it came from

  bool has_choice() const { return !criteria.empty() || !scopes.empty(); }
  bool operator==(const Request&) const = default;
};

/// One layer's setting. A group is pruned only if all of its layers are kPruned.
struct LayerSetting {
  enum class State : uint8_t { kUnnamed, kExcluded, kPruned };
  State state = State::kUnnamed;
  int request = kNone;  ///< index into Settings::requests; layers that share one share its budget
  int entry = kNone;    ///< index of the config entry that decided
};

struct Settings {
  std::vector<Request> requests;
  IdVector<NodeId, LayerSetting> layers;  ///< see Layers for which nodes are layers
  /// The request for channels that are no layer's, of learned tokens: of the last entry that names
  /// neither types nor layers. kNone if there is none, or it excludes.
  int elsewhere = kNone;
  std::vector<std::string> notes;           ///< what was ignored, and why
  Mixing mixing = Mixing::kExceptOutcomes;  ///< which groups that mix are pruned
  /// Of layers whose request has none. Of the policies only kExpert decides which groups are
  /// pruned.
  Granularity granularity = Granularity::kChannel;
  bool force = false;  ///< also where less than a thousandth may remain
  /// With a target, of how many channels each group keeps multiples, as measured times show: see
  /// multiples_of(). 0, or no entry: as of multiple_for().
  PerGroup<int> multiples = {};
};

/// floor(share · count) and ceil(share · count), up to rounding: 0.29 · 100 is 29, not 28.999….
int64_t floor_of(double share, int64_t count);
int64_t ceil_of(double share, int64_t count);

/// Requests that share a budget, each listed once, ordered by the first: those of one global group,
/// those that keep equally many channels, and those with a network-wide amount.
std::vector<std::vector<int>> shared_budgets(const Settings& settings);

/// Why a group was not treated as some of its layers request.
struct Conflict {
  GroupId group = kNone;  ///< kNone: concerns a whole request
  std::string reason;
};

}  // namespace parsimony
