// The device on which a network is trained.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

#include "parsimony/configs/recipe.h"
#include "parsimony/training/net/trainable_model.h"

namespace parsimony::training {

/// Parses a device; "auto" is the first CUDA device, if any. @throws ConfigError, UnsupportedError
c10::Device parse_device(const std::string& text);

/// Moves parameters and buffers to the device; 4-d tensors get the memory format.
void place(TrainedModule& module, c10::Device device, bool channels_last);

/// @throws UnsupportedError if several processes cannot share work on the device
void check_ranks(c10::Device device);

/// Disables cuDNN's benchmark mode during its lifetime: statistics and recovery have hundreds of
/// shapes.
class NoKernelTrials {
 public:
  NoKernelTrials();
  ~NoKernelTrials();
  NoKernelTrials(const NoKernelTrials&) = delete;
  NoKernelTrials& operator=(const NoKernelTrials&) = delete;

 private:
  bool before_;
};

/// Whether data of this many bytes may stay on the device: on CUDA up to 4 GiB.
bool holds(c10::Device device, int64_t bytes);

/// Whether to store images channels-last. "auto" depends on the training setup, not on a
/// measurement, so that the same run yields the same bits: oneDNN's kernels on the CPU prefer it,
/// on CUDA those of half precision.
bool has_channels_last(MemoryFormat format, const Shape& sample, Precision precision,
                       c10::Device device);

}  // namespace parsimony::training
