// The process that started the command, as an engine: it has the data, and runs networks on them.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "parsimony/engines/engine.h"

namespace parsimony {

/// A process at the other end of a stream socket, which owns the samples and the model's weights.
/// Values stay there; only what to_host() asks for crosses the socket. Messages are JSON with the
/// bytes of tensors behind it; python/parsimony/engine.py answers them.
///
///     --calibration process:FD        FD: number of the open socket
class ProcessEngine final : public Engine {
 public:
  /// Returns the engine that data name; null for other data.
  /// @throws ConfigError if FD is not a number; UnsupportedError if nobody answers
  static std::unique_ptr<ProcessEngine> of(const std::string& data);
  /// Returns whether the data are those of a process.
  static bool of_process(const std::string& data);

  std::string name() const override { return "process"; }
  std::string version() const override { return {}; }

  /// Weights of `original`, which must outlive the engine, that the process has under their names
  /// are not sent.
  void share(const Graph& original);

  std::unique_ptr<Network> open(const Graph& graph, const OpenOptions& options) override;
  std::unique_ptr<Network> open_masked(const Graph& graph, const Plan& plan,
                                       const OpenOptions& options) override;

  int64_t samples() const { return samples_; }
  /// Returns the number of values in one sample's inputs.
  int64_t values() const { return values_; }
  /// Returns the size of a run: `requested`, unless the process fixes it.
  int64_t batch(int64_t requested) const { return batch_ > 0 ? batch_ : requested; }
  /// Returns the sizes of the runs over all samples; an incomplete last one is omitted if the size
  /// is fixed.
  std::vector<int64_t> runs(int64_t requested) const;
  /// Returns the network's inputs for samples [first, first + count).
  EngineValues inputs(int64_t first, int64_t count);
  /// Returns the class of each of the first `count` samples; empty if they have none.
  std::vector<int64_t> classes(int64_t count);

  /// A value x, or an operand x of a node, and the dimension of x over which is not summed.
  struct Factor {
    ValueId value = kNone;
    NodeId reader = kNone;  ///< the gradient is of its operand only; kNone: of all that read x
    int input = 0;          ///< of the reader
    int dim = 0;
  };
  /// Returns Σ x·∂L/∂x over all dimensions of x but one, with L the loss of the process for samples
  /// [first, first + count); empty for what L does not depend on. @param network  that open()
  /// returned, of a graph with the outputs of the model
  /// @throws UnsupportedError if the process has no loss
  std::vector<std::vector<double>> gradients(Network& network, int64_t first, int64_t count,
                                             const std::vector<Factor>& factors);

  /// A weight w of the model, and the dimension of w over which is not summed.
  struct WeightFactor {
    std::string name;
    int dim = 0;
  };
  enum class Over : uint8_t { kBatch, kSamples };
  /// Returns Σ w·∂L/∂w over all dimensions of w but one, with L the loss for a batch as the process
  /// has it; or, over its samples, the mean of Σ (w·∂L/∂w)² with L the loss for each. Empty for
  /// what L does not depend on, or does not train. @throws UnsupportedError if the process has no
  /// loss
  std::vector<std::vector<double>> gradients(int64_t batch, Over over,
                                             const std::vector<WeightFactor>& factors);
  /// Returns the number of samples in each batch, as the process has them.
  const std::vector<int64_t>& batches() const { return batches_; }

 private:
  class Connection;
  class Value;
  class OpenNetwork;

  explicit ProcessEngine(int socket);

  std::shared_ptr<Connection> connection_;
  const Graph* original_ = nullptr;
  int64_t samples_ = 0;
  int64_t values_ = 1;
  int64_t batch_ = 0;  ///< 0: any
  std::vector<int64_t> batches_;
  std::set<std::string> weights_;  ///< that the process has
};

}  // namespace parsimony
