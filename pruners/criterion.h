// A criterion judges channels: a pure function from a group to one score per channel.
//
// To add one: write pruners/criteria/NAME.cc with one function of the signature below, declare it
// in pruners/criteria/criteria.h and give it a row in the table of pruners/criterion.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/masks/coupling.h"

namespace parsimony {

enum class Measure : uint8_t;
struct Statistics;

struct CriterionOptions;

/// One score per channel of the group; the lowest go first. Empty where the criterion has nothing
/// to judge the group by: it stays whole then, and a note says so.
using Scores = std::vector<double>;

/// A criterion of the user's own: what those of the table are.
///
///     Scores constant(const Graph&, const Group& group, const CriterionOptions&) {
///       return Scores(group.size, 1.0);
///     }
///     prune(model, example, config, {.score = constant});
using ScoreFunction =
    std::function<Scores(const Graph& graph, const Group& group, const CriterionOptions& options)>;

struct CriterionOptions {
  uint64_t seed = 0;  ///< for criteria that draw at random
  /// Of data that ran through the network (see statistics.h); null where there was none.
  const Statistics* statistics = nullptr;
  ScoreFunction own = {};  ///< judges channels in place of the criteria that are asked for
};

struct Criterion {
  std::string_view name;  ///< as the command line and the config list spell it
  /// Null for criteria that judge single elements instead (see level.h).
  Scores (*score)(const Graph& graph, const Group& group, const CriterionOptions& options);
  /// What it reads of the statistics; nothing for criteria that need no data.
  std::optional<Measure> measure = {};
  /// Scores of different groups compare as they are; those of others are normalised for that.
  bool comparable = false;
};

/// Every criterion, one row each, in alphabetical order.
std::span<const Criterion> criterion_table();

/// The row of a name, which for criteria over elements may carry numbers: "2:4", "block:4x1" (see
/// elements/rule.h). @throws ConfigError that names those there are
const Criterion& find_criterion(std::string_view name);

/// Names of the table, for messages.
std::vector<std::string> criterion_names();

}  // namespace parsimony
