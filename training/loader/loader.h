// Batches for training and judging: gathered ahead by a thread of its own.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "parsimony/training/data/dataset.h"

namespace parsimony::training {

/// What each sample goes through anew in every epoch. Only for images [c, h, w].
struct Augmentation {
  bool flip = false;   ///< left and right change places for every other sample
  int64_t crop = 0;    ///< moved by up to so many pixels in each direction, zeros come in
  int64_t cutout = 0;  ///< a square of this side takes the mean's value; it may stick out
};

struct LoaderOptions {
  int64_t batch = 64;
  bool shuffle = true;
  bool drop_last = false;  ///< leave the last batch out where it is smaller than the others
  uint64_t seed = 0;       ///< of the order and of the augmentation
  Augmentation augmentation = {};
  c10::Device device{c10::kCPU};
  c10::ScalarType dtype = c10::kFloat;  ///< of the inputs: kFloat, kBFloat16 or kHalf
  bool channels_last = false;
  int64_t prefetch = 4;  ///< batches that wait at most; 0: no thread, next() gathers itself
  /// Inputs are (value · scale - mean) / deviation: see Dataset.
  double scale = 1;
  std::vector<double> mean = {};
  std::vector<double> deviation = {};
};

/// Takes scale, mean and deviation from the data set.
LoaderOptions with_scale_of(const Dataset& data, LoaderOptions options);

/// As it is for judging: in order, unchanged, complete.
LoaderOptions for_evaluation(LoaderOptions options);

struct Batch {
  at::Tensor inputs;  ///< [b, ..dims], of the options' type, on their device
  at::Tensor labels;  ///< [b], int64
  int64_t index = 0;  ///< within the epoch, from 0
};

/// Goes through samples batch by batch. Order and augmentation are functions of (seed, epoch,
/// sample) and of nothing else: who goes on at (epoch, batch) sees what an undisturbed run sees.
///
///     Loader loader(data.train, with_scale_of(data, {.batch = 64, .seed = 1}));
///     loader.start(epoch);
///     while (auto batch = loader.next()) train(batch->inputs, batch->labels);
///
/// On the CPU the thread gathers and converts in one pass, without ATen's threads. For CUDA it
/// gathers bytes into pinned memory; next() copies them without waiting and converts there.
class Loader {
 public:
  /// `samples` must outlive the loader.
  /// @throws ConfigError if the options contradict themselves or the samples
  Loader(const Samples& samples, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Begins an epoch, at its batch `first_batch`; leaves the one under way.
  void start(int64_t epoch, int64_t first_batch = 0);

  /// The next batch; nothing at the epoch's end, or before start(). The tensors may be kept.
  /// Rethrows what the thread met.
  std::optional<Batch> next();

  /// Batches in a whole epoch.
  int64_t batches() const;

  /// Seconds spent in next() since the loader was made: waiting, and converting on the device as
  /// far as this thread does it.
  double wait_seconds() const;

 private:
  class Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace parsimony::training
