// A training step as one launch: the CUDA work of a step is recorded once and replayed.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>

namespace parsimony::training {

/// Records and runs work on a separate stream during its lifetime. Does nothing on the CPU.
class StepStream {
 public:
  explicit StepStream(c10::Device device);
  /// Makes later work on the previously current stream wait for this one's.
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
  /// Returns false if libtorch or this library was built without CUDA.
  static bool can_record(c10::Device device);

  /// Records the work of `work` without executing it. Must be called within a StepStream, in which
  /// the work has run a few times before, so that libraries have chosen their kernels.
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
