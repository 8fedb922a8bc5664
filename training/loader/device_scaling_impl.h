// Converts stored values to inputs on the network's device.
#pragma once

#include <ATen/core/Tensor.h>

#include "parsimony/training/loader/gather_impl.h"
#include "parsimony/training/loader/loader.h"

namespace parsimony::training {

/// Does on any device what Gatherer does on the CPU: scales, normalises, and converts to the
/// options' type and memory format.
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

}  // namespace parsimony::training
