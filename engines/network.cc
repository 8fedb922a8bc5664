#include "parsimony/engines/network.h"

#include <utility>

namespace parsimony {
namespace {

class HostValue final : public EngineTensor {
 public:
  explicit HostValue(TensorBytes tensor) : tensor_(std::move(tensor)) {}

  DType dtype() const override { return tensor_.dtype; }
  Shape dims() const override { return tensor_.dims; }
  TensorBytes to_host() const override { return tensor_; }

 private:
  TensorBytes tensor_;
};

}  // namespace

EngineValue host_value(TensorBytes tensor) {
  return std::make_shared<const HostValue>(std::move(tensor));
}

EngineValues host_values(TensorList tensors) {
  EngineValues values;
  for (TensorBytes& tensor : tensors) values.push_back(host_value(std::move(tensor)));
  return values;
}

TensorList on_host(const EngineValues& values) {
  TensorList tensors;
  for (const EngineValue& value : values) tensors.push_back(value->to_host());
  return tensors;
}

EngineValues Network::forward(const EngineValues& inputs) {
  return host_values(std::move(run({on_host(inputs)}).front()));
}

}  // namespace parsimony
