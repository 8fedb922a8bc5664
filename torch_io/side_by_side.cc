#include "parsimony/torch_io/side_by_side.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "parsimony/base/parallel.h"
#include "parsimony/torch_io/machine.h"

namespace parsimony::torch_io {
namespace {

/// Uses one thread for each operator, also in threads started meanwhile.
class OneThreadEach {
 public:
  OneThreadEach() : before_(at::get_num_threads()) {
    if (before_ > 1) at::set_num_threads(1);
  }
  ~OneThreadEach() {
    if (before_ > 1) at::set_num_threads(before_);
  }
  OneThreadEach(const OneThreadEach&) = delete;
  OneThreadEach& operator=(const OneThreadEach&) = delete;

 private:
  int before_;
};

}  // namespace

int batches_at_once(c10::Device device) {
  if (!device.is_cpu()) return 1;
  constexpr int kMost = 8;
  return std::clamp(cores_to_use(), 1, kMost);
}

void side_by_side(int64_t count, c10::Device device, const std::function<void(int64_t)>& work) {
  const OneThreadEach one_thread_each;
  const bool gradients = at::GradMode::is_enabled();
  parallel_for(count, static_cast<int>(std::min<int64_t>(count, batches_at_once(device))),
               [&](int64_t i) {
                 at::init_num_threads();  // oneDNN and BLAS do not
                 const at::AutoGradMode mode(gradients);
                 work(i);
               });
}

}  // namespace parsimony::torch_io
