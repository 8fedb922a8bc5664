// Batches for training and evaluation, prefetched by a thread.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "parsimony/data/dataset.h"

namespace parsimony::training {

/// Augmentation of each sample in every epoch, for images [c, h, w] only.
struct Augmentation {
  bool flip = false;  ///< flips half of the samples horizontally
  /// Random shift by up to this many pixels in each direction, padded with zeros.
  int64_t crop = 0;
  /// Side of a square that is filled with the mean; it may extend beyond the image.
  int64_t cutout = 0;

  bool any() const { return flip || crop != 0 || cutout != 0; }
};

struct LoaderOptions {
  int64_t batch = 64;
  bool shuffle = true;
  bool drop_last = false;  ///< drop the last batch if it is incomplete
  uint64_t seed = 0;       ///< of the sample order and the augmentation
  Augmentation augmentation = {};
  c10::Device device{c10::kCPU};
  /// Type of the inputs: kFloat, kBFloat16 or kHalf; kLong for tokens.
  c10::ScalarType dtype = c10::kFloat;
  bool channels_last = false;
  /// Restricts every batch to the share of this rank: consecutive samples, as many as for the other
  /// ranks or one fewer; possibly none of the last batch.
  int rank = 0;
  int ranks = 1;
  /// Uploads the samples at the first start() and augments them on the device, without a thread.
  bool resident = false;
  int64_t prefetch = 4;  ///< maximum number of prefetched batches; 0: no thread
  /// Inputs are (value · scale - mean) / deviation: see Dataset.
  double scale = 1;
  std::vector<double> mean = {};
  std::vector<double> deviation = {};
};

/// Takes scale, mean, deviation and whether samples are tokens from the data set.
LoaderOptions with_scale_of(const Dataset& data, LoaderOptions options);

/// Returns options for evaluation: in order, without augmentation, complete. Since each sample is
/// needed once, the data is not made resident.
LoaderOptions for_evaluation(LoaderOptions options);

struct Batch {
  at::Tensor inputs;   ///< [b, ..dims], of the options' type and device
  at::Tensor labels;   ///< [b, ..label_dims], int64
  int64_t index = 0;   ///< within the epoch, from 0
  int64_t of_all = 0;  ///< samples of all ranks together
};

/// Iterates over samples in batches. Order and augmentation depend only on (seed, epoch, sample):
/// resuming at (epoch, batch) gives the same batches as an uninterrupted run.
///
///     Loader loader(data.train, with_scale_of(data, {.batch = 64, .seed = 1}));
///     loader.start(epoch);
///     while (auto batch = loader.next()) train(batch->inputs, batch->labels);
///
/// On the CPU the thread gathers and converts in one pass, without ATen's threads. For CUDA it
/// gathers bytes into pinned memory; next() copies them without waiting and converts there.
/// Resident samples yield the same batches.
class Loader {
 public:
  /// `samples` must outlive the loader.
  /// @throws ConfigError if the options are inconsistent or do not match the samples
  Loader(const Samples& samples, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Starts an epoch at batch `first_batch`, abandoning the current one.
  void start(int64_t epoch, int64_t first_batch = 0);

  /// Returns the next batch; empty at the end of the epoch, or before start(). The tensors may be
  /// kept. Rethrows the thread's exceptions.
  std::optional<Batch> next();

  /// Returns the number of batches per epoch.
  int64_t batches() const;

  /// Returns the seconds spent in next() so far: waiting, and converting on the device as far as
  /// this thread does it.
  double wait_seconds() const;

 private:
  class Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace parsimony::training
