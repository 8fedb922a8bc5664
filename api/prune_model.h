// A complete pruning: plan, run the masked original, edit, run the small network, compare.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/api/prune.h"
#include "parsimony/masks/cost.h"
#include "parsimony/speedup/recovery.h"

namespace parsimony {

/// The outcome for one residual block.
struct BlockOutcome {
  std::string add;        ///< first output of the addition
  std::string label;      ///< display name
  double influence = 0;   ///< 1 - mean cosine of the block's input and output, 0..2
  Cost cost;              ///< removed with the block; MACs of one sample
  int nodes = 0;          ///< removed with it, including the addition
  bool excluded = false;  ///< the configuration excludes one of its layers
  bool removed = false;
};

/// One way to meet a budget: remove this many blocks, and channels for the rest.
struct DepthCandidate {
  int removed = 0;
  Cost cost;         ///< of the small network
  double error = 0;  ///< output error on the calibration samples, see docs/guide/depth.md
  bool met = true;   ///< the budget
};

/// The outcome of removing residual blocks from a network.
struct DepthReport {
  std::vector<BlockOutcome> blocks;        ///< in topological order
  std::vector<DepthCandidate> candidates;  ///< of `auto`, by number of blocks
};

class EditableModel;

/// A pruning that was applied: the result for the command, programs and training alike.
struct PruneResult : Pruning {
  /// The graph of analysis and plan: the network as it was read, or without the removed blocks.
  /// The elements of its weights are gone.
  Graph graph;
  std::optional<DepthReport> depth;  ///< of a request for fewer blocks
  Proof proof;
  std::optional<RecoveryReport> recovery;
};

/// Prunes the model in place; nothing is written. If it throws, the model is unchanged or invalid.
///
/// The masked original and the small network run on `services.engine` and must agree, if necessary
/// with an allowance for the original's own rounding; a remaining difference is blamed on a group.
/// Where the engine cannot run the original masked, needs a larger tolerance or a copy of a
/// gigabyte of weights, or finds a difference, its Engine::fallback is asked. Without an engine,
/// or if the original cannot be run masked, the proof has the reason. Recovery works on the graph
/// alone, before the edit, and its values are assigned after the proof.
///
///     const std::unique_ptr<EditableFile> model = open_model("resnet.onnx");
///     PruneResult result = prune_model(*model, read_config("l1.json"));
///     model->write("small.onnx");
///
/// @throws VerificationError naming the group; ConfigError, ModelError, UnsupportedError
PruneResult prune_model(EditableModel& model, const PruneRequest& request,
                        const PruneServices& services = {});

struct GroupAtFault {
  std::string id;    ///< "g3"
  std::string text;  ///< with its layers: "group g3 (conv1, conv2)"
};

/// Bisects over the groups: prunes only the first n of them and checks whether the small network
/// still differs. `graph` is the original, as `plan_pruning` left it.
/// @returns the first group that makes a difference; empty if nothing differs on the graph alone,
/// so that the fault is in the edit of the file or module, or if the graph cannot be run
std::optional<GroupAtFault> group_at_fault(const Graph& graph, const Pruning& pruning,
                                           const std::function<bool(const Plan&)>& differs);

}  // namespace parsimony
