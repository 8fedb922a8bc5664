// A training step as one launch: what a step has a CUDA device do is recorded once and replayed.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>

namespace parsimony::training {

/// Work is recorded, and run, on a stream of its own during the lifetime of one of these. Does
/// nothing on a processor.
class StepStream {
 public:
  explicit StepStream(c10::Device device);
  /// Later work on the stream that was current before waits for this one's.
  ~StepStream();
  StepStream(const StepStream&) = delete;
  StepStream& operator=(const StepStream&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Recorded work on a CUDA device. It reads and writes the same tensors every time.
class StepGraph {
 public:
  /// False where libtorch was built, or this library is, without CUDA.
  static bool can_record(c10::Device device);

  /// Calls `work`, which is not done: it is recorded. Within a StepStream; the work must have been
  /// done there a few times before, so that libraries have chosen their kernels.
  /// @throws c10::Error for work that reads results on the host, or whose sizes depend on them
  explicit StepGraph(const std::function<void()>& work);
  ~StepGraph();
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  void replay();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace parsimony::training
