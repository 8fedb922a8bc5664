// Gathers samples into a batch: augmented, and for the CPU converted in the same pass. Uses no
// ATen.
#pragma once

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <cstdint>
#include <span>
#include <vector>

#include "parsimony/data/dataset.h"
#include "parsimony/training/loader/loader.h"

namespace parsimony::training {

/// Gathers and augments the samples of a batch.
class Gatherer {
 public:
  Gatherer(const Samples& samples, const LoaderOptions& options);

  /// The random numbers of a sample in an epoch, in this order.
  enum : int64_t { kFlip, kDown, kRight, kCentreY, kCentreX, kDraws };
  /// [indices, kDraws]
  std::vector<int64_t> draws(int64_t epoch, std::span<const int64_t> indices) const;

  /// Gathers the samples as stored, augmented: [indices, ..dims] of the samples' type.
  void gather(int64_t epoch, std::span<const int64_t> indices, std::byte* out) const;

  /// Gathers them scaled and normalised: [indices, ..dims], or [indices, h, w, c] for
  /// channels-last. `Input` is float, c10::BFloat16, c10::Half or int64_t.
  template <typename Input>
  void gather(int64_t epoch, std::span<const int64_t> indices, Input* out) const;

  /// Inputs are value · factor + offset, one of each per channel.
  const std::vector<float>& factors() const { return scale_.factors; }
  const std::vector<float>& offsets() const { return scale_.offsets; }
  /// Returns the values that cutout fills each channel with, in stored values.
  std::vector<float> fill() const;

 private:
  template <typename Pixel>
  const Pixel* augmented(int64_t epoch, int64_t index, Pixel* scratch) const;
  template <typename Pixel, typename Input>
  void convert(int64_t epoch, std::span<const int64_t> indices, Input* out) const;

  const Samples& samples_;
  const LoaderOptions& options_;
  int64_t channels_;
  int64_t plane_;  ///< values of one channel
  ChannelScale scale_;
  std::vector<float> fill_;  ///< the fill value of cutout, per channel, in stored values
};

}  // namespace parsimony::training
