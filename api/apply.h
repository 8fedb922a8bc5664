// Replays a plan on a model of any front end.
#pragma once

#include "parsimony/api/prune.h"
#include "parsimony/graph/infer.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {

/// Applies the plan through `editor` and updates the shapes that the model declares for its inner
/// values. `graph` is the model as it was read, `probe` the sizes of its inputs. The plan is tried
/// on the graph alone first, so that one that does not fit changes nothing.
///
///     Graph graph = onnx_io::to_graph(file);
///     apply_plan(Plan::load("p.json"), graph, choose_probe(graph), editor);
///
/// @throws ModelError if the plan does not fit the model
void apply_plan(const Plan& plan, const Graph& graph, const Probe& probe, ModelEditor& editor);

/// The same for a plan that was validated when it was made; `graph` is the one passed to
/// `plan_pruning`.
void apply_plan(const Pruning& pruning, const Graph& graph, ModelEditor& editor);

}  // namespace parsimony
