// Branches of If that all calibration data take.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/engines/engine.h"
#include "parsimony/graph/graph.h"

namespace parsimony {

/// Calls `see` with the inputs of every run.
using EachRun = std::function<void(const std::function<void(const EngineValues&)>& see)>;

/// Returns the branches that all runs take, as "y::then_branch": of each If whose condition never
/// differs, and of those that such branches contain. None where the engine cannot compute the
/// conditions. @param runs  not called without an If whose condition is computed; else once, and
/// again for Ifs within the branches taken
std::vector<std::string> branches_taken(Engine& engine, const Graph& graph, const EachRun& runs);

/// A graph that computes the nodes of some branches before the If, whatever its condition is, so
/// that their values can be measured and their layers fitted like all others. No output depends on
/// the branches beside them any more. Ids stay.
class Hoisted {
 public:
  /// Refers to the graph if there are no branches. @param branches  see branches_taken()
  Hoisted(const Graph& graph, const std::vector<std::string>& branches);

  const Graph& graph() const { return changed_ ? *changed_ : *original_; }

 private:
  const Graph* original_;
  std::optional<Graph> changed_;
};

}  // namespace parsimony
