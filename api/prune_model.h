// The one run of a pruning: plan, run the masked original, edit, run the small network, compare.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "parsimony/api/prune.h"
#include "parsimony/speedup/depth.h"
#include "parsimony/speedup/recovery.h"

namespace parsimony {

class EditableModel;

/// A pruning that was carried out. Whoever prunes gets one: the command, programs, training.
struct PruneResult : Pruning {
  /// What analysis and plan refer to: the network as it was read, or without the removed blocks.
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
/// gigabyte of weights, or finds a difference, its Engine::otherwise is asked. Without an engine,
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
