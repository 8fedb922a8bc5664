// The device on which a network is trained.
#pragma once

#include <c10/core/Device.h>

#include <string>

#include "parsimony/configs/recipe.h"
#include "parsimony/training/net/net.h"

namespace parsimony::training {

/// "auto" is the first CUDA device, if there is one. @throws ConfigError, UnsupportedError
c10::Device parse_device(const std::string& text);

/// Moves parameters and buffers to the device; 4-d tensors get the memory format.
void place(Net& net, c10::Device device, bool channels_last);

/// Measures which memory format trains `net` faster on such inputs, by three interleaved steps of
/// each. Does not change the network's values or the random generator.
bool channels_last_is_quicker(const Net& net, const at::Tensor& inputs, const at::Tensor& labels,
                              int64_t classes);

}  // namespace parsimony::training
