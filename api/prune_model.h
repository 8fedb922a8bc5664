// The one run of a pruning: plan, run the masked original, edit, run the small network, compare.
#pragma once

#include <optional>

#include "parsimony/api/prune.h"
#include "parsimony/engines/editable_model.h"
#include "parsimony/speedup/depth.h"
#include "parsimony/speedup/recovery.h"

namespace parsimony {

struct PruneResult {
  Pruning pruning;
  std::optional<Graph> shallow;  ///< the graph without the blocks that go: `pruning` speaks of it
  std::optional<DepthReport> depth;
  Proof proof;
  std::optional<RecoveryReport> recovery;
};

/// Prunes the model in place; nothing is written. All or nothing: if it throws, the model is as it
/// was, or gone.
///
/// The masked original and the small network run on `engine` and must agree. Where they do not, the
/// original's own rounding is allowed for; what differs even so is blamed on a group. Without an
/// engine, or where the original cannot be run masked, the proof says why there is none.
/// Recovery computes on the graph alone, before the edit, and its values are put in behind the
/// proof.
///
///     OnnxModel model("resnet.onnx");
///     PruneResult result = prune_model(model, read_config("l1.json"), {}, &engine);
///     model.write("small.onnx");
///
/// @throws VerificationError naming the group; ConfigError, ModelError, UnsupportedError
PruneResult prune_model(EditableModel& model, const ConfigList& config, const PruneOptions& options,
                        Engine* engine);

}  // namespace parsimony
