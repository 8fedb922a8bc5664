// Trains a small network to reproduce the dense network's outputs or the data's targets.
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
  int64_t batch = 1;                 ///< samples per step
  const RankGroup* ranks = nullptr;  ///< each has its own batches, all equally many
  std::function<void(const std::string& line)> say = {};  ///< called after every epoch
};

struct Matched {
  int tensors = 0;                 ///< that changed
  std::vector<std::string> notes;  ///< what is not compared, and why training stopped
};

/// Minimises OutputLoss with Adam, both networks in evaluation mode, over the parameters: see
/// trained_weights(). An eighth of the batches is held out for validation, at least one if there
/// are several: the values of the epoch with the smallest validation loss are kept, possibly the
/// initial ones. Elements of the tensors `fixed` that are zero stay zero.
Matched match_outputs(const Graph& dense, SmallNetwork& small,
                      const std::vector<std::string>& fixed, const MatchData& data,
                      const MatchSettings& settings);

/// Like match_outputs, for one block of layers after the other, from the inputs on: each is trained
/// to reproduce the dense network's values, and only one block's gradients are kept at a time. Each
/// uses a quarter of the epochs, all together half of the minutes. @returns how many tensors
/// changed
int match_blocks(const Graph& dense, SmallNetwork& small, const std::vector<std::string>& fixed,
                 const MatchData& data, const MatchSettings& settings);

/// Like match_outputs, for a loss of the outputs. @returns how many tensors changed
int fit_targets(SmallNetwork& small, const std::vector<std::string>& fixed, const MatchData& data,
                const Loss& loss, const MatchSettings& settings);

/// Returns a hook that keeps elements that are zero now, of the parameters `fixed`, out of each
/// step.
std::function<void()> keeping_zeros(const std::vector<NamedParameter>& parameters,
                                    const std::vector<std::string>& fixed);

/// Assigns tensors to the small network's weights of the same names; others are ignored. Elements
/// of the tensors `fixed` that are zero stay zero. @returns how many changed
int assign_trained(SmallNetwork& small, const std::vector<NamedParameter>& tensors,
                   const std::vector<std::string>& fixed, const std::string& reason);

/// A block that is trained on its own, after those before it.
struct TrainedBlock {
  std::vector<ValueId> values;    ///< layers' outputs that are read after the block
  std::set<std::string> weights;  ///< used by these and by no earlier block
};

/// Splits a network into blocks of about `layers` layers each, in the order of computation. Nodes
/// after the last layer are in none.
std::vector<TrainedBlock> blocks_of(const Graph& graph, size_t layers = 8);

}  // namespace parsimony::training
