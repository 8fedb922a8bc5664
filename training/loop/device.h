// The device on which a network is trained.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

#include "parsimony/configs/recipe.h"
#include "parsimony/training/net/trainable_model.h"

namespace parsimony::training {

/// "auto" is the first CUDA device, if there is one. @throws ConfigError, UnsupportedError
c10::Device parse_device(const std::string& text);

/// Moves parameters and buffers to the device; 4-d tensors get the memory format.
void place(TrainedModule& module, c10::Device device, bool channels_last);

/// @throws UnsupportedError if several processes cannot share work on the device
void check_ranks(c10::Device device);

/// During its lifetime cuDNN does not try kernels for every new shape, of which statistics and
/// recovery have hundreds.
class NoKernelTrials {
 public:
  NoKernelTrials();
  ~NoKernelTrials();
  NoKernelTrials(const NoKernelTrials&) = delete;
  NoKernelTrials& operator=(const NoKernelTrials&) = delete;

 private:
  bool before_;
};

/// Whether data of this many bytes may lie on the device all along: on CUDA up to 4 GiB.
bool holds(c10::Device device, int64_t bytes);

/// Whether images' numbers lie with their channels last. What "auto" means follows from what is
/// trained, not from a measurement, so that the same run gives the same bits: on a processor
/// oneDNN's kernels, on CUDA those of half precision prefer it.
bool has_channels_last(MemoryFormat format, const Shape& sample, Precision precision,
                       c10::Device device);

}  // namespace parsimony::training
