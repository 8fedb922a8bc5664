// The sliding window of convolution and pooling.
#pragma once

#include "parsimony/torch_io/executor/call_impl.h"

namespace parsimony::executor {

/// One number per spatial axis of x[n c ..s].
struct Window {
  Ints kernel;
  Ints stride;
  Ints dilation;
  Ints begin;  ///< explicit padding
  Ints end;
  /// Additional padding after `end` for the last window with ceil_mode; never counted.
  Ints beyond;
};

/// From the attributes strides, dilations, pads, auto_pad and ceil_mode.
Window window_of(const Call& call, Ints kernel);

/// x with the window's padding around it.
at::Tensor padded_for(const Window& window, const at::Tensor& x, double value);

}  // namespace parsimony::executor
