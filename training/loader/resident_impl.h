// Samples stored on the network's device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "parsimony/data/dataset.h"
#include "parsimony/training/loader/gather_impl.h"
#include "parsimony/training/loader/loader.h"

namespace parsimony::training {

/// Like Gatherer, on any device: scales, normalises, and converts to the options' type and memory
/// format.
class DeviceScaling {
 public:
  /// For samples with `dims` dimensions.
  DeviceScaling(const Gatherer& gatherer, size_t dims, const LoaderOptions& options);

  /// `stored` is [b, ..dims] on the options' device.
  at::Tensor operator()(const at::Tensor& stored) const;

 private:
  at::Tensor factors_;  ///< per channel, multiplies [b, ..dims]
  at::Tensor offsets_;
  c10::ScalarType dtype_;
  c10::MemoryFormat format_;
};

/// Samples as stored, uploaded once and augmented on the device with Gatherer's random numbers.
class ResidentSamples {
 public:
  ResidentSamples(const Samples& samples, const Gatherer& gatherer, const LoaderOptions& options);

  struct Chunk {
    at::Tensor inputs;  ///< [indices, ..dims], of the options' type
    at::Tensor labels;  ///< [indices, ..label_dims]
  };
  Chunk chunk(int64_t epoch, std::span<const int64_t> indices) const;

 private:
  at::Tensor augmented(const at::Tensor& stored, const std::vector<int64_t>& draws) const;

  const Gatherer& gatherer_;
  const LoaderOptions& options_;
  DeviceScaling scaling_;
  at::Tensor values_;  ///< [count, ..dims], as stored
  at::Tensor labels_;  ///< [count, ..label_dims]
  at::Tensor fill_;    ///< [c, 1, 1], of cutout, in stored values
};

}  // namespace parsimony::training
