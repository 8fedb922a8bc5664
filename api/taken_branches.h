// Branches of If that all calibration data take.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "parsimony/api/measure.h"
#include "parsimony/engines/engine.h"
#include "parsimony/graph/graph.h"

namespace parsimony {

/// Returns the branches that all runs take, as "y::then_branch": of each If whose condition never
/// differs, and of those that such branches contain. @throws UnsupportedError if the engine cannot
/// compute a condition
std::vector<std::string> branches_taken(Engine& engine, const Graph& graph, const Runs& runs);

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
