#include "parsimony/torch_io/bound_run.h"

#include <ATen/ATen.h>

#include <cstring>
#include <utility>

#include "parsimony/torch_io/tensor.h"

namespace parsimony::torch_io {
namespace {

TensorBytes to_bytes(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.detach().cpu().contiguous();
  TensorBytes copy;
  copy.dtype = dtype_of(dense.scalar_type());
  copy.dims = dense.sizes().vec();
  copy.bytes.resize(dense.nbytes());
  if (!copy.bytes.empty()) std::memcpy(copy.bytes.data(), dense.data_ptr(), copy.bytes.size());
  return copy;
}

class TensorRun final : public BoundRun {
 public:
  explicit TensorRun(BoundComputation compute) : compute_(std::move(compute)) {}

  void run() override { outputs_ = compute_(); }

  std::vector<TensorBytes> outputs() override {
    std::vector<TensorBytes> result;
    for (const at::Tensor& output : outputs_) result.push_back(to_bytes(output));
    return result;
  }

 private:
  BoundComputation compute_;
  std::vector<at::Tensor> outputs_;
};

}  // namespace

std::vector<at::Tensor> to_tensors(const std::vector<TensorBytes>& inputs) {
  std::vector<at::Tensor> tensors;
  for (const TensorBytes& input : inputs) {
    at::Tensor tensor = at::empty(input.dims, scalar_type_of(input.dtype));
    if (!input.bytes.empty()) {
      std::memcpy(tensor.data_ptr(), input.bytes.data(), input.bytes.size());
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

std::unique_ptr<BoundRun> bound_run(BoundComputation compute) {
  return std::make_unique<TensorRun>(std::move(compute));
}

}  // namespace parsimony::torch_io
