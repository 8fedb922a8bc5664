// Replays a plan on a model, through whatever front end it came.
#pragma once

#include "parsimony/api/prune.h"
#include "parsimony/graph/infer.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {

/// Makes the plan's changes through `editor`, and brings the shapes that the model declares for its
/// inner values up to date. `graph` is the model as it was read, `probe` what its inputs are.
/// Everything is tried on the graph alone first, so that a plan that does not fit changes nothing.
///
///     Graph graph = onnx_io::to_graph(file);
///     apply_plan(Plan::load("p.json"), graph, choose_probe(graph), editor);
///
/// @throws ModelError if the plan names what the model does not have, or does not fit it
void apply_plan(const Plan& plan, const Graph& graph, const Probe& probe, ModelEditor& editor);

/// The same for a plan that was tried out when it was made; `graph` is what `plan_pruning` saw.
void apply_plan(const Pruning& pruning, const Graph& graph, ModelEditor& editor);

}  // namespace parsimony
