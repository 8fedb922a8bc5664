// Networks that libtorch runs, and libtorch as an engine.
#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/engines/engine.h"
#include "parsimony/speedup/plan.h"

namespace parsimony::torch_io {

/// Outputs from inputs, by any function. Errors of libtorch leave it as plain ones, without pages
/// of backtrace.
class TorchNetwork final : public Network {
 public:
  using List = std::vector<at::Tensor>;
  /// Outputs from inputs that are part of it.
  using Bound = std::function<List()>;

  /// Of one run.
  template <std::invocable<const List&> Function>
  TorchNetwork(Function one)  // NOLINT(google-explicit-constructor): any such function is one
      : each_([one = std::move(one)](const std::vector<List>& inputs) mutable {
          std::vector<List> outputs;
          for (const List& each : inputs) outputs.push_back(one(each));
          return outputs;
        }) {}
  /// Of several runs, where that costs less than one after the other.
  template <std::invocable<const std::vector<List>&> Function>
  TorchNetwork(Function each)  // NOLINT(google-explicit-constructor)
      : each_(std::move(each)) {}

  /// What is timed, where that is not the same computation.
  TorchNetwork& timed_by(std::function<Bound(List)> bind) {
    bind_ = std::move(bind);
    return *this;
  }

  List operator()(const List& inputs) const { return each(std::vector<List>{inputs}).front(); }
  std::vector<List> each(const std::vector<List>& inputs) const { return each_(inputs); }

  using Network::run;
  std::vector<TensorList> run(const std::vector<TensorList>& inputs,
                              const RunOptions& options) override;
  void bind(const TensorList& inputs) override;
  void compute() override;
  TensorList outputs() override;

 private:
  std::function<std::vector<List>(const std::vector<List>&)> each_;
  std::function<Bound(List)> bind_;
  Bound bound_;
  List computed_;
};

/// Copies, on the CPU. @throws UnsupportedError for types that libtorch does not have
TorchNetwork::List to_tensors(const TensorList& inputs);
TensorList to_bytes(const TorchNetwork::List& tensors);

/// The network with the plan's channels absent, run by our executor. Halves are computed with in
/// float32 and stay so from node to node: networks of halves are held to the tolerance of floats.
/// Weights for which `read_anew` holds are not copied: see GraphModuleOptions.
/// @throws UnsupportedError for what the executor does not run
TorchNetwork masked_run(const Graph& original, const Plan& plan,
                        std::function<bool(const Weight&)> read_anew = {});

/// The network as it is, run by our executor; halves and `read_anew` as in
/// `masked_run`. @throws UnsupportedError
TorchNetwork plain_run(const Graph& graph, std::function<bool(const Weight&)> read_anew = {});

/// libtorch, by our executor.
class TorchEngine : public Engine {
 public:
  std::string name() const override { return "libtorch"; }
  std::string version() const override;
  using Engine::open;
  std::unique_ptr<Network> open(const Graph& graph, const OpenOptions& options) override;
  std::unique_ptr<Network> open_masked(const Graph& graph, const Plan& plan,
                                       const OpenOptions& options) override;
};

}  // namespace parsimony::torch_io
