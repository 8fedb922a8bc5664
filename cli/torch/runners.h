// What the command runs: graphs by our executor, TorchScript by libtorch's interpreter.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "parsimony/api/model.h"
#include "parsimony/cli/torch/guard.h"
#include "parsimony/torch_io/bound_run.h"
#include "parsimony/torch_io/prove.h"

namespace parsimony::component {

/// A BoundRun whose errors may leave the component.
class GuardedRun final : public BoundRun {
 public:
  explicit GuardedRun(std::unique_ptr<BoundRun> run) : run_(std::move(run)) {}

  void run() override {
    guarded([&] { run_->run(); });
  }
  std::vector<TensorBytes> outputs() override {
    return guarded([&] { return run_->outputs(); });
  }

 private:
  std::unique_ptr<BoundRun> run_;
};

class FunctionRunner final : public Runner {
 public:
  /// Makes inputs that stay part of the computation.
  using Bind = std::function<torch_io::BoundComputation(std::vector<at::Tensor>)>;

  /// Without `bind` it is `run` on these inputs.
  explicit FunctionRunner(torch_io::Computation run, Bind bind = {})
      : run_(std::move(run)), bind_(std::move(bind)) {
    if (bind_) return;
    bind_ = [this](std::vector<at::Tensor> inputs) {
      return [this, inputs = std::move(inputs)] { return run_(inputs); };
    };
  }

  Tensors run(const Tensors& inputs) override { return {run_.each(inputs.runs)}; }

  std::unique_ptr<BoundRun> bind(const std::vector<TensorBytes>& inputs) override {
    return guarded([&] {
      return std::make_unique<GuardedRun>(torch_io::bound_run(bind_(torch_io::to_tensors(inputs))));
    });
  }

 private:
  torch_io::Computation run_;
  Bind bind_;
};

/// Single runs read those weights anew; bound ones hold all.
inline std::unique_ptr<Runner> graph_runner(Graph graph,
                                            std::function<bool(const Weight&)> read_anew) {
  if (!read_anew) return std::make_unique<FunctionRunner>(torch_io::plain_run(graph));
  torch_io::Computation run = torch_io::plain_run(graph, std::move(read_anew));
  return std::make_unique<FunctionRunner>(
      std::move(run), [graph = std::move(graph)](std::vector<at::Tensor> inputs) {
        return [compute = torch_io::plain_run(graph), inputs = std::move(inputs)] {
          return compute(inputs);
        };
      });
}

/// A Reference whose errors may leave the component.
class GuardedProver final : public Prover {
 public:
  explicit GuardedProver(torch_io::Reference reference) : reference_(std::move(reference)) {}

  Proof prove(Runner& small) override {
    return guarded([&] { return reference_.prove(small); });
  }

 private:
  torch_io::Reference reference_;
};

}  // namespace parsimony::component
