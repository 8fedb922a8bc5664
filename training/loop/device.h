// Where a network is trained.
#pragma once

#include <c10/core/Device.h>

#include <string>

#include "parsimony/configs/recipe.h"
#include "parsimony/training/net/net.h"

namespace parsimony::training {

/// "auto" is CUDA's first device where there is one. @throws ConfigError, UnsupportedError
c10::Device parse_device(const std::string& text);

/// Moves parameters and buffers there; those with four dimensions take the memory format.
void place(Net& net, c10::Device device, bool channels_last);

/// The quicker of the two formats for training `net` on inputs like these, by three steps of each
/// in turn. The network's values and the random generator stay as they are.
bool channels_last_is_quicker(const Net& net, const at::Tensor& inputs, const at::Tensor& labels);

}  // namespace parsimony::training
