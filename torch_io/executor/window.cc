#include <algorithm>

#include "parsimony/torch_io/executor/window_impl.h"

namespace parsimony::executor {
namespace {

int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

Window window_of(const Call& call, Ints kernel) {
  const size_t rank = kernel.size();
  Window window;
  window.kernel = std::move(kernel);
  window.stride = call.integers("strides", Ints(rank, 1));
  window.dilation = call.integers("dilations", Ints(rank, 1));
  window.begin = window.end = window.beyond = Ints(rank, 0);
  const Ints pads = call.integers("pads", Ints(2 * rank, 0));
  const std::string mode = call.text("auto_pad", "NOTSET");
  const bool ceil = call.integer("ceil_mode", 0) != 0;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t size = call.in(0).size(index(i) + 2);
    const int64_t stride = window.stride[i];
    const int64_t extent = (window.kernel[i] - 1) * window.dilation[i] + 1;
    if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
      const int64_t total = std::max<int64_t>(0, (up(size, stride) - 1) * stride + extent - size);
      window.begin[i] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
      window.end[i] = total - window.begin[i];
      continue;
    }
    if (mode == "VALID") continue;
    window.begin[i] = pads[i];
    window.end[i] = pads[rank + i];
    if (!ceil) continue;
    const int64_t padded = size + pads[i] + pads[rank + i];
    int64_t count = up(padded - extent, stride) + 1;
    // A window that would begin after the data is left out.
    if ((count - 1) * stride >= size + pads[i]) --count;
    window.beyond[i] = std::max<int64_t>(0, (count - 1) * stride + extent - padded);
  }
  return window;
}

at::Tensor padded_for(const Window& window, const at::Tensor& x, double value) {
  Ints pad;
  bool any = false;
  for (size_t i = window.kernel.size(); i-- > 0;) {
    pad.push_back(window.begin[i]);
    pad.push_back(window.end[i] + window.beyond[i]);
    any = any || pad[pad.size() - 2] != 0 || pad.back() != 0;
  }
  return any ? at::constant_pad_nd(x, pad, value) : x;
}

}  // namespace parsimony::executor
