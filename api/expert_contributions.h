// What experts contribute to the tokens that are routed to them, measured on any engine.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/api/recovery/part.h"
#include "parsimony/api/recovery/row_sums.h"
#include "parsimony/engines/engine.h"
#include "parsimony/graph/graph_builder.h"
#include "parsimony/pruners/statistics.h"

namespace parsimony {

/// Collects kContribution and kRouted of groups of experts. Their layers run again on what the
/// network gave them, gates and places included, once for each expert with the weights of the
/// others zero, and once with all of them zero: the difference is what the expert adds.
///
/// It is taken from the nearest value through which all passes that the weights and the gates give.
/// Axes of this value that are axes of the weights are those of a token's vector; a vector that is
/// not zero is a token that was routed to the expert. An expert that is a branch of a sum adds what
/// the sum reads.
class ExpertContributions {
 public:
  /// Engine and coupling must outlive it. @param needs  if kContribution is none, it does nothing
  ExpertContributions(Engine& engine, const Graph& graph, const Facts& facts,
                      const Coupling& coupling, const Needs& needs);

  /// The values that the layers read.
  std::vector<ValueId> values() const;
  /// @param found  some values of one run, null where a branch did not run
  void add(const std::vector<ValueId>& values, const EngineValues& found);
  void finish(Statistics& statistics) const;
  int64_t bytes() const;

 private:
  struct Layer {
    GroupId group;
    Graph graph;  ///< from what the layer reads, and the flags of experts, to the value
    TensorMemory memory;
    GraphBuilder sums{kSumsOpset};  ///< from the value, with an expert and without
    std::optional<Part> part;       ///< none where experts are branches
    std::optional<Part> sum;
    std::vector<double> norms, tokens;                ///< per expert
    std::vector<std::pair<int, ValueId>> added = {};  ///< by branches: expert and value
  };

  static void run(Layer& layer, const std::vector<ValueId>& values, const EngineValues& found);

  const Coupling& coupling_;
  std::deque<Layer> layers_;
  std::map<std::string, std::string> unmeasured_;  ///< by the group's id: why
};

}  // namespace parsimony
