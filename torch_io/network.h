// libtorch networks, and libtorch as an engine.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/engines/engine.h"
#include "parsimony/speedup/plan.h"

namespace parsimony::torch_io {

/// A network made from any function. libtorch's errors are rethrown as standard exceptions, without
/// backtraces.
class TorchNetwork final : public Network {
 public:
  using List = std::vector<at::Tensor>;
  /// Computes outputs from bound inputs.
  using Bound = std::function<List()>;

  /// Wraps a function for one run.
  template <std::invocable<const List&> Function>
  TorchNetwork(Function one)  // NOLINT(google-explicit-constructor): any such function is one
      : each_([one = std::move(one)](const std::vector<List>& inputs) mutable {
          std::vector<List> outputs;
          for (const List& each : inputs) outputs.push_back(one(each));
          return outputs;
        }) {}
  /// Wraps a function for several runs, if that is cheaper than one after the other.
  template <std::invocable<const std::vector<List>&> Function>
  TorchNetwork(Function each)  // NOLINT(google-explicit-constructor)
      : each_(std::move(each)) {}

  /// Sets the bound computation, if it differs.
  TorchNetwork& timed_by(std::function<Bound(List)> bind) {
    bind_ = std::move(bind);
    return *this;
  }

  List operator()(const List& inputs) const { return each(std::vector<List>{inputs}).front(); }
  std::vector<List> each(const std::vector<List>& inputs) const { return each_(inputs); }

  using Network::run;
  std::vector<TensorList> run(const std::vector<TensorList>& inputs,
                              const RunOptions& options) override;
  EngineValues forward(const EngineValues& inputs) override;
  void bind(const TensorList& inputs) override;
  void compute() override;
  TensorList outputs() override;

 private:
  std::function<std::vector<List>(const std::vector<List>&)> each_;
  std::function<Bound(List)> bind_;
  Bound bound_;
  List computed_;
};

/// Returns an undefined tensor for a null value. @throws UnsupportedError as to_tensors()
at::Tensor tensor_of(const EngineValue& value);
EngineValue value_of(at::Tensor tensor);

/// Copies to CPU tensors. @throws UnsupportedError for types that libtorch does not support
TorchNetwork::List to_tensors(const TensorList& inputs);
TensorList to_bytes(const TorchNetwork::List& tensors);

/// Returns the network with the plan's channels masked, run by the executor. float16 is computed in
/// float32 throughout, so that the tolerance of float32 applies to float16 networks. Weights for
/// which `streamed` is true are not copied: see GraphModuleOptions.
/// @throws UnsupportedError if the executor cannot run it
TorchNetwork masked_run(const Graph& original, const Plan& plan,
                        std::function<bool(const Weight&)> streamed = {});

/// Returns the unmasked network, run by the executor; float16 and `streamed` as in `masked_run`. It
/// does not store unread weights. @throws UnsupportedError
TorchNetwork plain_run(const Graph& graph, std::function<bool(const Weight&)> streamed = {},
                       c10::Device device = c10::kCPU);

/// libtorch as an engine, with the executor.
class TorchEngine : public Engine {
 public:
  /// @param device  of the opened networks and their values
  explicit TorchEngine(c10::Device device = c10::kCPU) : device_(device) {}

  std::string name() const override { return "libtorch"; }
  std::string version() const override;
  bool executes_graphs() const override { return true; }
  using Engine::open;
  std::unique_ptr<Network> open(const Graph& graph, const OpenOptions& options) override;
  std::unique_ptr<Network> open_masked(const Graph& graph, const Plan& plan,
                                       const OpenOptions& options) override;
  int at_once() const override;
  void side_by_side(int64_t count, const std::function<void(int64_t)>& work) override;
  bool multiply(int64_t rows, int64_t inner, int64_t columns, const double* a, const double* b,
                double* c) const override;
  bool solve(int64_t n, const double* a, int64_t columns, double* b) const override;

 private:
  c10::Device device_;
};

}  // namespace parsimony::torch_io
