// The networks of examples/models, narrow, with weights that no two tensors have in common.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>

#include "parsimony/base/types.h"
#include "parsimony/torch_io/mirror.h"

namespace parsimony::test {

struct Network {
  std::string name;
  Shape input;
  std::shared_ptr<torch::nn::Module> module;
  torch_io::Forward forward;
};

/// The same network at every call.
Network make_network(const std::string& name);

int64_t count_parameters(const torch::nn::Module& module);

}  // namespace parsimony::test
