// Calibration samples and held-out samples, in runs of a network.
#pragma once

#include <algorithm>
#include <cstdint>

#include "parsimony/api/prune_request.h"
#include "parsimony/data/sample_source.h"

namespace parsimony {

/// Options for reading a job's data. @param whole  read more than the samples that calibrate
inline SampleOptions sample_options(const CalibrationData& job, bool whole = false) {
  SampleOptions options{job.inputs, job.image, {}};
  if (!whole) options.labelled.train_samples = job.sample_count();
  options.labelled.mean = job.mean;
  options.labelled.deviation = job.deviation;
  return options;
}

/// The samples that calibration does not see: the first of the test part, else some of those
/// behind the ones that calibrate, which alone are to judge (see CalibrationData::judges).
struct HeldOutSamples {
  int64_t begin = 0;
  int64_t count = 0;

  HeldOutSamples(const SampleSource& data, int64_t calibrating, bool judges = false) {
    constexpr int64_t kMost = 256;
    // Labels are noisy: the standard error of an accuracy of 90 % is one point.
    constexpr int64_t kMostTested = 1024;
    if (data.test_samples() > 0 && !judges) {
      begin = data.samples();
      count = std::min(data.test_samples(), kMostTested);
      return;
    }
    const int64_t run = data.batch(1);
    begin = (calibrating + run - 1) / run * run;  // a run of several samples does not mix both
    count = std::clamp<int64_t>(data.samples() - begin, 0, kMost);
  }
};

/// The calibration samples, and the held-out samples.
class CalibrationSamples {
 public:
  /// @throws as SampleSource
  CalibrationSamples(const CalibrationData& job, const Graph& graph)
      : data_(job.data, graph, sample_options(job)),
        count_(job.calibrating(data_.samples())),
        held_out_(data_, count_, job.judges) {}

  int64_t count() const { return count_; }
  int64_t held_out() const { return held_out_.count; }
  /// Returns the number of samples per run: `requested`, unless network or arrays fix it.
  int64_t batch(int64_t requested) const { return data_.batch(requested); }
  /// Returns the number of values in one sample's inputs.
  int64_t values() const { return data_.values(); }

  /// Calls `see` with the first sample and the number of samples of every run; an incomplete last
  /// run is dropped if the number is fixed. @param held_out  run the held-out samples instead
  template <typename See>
  void for_each(bool held_out, int64_t requested, const See& see) const {
    held_out ? runs(held_out_.begin, held_out_.count, requested, see)
             : runs(0, count_, requested, see);
  }

  /// Calls `see` likewise for every run of the whole test part.
  template <typename See>
  void for_each_test(int64_t requested, const See& see) const {
    runs(data_.samples(), data_.test_samples(), requested, see);
  }

  const SampleSource& data() const { return data_; }

 private:
  template <typename See>
  void runs(int64_t begin, int64_t samples, int64_t requested, const See& see) const {
    const int64_t end = begin + samples;
    const int64_t size = data_.batch(requested);
    const bool fixed = data_.batch(1) > 1;
    for (int64_t first = begin; first < end; first += size) {
      const int64_t count = std::min(size, end - first);
      if (fixed && count < size) break;
      see(first, count);
    }
  }

  const SampleSource data_;
  const int64_t count_;
  const HeldOutSamples held_out_;
};

}  // namespace parsimony
