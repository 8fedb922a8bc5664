// A criterion is a pure function from a group to one score per channel. CONTRIBUTING.md has the
// steps to add one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/masks/coupling.h"

namespace parsimony {

enum class Measure : uint8_t;
struct Statistics;

/// One score per index of an axis of a weight, by the weight's name and the axis; see
/// given_scores.h.
using GivenScores = std::map<std::pair<std::string, int>, std::vector<double>>;
struct CriterionOptions;

/// One score per channel of the group; the lowest are removed first. Empty if the criterion cannot
/// score the group, which is then not pruned, with a note.
using Scores = std::vector<double>;

/// A custom criterion, with the signature of those in the table.
///
///     Scores constant(const Graph&, const Group& group, const CriterionOptions&) {
///       return Scores(group.size, 1.0);
///     }
///     prune(model, example, config, {.score = constant});
using ScoreFunction =
    std::function<Scores(const Graph& graph, const Group& group, const CriterionOptions& options)>;

struct CriterionOptions {
  uint64_t seed = 0;  ///< for criteria that draw at random
  /// Statistics of data that ran through the network (see statistics.h); null if there are none.
  const Statistics* statistics = nullptr;
  ScoreFunction own = {};              ///< scores channels in place of the configured criteria
  const GivenScores* given = nullptr;  ///< take precedence, for the groups that have any
  int threads = 1;                     ///< on which groups are scored, but not by `own`
};

struct Criterion {
  std::string_view name;  ///< as on the command line and in the config list
  /// Null for criteria that score single elements instead (see level.h).
  Scores (*score)(const Graph& graph, const Group& group, const CriterionOptions& options);
  /// The statistic that it reads; empty for criteria that need no data.
  std::optional<Measure> measure = {};
  /// Scores of different groups can be compared without normalisation.
  bool comparable = false;
  /// They estimate how much the loss grows: a budget of parameters or MACs divides them by what the
  /// channel costs.
  bool loss = false;
  /// Reads InputMoments of the matrices that read the channels.
  bool reads_inputs = false;
};

/// The row of a name, which for criteria over elements may contain numbers: "2:4", "block:4x1" (see
/// elements/rule.h). @throws ConfigError that lists the known names
const Criterion& find_criterion(std::string_view name);

/// Names of the table, for messages.
std::vector<std::string> criterion_names();

}  // namespace parsimony
