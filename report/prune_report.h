// What a run of `prune` did, for people and for programs.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/masks/axis_mask.h"
#include "parsimony/masks/cost.h"
#include "parsimony/report/inspect.h"
#include "parsimony/speedup/plan.h"
#include "parsimony/speedup/proof.h"

namespace parsimony {

struct GroupOutcome {
  std::string id;
  int size = 0;  ///< channels before
  int kept = 0;  ///< and after
  bool mixes = false;
  std::string granularity;
  std::vector<std::string> layers;  ///< nodes whose matrices produce the channels
};

struct ReportedFile {
  std::string path;
  std::string sha256;  ///< empty where nobody asked
  int64_t bytes = 0;   ///< of the model file; external data is not counted
};

struct PruneReport {
  std::string command;  ///< as it was typed
  ReportedFile source;
  ReportedFile result;
  std::vector<InputRow> inputs;  ///< for which MACs are counted
  Cost before;
  Cost after;
  int64_t zeroed = 0;  ///< elements set to zero by level pruning
  std::vector<GroupOutcome> groups;
  std::vector<KeptWhole> kept_whole;
  Proof proof;
  std::vector<std::string> notes;
  std::vector<std::pair<std::string, double>> timings;  ///< stage and seconds
};

/// What became of every group.
std::vector<GroupOutcome> outcomes(const Graph& graph, const Coupling& coupling,
                                   const AxisMasks& masks);

/// One object: {"parsimony_report": 1, "command": …, "source": …, "result": …, "params": …, …}.
std::string to_json(const PruneReport& report);

/// Before and after, in a few lines; with `all` also each group and each axis that stays whole.
std::string to_text(const PruneReport& report, bool all = false);

/// The stages with their times.
std::string timings_text(const PruneReport& report);

}  // namespace parsimony
