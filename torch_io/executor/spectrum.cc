// Fourier transforms and window functions. Real and imaginary part are along the last axis.
#include <cmath>
#include <numbers>

#include "parsimony/torch_io/executor/operators_impl.h"

namespace parsimony::executor {
namespace {

at::Tensor as_complex(const at::Tensor& x) {
  if (x.size(-1) == 2) return at::view_as_complex(x.contiguous());
  return at::complex(x.select(-1, 0), at::zeros_like(x.select(-1, 0)));
}

int64_t axis_of_dft(const Call& call) {
  constexpr int kAxisIsOperand = 20;
  const int64_t rank = call.in(0).dim();
  if (call.opset() < kAxisIsOperand) return wrapped(call.integer("axis", 1), rank);
  return wrapped(call.has_in(2) ? call.ints_in(2).at(0) : -2, rank);
}

/// a - b cos(2π i / n) + c cos(4π i / n)
Tensors cosines(const Call& call, double a, double b, double c) {
  const int64_t size = call.ints_in(0).at(0);
  const bool periodic = call.integer("periodic", 1) != 0;
  const double steps = static_cast<double>(periodic ? size : std::max<int64_t>(size - 1, 1));
  const at::Tensor angle = at::arange(size, at::kDouble) * (2 * std::numbers::pi / steps);
  const at::Tensor window = a - b * at::cos(angle) + c * at::cos(2 * angle);
  return {window.to(type_of_code(call, call.integer("output_datatype", 1)))};
}

}  // namespace

Tensors dft(const Call& call) {
  const int64_t axis = axis_of_dft(call);
  const bool onesided = call.integer("onesided", 0) != 0;
  const bool inverse = call.integer("inverse", 0) != 0;
  c10::optional<int64_t> length;
  if (call.has_in(1)) length = call.ints_in(1).at(0);
  const at::Tensor x = as_complex(call.in(0));
  if (onesided && inverse) return {at::fft_irfft(x, length, axis).unsqueeze(-1)};
  at::Tensor y = inverse ? at::fft_ifft(x, length, axis) : at::fft_fft(x, length, axis);
  if (onesided) y = y.narrow(axis, 0, y.size(axis) / 2 + 1);
  return {at::view_as_real(y)};
}

/// Transforms frames of a signal [n, length(, 1 or 2)] to [n, frames, frequencies, 2].
Tensors stft(const Call& call) {
  const at::Tensor& signal = call.in(0);
  const int64_t step = call.ints_in(1).at(0);
  const int64_t length = call.has_in(3) ? call.ints_in(3).at(0) : call.in(2).size(0);
  const at::Tensor x = signal.dim() == 2 ? signal.unsqueeze(-1) : signal;
  at::Tensor frames = as_complex(x).unfold(1, length, step);
  if (call.has_in(2)) frames = frames * call.in(2);
  at::Tensor y = at::fft_fft(frames, c10::nullopt, -1);
  if (call.integer("onesided", 1) != 0) y = y.narrow(-1, 0, length / 2 + 1);
  return {at::view_as_real(y)};
}

Tensors hann_window(const Call& call) { return cosines(call, 0.5, 0.5, 0); }
/// @source ONNX HammingWindow: 25/46
Tensors hamming_window(const Call& call) { return cosines(call, 25.0 / 46, 21.0 / 46, 0); }
Tensors blackman_window(const Call& call) { return cosines(call, 0.42, 0.5, 0.08); }

/// Triangular filters over the frequencies of a spectrum, equally spaced in mel = 2595 log10(1 + f
/// / 700)
/// @source ONNX MelWeightMatrix: the edges are rounded down to whole frequencies
Tensors mel_weight_matrix(const Call& call) {
  const int64_t bands = call.ints_in(0).at(0);
  const int64_t length = call.ints_in(1).at(0);
  const auto rate = static_cast<double>(call.ints_in(2).at(0));
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(call.number_in(3, 0));
  const double step = (mel(call.number_in(4, 0)) - low) / static_cast<double>(bands + 2);
  std::vector<double> edges;
  for (int64_t i = 0; i < bands + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (low + step * static_cast<double>(i)) / 2595) - 1);
    edges.push_back(std::floor(static_cast<double>(length + 1) * hertz / rate));
  }
  at::Tensor weights = at::zeros({length / 2 + 1, bands}, at::kDouble);
  auto at = weights.accessor<double, 2>();
  for (int64_t b = 0; b < bands; ++b) {
    const auto [left, middle, right] = std::tuple(edges[b], edges[b + 1], edges[b + 2]);
    for (int64_t f = 0; f < weights.size(0); ++f) {
      const auto x = static_cast<double>(f);
      if (x >= left && x < middle) at[f][b] = (x - left) / (middle - left);
      if (x >= middle && x < right) at[f][b] = (right - x) / (right - middle);
      if (x == middle) at[f][b] = 1;
    }
  }
  return {weights.to(type_of_code(call, call.integer("output_datatype", 1)))};
}

/// Whole axes are transformed: present where anything along them is.
Tensors transformed(const Operator& /*op*/, const Call& call, const Tensors& outputs) {
  const at::Tensor there = call.presence(0).any(axis_of_dft(call), true).any(-1, true);
  return {there.expand(outputs[0].sizes())};
}

}  // namespace parsimony::executor
