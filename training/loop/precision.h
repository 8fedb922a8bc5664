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

/// Small gradients underflow in float16: the loss is scaled up before the backward pass, the
/// gradients down before the step. A step with infinite gradients is skipped and the scale halved.
/// @source Micikevicius et al., Mixed Precision Training, 2017
class GradientScaler {
 public:
  /// Only float16 is scaled.
  explicit GradientScaler(Precision precision) : on_(precision == Precision::kFloat16) {}

  at::Tensor scaled(const at::Tensor& loss) const;
  /// Divides the gradients. @returns false if the step must be skipped
  bool unscale(const std::vector<at::Tensor>& parameters);

  double scale() const { return scale_; }
  /// Steps since the scale was last changed; it is doubled periodically.
  int good_steps() const { return good_steps_; }
  void take_up(double scale, int good_steps) {
    scale_ = scale;
    good_steps_ = good_steps;
  }

 private:
  bool on_;
  double scale_ = 65536;
  int good_steps_ = 0;
};

}  // namespace parsimony::training
