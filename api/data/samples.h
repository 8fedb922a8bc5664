// Calibration data from arrays, in runs of a network.
#pragma once

#include <algorithm>
#include <cstdint>

#include "parsimony/api/data/input_data.h"
#include "parsimony/api/prune.h"

namespace parsimony {

/// The samples that calibrate, and some of those behind them.
class CalibrationSamples {
 public:
  /// @throws as InputData
  CalibrationSamples(const CalibrationData& job, const Graph& graph)
      : data_(job.data, graph, job.inputs, job.image),
        count_(std::min(job.samples, data_.samples())) {
    constexpr int64_t kMostHeld = 256;
    const int64_t run = data_.batch(1);
    held_begin_ = (count_ + run - 1) / run * run;
    held_ = std::clamp<int64_t>(data_.samples() - held_begin_, 0, kMostHeld);
  }

  int64_t count() const { return count_; }
  int64_t held() const { return held_; }
  /// So many to a run, unless network or arrays fix it.
  int64_t batch(int64_t wanted) const { return data_.batch(wanted); }
  /// Values of one sample's inputs.
  int64_t values() const {
    const int64_t run = data_.batch(1);
    int64_t values = 0;
    for (const TensorBytes& input : data_.inputs(0, run)) values += element_count(input.dims) / run;
    return values;
  }

  /// Calls `see` with the first sample and the number of samples of every run; a last one of fewer
  /// is left out where the number is fixed. @param held  of those behind
  template <typename See>
  void for_each(bool held, int64_t wanted, const See& see) const {
    const int64_t begin = held ? held_begin_ : 0;
    const int64_t end = begin + (held ? held_ : count_);
    const int64_t size = data_.batch(wanted);
    const bool fixed = data_.batch(1) > 1;
    for (int64_t first = begin; first < end; first += size) {
      const int64_t count = std::min(size, end - first);
      if (fixed && count < size) break;
      see(first, count);
    }
  }

  const InputData& data() const { return data_; }

 private:
  const InputData data_;
  const int64_t count_;
  int64_t held_begin_ = 0;
  int64_t held_ = 0;
};

}  // namespace parsimony
