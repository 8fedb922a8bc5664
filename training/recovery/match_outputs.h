// Trains a small network to give the dense network's outputs, or what the data say.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "parsimony/api/prune.h"
#include "parsimony/graph/graph.h"
#include "parsimony/speedup/small_network.h"
#include "parsimony/training/net/trainable_model.h"
#include "parsimony/training/statistics/batches.h"

namespace parsimony::training {

struct MatchData {
  Batches batches;
  int64_t batch = 1;                 ///< samples of a step
  const RankGroup* ranks = nullptr;  ///< each has batches of its own, all as many
  std::function<void(const std::string& line)> say = {};  ///< called after every epoch
};

struct Matched {
  int tensors = 0;                 ///< that changed
  std::vector<std::string> notes;  ///< what is not compared, and what decided
};

/// Minimises OutputLoss with Adam, both networks in evaluation mode. Trained are the parameters:
/// see trained_weights(). An eighth of the batches only judges, at least one if there are several:
/// the values of the epoch with the smallest loss on them stay, which may be those before the
/// first. Elements of the tensors `fixed` that are zero stay so.
Matched match_outputs(const Graph& dense, SmallNetwork& small,
                      const std::vector<std::string>& fixed, const MatchData& data,
                      const MatchSettings& settings);

/// The same for one block of layers after the other, from the inputs on: each is trained to give
/// what the dense network's gives, and gradients are kept of one block at a time. Each has a
/// quarter of the epochs, all together half of the minutes. @returns how many tensors changed
int match_blocks(const Graph& dense, SmallNetwork& small, const std::vector<std::string>& fixed,
                 const MatchData& data, const MatchSettings& settings);

/// The same for a loss of the outputs. @returns how many tensors changed
int fit_targets(SmallNetwork& small, const std::vector<std::string>& fixed, const MatchData& data,
                const Loss& loss, const MatchSettings& settings);

/// Gives the small network the values of tensors by its weights' names; others are ignored.
/// Elements of the tensors `fixed` that are zero stay so. @returns how many changed
int assign_trained(SmallNetwork& small, const std::vector<NamedParameter>& tensors,
                   const std::vector<std::string>& fixed, const std::string& reason);

/// Blocks are trained one after the other.
struct TrainedBlock {
  std::vector<ValueId> values;    ///< layers' answers that are read behind the block
  std::set<std::string> weights;  ///< that these need, and no earlier block does
};

/// Cuts a network into blocks of about `layers` layers each, in the order of computation. What
/// follows the last layer belongs to none.
std::vector<TrainedBlock> blocks_of(const Graph& graph, size_t layers = 8);

}  // namespace parsimony::training
