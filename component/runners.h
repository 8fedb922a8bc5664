// What the command runs: graphs by our executor, TorchScript by libtorch's interpreter.
#pragma once

#include <utility>

#include "parsimony/api/model.h"
#include "parsimony/component/guard.h"
#include "parsimony/torch_io/prove.h"

namespace parsimony::component {

class FunctionRunner final : public Runner {
 public:
  explicit FunctionRunner(torch_io::Computation run) : run_(std::move(run)) {}

  Tensors run(const Tensors& inputs) override { return Tensors{run_(inputs.list)}; }

 private:
  torch_io::Computation run_;
};

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
