// Mixed precision.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <vector>

#include "parsimony/configs/recipe.h"

namespace parsimony::training {

/// Enables autocast during its lifetime. Does nothing for float32.
class Autocast {
 public:
  Autocast(Precision precision, c10::Device device);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool on_ = false;
  bool cuda_ = false;
};

/// Scales the loss up before the backward pass and the gradients down before the step, since small
/// gradients underflow in float16. A step with infinite gradients is skipped and the scale halved.
/// All of it happens on the parameters' device.
/// @source Micikevicius et al., Mixed Precision Training, 2017
class GradientScaler {
 public:
  /// Only float16 is scaled.
  explicit GradientScaler(Precision precision);

  at::Tensor scaled(const at::Tensor& loss);
  /// Divides the gradients and adapts the scale.
  /// @returns 1 if the step must be skipped, otherwise 0; undefined if nothing is scaled
  at::Tensor unscale(const std::vector<at::Tensor>& parameters);

  double scale() const;
  /// Returns the steps since the scale was last halved; it is doubled periodically.
  int64_t good_steps() const;
  void take_up(double scale, int64_t good_steps);

 private:
  bool on_;
  at::Tensor scale_;       ///< on the loss's device, after the first loss
  at::Tensor good_steps_;  ///< likewise; float32, exact up to 2^24
};

}  // namespace parsimony::training
