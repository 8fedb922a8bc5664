// Calibration data from arrays, in runs of a network.
#pragma once

#include <algorithm>
#include <cstdint>

#include "parsimony/api/prune.h"
#include "parsimony/data/input_data.h"

namespace parsimony {

/// Which samples calibration does not see: some of those behind the ones that calibrate.
struct HeldSamples {
  int64_t begin = 0;
  int64_t count = 0;

  HeldSamples(const InputData& data, int64_t calibrating) {
    constexpr int64_t kMost = 256;
    const int64_t run = data.batch(1);
    begin = (calibrating + run - 1) / run * run;  // where a run takes several, it has none of both
    count = std::clamp<int64_t>(data.samples() - begin, 0, kMost);
  }
};

/// The samples that calibrate, and some of those behind them.
class CalibrationSamples {
 public:
  /// @throws as InputData
  CalibrationSamples(const CalibrationData& job, const Graph& graph)
      : data_(job.data, graph, job.inputs, job.image),
        count_(std::min(job.samples, data_.samples())),
        held_(data_, count_) {}

  int64_t count() const { return count_; }
  int64_t held() const { return held_.count; }
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
    const int64_t begin = held ? held_.begin : 0;
    const int64_t end = begin + (held ? held_.count : count_);
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
  const HeldSamples held_;
};

}  // namespace parsimony
