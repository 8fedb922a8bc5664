#include "parsimony/training/loop/step_graph.h"

#ifdef PARSIMONY_CUDA
#include <ATen/cuda/CUDAGraph.h>
#endif
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <exception>

namespace parsimony::training {
namespace {

void wait(const c10::Stream& waiting, const c10::Stream& for_this) {
  c10::Event done(for_this.device_type());
  done.record(for_this);
  done.block(waiting);
}

}  // namespace

struct StepStream::State {
  explicit State(c10::Device device)
      : devices(device.type()),
        before(devices.getStream(device.has_index() ? device : devices.getDevice())),
        own(devices.getStreamFromGlobalPool(before.device(), /*isHighPriority=*/true)),
        guard(own) {
    wait(own, before);
  }
  ~State() { wait(before, own); }

  c10::impl::VirtualGuardImpl devices;
  c10::Stream before;
  c10::Stream own;
  c10::StreamGuard guard;
};

StepStream::StepStream(c10::Device device) {
  if (!device.is_cpu()) state_ = std::make_unique<State>(device);
}

StepStream::~StepStream() = default;

#ifdef PARSIMONY_CUDA

struct StepGraph::State {
  at::cuda::CUDAGraph graph;
};

bool StepGraph::can_record(c10::Device device) { return device.is_cuda(); }

StepGraph::StepGraph(const std::function<void()>& work) : state_(std::make_unique<State>()) {
  // Threads of the loader may allocate memory in the meantime.
  state_->graph.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
  std::exception_ptr failure;
  try {
    work();
  } catch (...) {
    failure = std::current_exception();
  }
  try {
    state_->graph.capture_end();
  } catch (const c10::Error&) {
    // If a recording failed, the first error counts.
    if (!failure) throw;
  }
  if (!failure) return;
  std::rethrow_exception(failure);
}

void StepGraph::replay() { state_->graph.replay(); }

#else

struct StepGraph::State {};
bool StepGraph::can_record(c10::Device /*device*/) { return false; }
StepGraph::StepGraph(const std::function<void()>& /*work*/) {
  TORCH_CHECK(false, "built without CUDA");
}
void StepGraph::replay() {}

#endif

StepGraph::~StepGraph() = default;

}  // namespace parsimony::training
