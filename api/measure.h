// Statistics of activations, measured on any engine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "parsimony/api/prune.h"
#include "parsimony/api/recovery/part.h"
#include "parsimony/api/recovery/row_sums.h"
#include "parsimony/engines/engine.h"
#include "parsimony/graph/blocks.h"
#include "parsimony/graph/graph_builder.h"
#include "parsimony/pruners/statistics.h"

namespace parsimony {

struct MeasuredRun {
  EngineValues inputs;  ///< of the network
  int64_t samples = 0;
};

/// Collects the measures that need no gradients, and the second moments of the inputs of matrices,
/// over batches. Outputs are added to the network; the engine sums the moments of a run in float32,
/// and those of all runs are summed in double. Memory depends on the network, not on the number of
/// samples.
class ForwardStatistics {
 public:
  /// The engine and the graph must outlive this. @param needs  the measures to collect
  ForwardStatistics(Engine& engine, const Graph& graph, const Facts& facts,
                    const Coupling& coupling, const Needs& needs);
  ~ForwardStatistics();

  /// Returns whether none of these measures is needed.
  bool empty() const;
  /// Returns the number of samples per run, which is limited as all required activations are
  /// returned at once.
  int64_t batch() const;
  /// Adds runs in order, of which several are made at once. @throws UnsupportedError if it cannot
  /// be run
  void add(std::span<const MeasuredRun> runs);
  void finish(Statistics& statistics) const;
  /// Returns the memory of the sums.
  int64_t bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Calls `see` with the inputs and the number of samples of every run over the data. @param
/// requested  the samples per run, unless network or data fix it
using SeeRun = std::function<void(const EngineValues& inputs, int64_t samples)>;
using Runs = std::function<void(int64_t requested, const SeeRun& see)>;

/// Returns the runs over calibration data in host memory. `graph` must outlive them.
/// @throws ConfigError, IoError for the data; ModelError if they do not fit
Runs runs_of(const CalibrationData& data, const Graph& graph);

/// Collects ForwardStatistics. @throws ConfigError if there is no run; UnsupportedError for what
/// cannot be run
Statistics measure_on(Engine& engine, const Graph& graph, const Facts& facts,
                      const Coupling& coupling, const Needs& needs, const Runs& runs);

/// Block influence: how much each residual block changes its input. Per block
///
///     1 - mean over samples and positions of  x·y / (‖x‖ ‖y‖)
///
/// with x and y the block's input and output as vectors over its channel axis; 0 for a block that
/// only changes lengths. If only Relu reads y, negative parts are ignored in both. Two zero vectors
/// count as equal; a zero vector and another one as orthogonal.
/// @source Men et al., ShortGPT: Layers in Large Language Models are More Redundant Than You
/// Expect, 2024, arXiv 2403.03853, equation 1
class BlockInfluences {
 public:
  /// All must outlive it.
  BlockInfluences(Engine& engine, const Graph& graph, const std::vector<ResidualBlock>& blocks);

  /// Returns the number of samples per run.
  int64_t batch() const { return batch_; }
  /// @param inputs  of the network. @throws UnsupportedError if it cannot be run
  void add(const EngineValues& inputs);
  /// Returns a number in 0..2 for each block, infinity for blocks that were not computed.
  std::vector<double> result() const;

 private:
  struct Block {
    GraphBuilder builder{kSumsOpset};
    std::unique_ptr<Part> part;  ///< from input and output to the sum of cosines, and their number
    double sum = 0;
    int64_t count = 0;
  };

  Engine& engine_;
  const std::vector<ResidualBlock>& blocks_;
  Graph network_;  ///< gives each block's input and output
  Part part_;
  int64_t batch_ = 1;
  std::vector<Block> sums_;
};

/// Returns BlockInfluences; throws like measure_on().
std::vector<double> block_influences_on(Engine& engine, const Graph& graph,
                                        const std::vector<ResidualBlock>& blocks, const Runs& runs);

/// Returns the memory of these values for a sample, as far as their sizes are known; at least 1.
int64_t bytes_each(const Graph& graph, const Facts& facts, const std::vector<ValueId>& values);

/// Returns whether the measure needs no gradients.
bool is_forward(Measure measure);

}  // namespace parsimony
