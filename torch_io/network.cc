#include "parsimony/torch_io/network.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <torch/version.h>

#include <cstring>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/speedup/fit_layers.h"
#include "parsimony/torch_io/executor/choices.h"
#include "parsimony/torch_io/executor/graph_module.h"
#include "parsimony/torch_io/reason.h"
#include "parsimony/torch_io/side_by_side.h"
#include "parsimony/torch_io/tensor.h"

namespace parsimony::torch_io {
namespace {

/// Rethrows errors as standard ones: callers that open a network do not depend on libtorch.
template <typename Work>
auto guarded(Work&& work) {
  try {
    return work();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw std::runtime_error(reason_of(error));
  }
}

/// Disables oneDNN's kernels during its lifetime, to compute with alternate ones.
class OtherKernels {
 public:
  OtherKernels() : used_(at::globalContext().userEnabledMkldnn()) {
    at::globalContext().setUserEnabledMkldnn(!used_);
  }
  ~OtherKernels() { at::globalContext().setUserEnabledMkldnn(used_); }
  OtherKernels(const OtherKernels&) = delete;
  OtherKernels& operator=(const OtherKernels&) = delete;

 private:
  bool used_;
};

/// Returns the tensor's bytes; none if it is undefined.
TensorBytes bytes_of(const at::Tensor& tensor) {
  TensorBytes copy;
  if (!tensor.defined()) return copy;
  const at::Tensor dense = tensor.detach().cpu().contiguous();
  copy.dtype = dtype_of(dense.scalar_type());
  copy.dims = dense.sizes().vec();
  copy.bytes.resize(dense.nbytes());
  if (!copy.bytes.empty()) std::memcpy(copy.bytes.data(), dense.data_ptr(), copy.bytes.size());
  return copy;
}

/// A tensor that stays on its device.
class TorchValue final : public EngineTensor {
 public:
  explicit TorchValue(at::Tensor tensor) : tensor_(std::move(tensor)) {}

  DType dtype() const override { return dtype_of(tensor_.scalar_type()); }
  Shape dims() const override { return tensor_.sizes().vec(); }
  TensorBytes to_host() const override { return bytes_of(tensor_); }

  const at::Tensor& tensor() const { return tensor_; }

 private:
  at::Tensor tensor_;
};

std::vector<ComparedChoice> compared(const Choices& choices) {
  std::vector<ComparedChoice> result;
  for (const Choice& choice : choices.list()) {
    result.push_back(
        {choice.node, choice.operand, bytes_of(choice.numbers), bytes_of(choice.found)});
  }
  return result;
}

}  // namespace

at::Tensor tensor_of(const EngineValue& value) {
  if (value == nullptr) return {};
  if (const auto* own = dynamic_cast<const TorchValue*>(value.get())) return own->tensor();
  return to_tensors({value->to_host()}).front();
}

EngineValue value_of(at::Tensor tensor) {
  return tensor.defined() ? std::make_shared<const TorchValue>(std::move(tensor)) : nullptr;
}

TorchNetwork::List to_tensors(const TensorList& inputs) {
  TorchNetwork::List tensors;
  for (const TensorBytes& input : inputs) {
    at::Tensor tensor = at::empty(input.dims, scalar_type_of(input.dtype));
    if (!input.bytes.empty()) {
      std::memcpy(tensor.data_ptr(), input.bytes.data(), input.bytes.size());
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

TensorList to_bytes(const TorchNetwork::List& tensors) {
  TensorList result;
  for (const at::Tensor& tensor : tensors) result.push_back(bytes_of(tensor));
  return result;
}

std::vector<TensorList> TorchNetwork::run(const std::vector<TensorList>& inputs,
                                          const RunOptions& options) {
  return guarded([&] {
    std::vector<List> tensors;
    for (const TensorList& one : inputs) tensors.push_back(to_tensors(one));
    std::optional<OtherKernels> other;
    if (options.alternate_kernels) other.emplace();
    std::vector<List> outputs;
    if (options.choices == nullptr) {
      outputs = each(tensors);
    } else if (const auto* before = std::any_cast<Choices>(&options.choices->recorded)) {
      Choices choices = *before;
      const Choices::Use use(choices, Choices::Mode::kReplay);
      outputs = each(tensors);
      options.choices->compared = compared(choices);
    } else {
      Choices choices;
      const Choices::Use use(choices, Choices::Mode::kRecord);
      outputs = each(tensors);
      if (!choices.list().empty()) options.choices->recorded = std::move(choices);
    }
    std::vector<TensorList> result;
    for (const List& one : outputs) result.push_back(to_bytes(one));
    return result;
  });
}

EngineValues TorchNetwork::forward(const EngineValues& inputs) {
  return guarded([&] {
    List tensors;
    for (const EngineValue& input : inputs) tensors.push_back(tensor_of(input));
    EngineValues outputs;
    for (at::Tensor& output : (*this)(tensors)) outputs.push_back(value_of(std::move(output)));
    return outputs;
  });
}

void TorchNetwork::bind(const TensorList& inputs) {
  guarded([&] {
    List tensors = to_tensors(inputs);
    bound_ = bind_ ? bind_(std::move(tensors))
                   : [run = each_, tensors = std::move(tensors)] { return run({tensors}).front(); };
    computed_.clear();
  });
}

void TorchNetwork::compute() {
  guarded([&] { computed_ = bound_(); });
}

TensorList TorchNetwork::outputs() {
  return guarded([&] { return to_bytes(computed_); });
}

namespace {

GraphModuleOptions options_of(std::function<bool(const Weight&)> streamed) {
  return {.trainable = false, .streamed = std::move(streamed)};
}

/// Returns the weights that are read, by name.
std::set<std::string_view> read_weights(const Graph& graph) {
  std::set<std::string_view> read;
  const auto see = [&](ValueId v) {
    if (graph.value(v).weight != kNone) read.insert(graph.weight_of(v).name);
  };
  for (const Node& node : graph.nodes) for_each_read(graph, node, see);
  for (const ValueId v : graph.outputs) see(v);
  return read;
}

TorchNetwork in_floats(GraphModule module) {
  module->widen_halves();
  return [module](const std::vector<TorchNetwork::List>& inputs) mutable {
    const at::NoGradGuard no_grad;
    return module->forward_each(inputs);
  };
}

}  // namespace

TorchNetwork masked_run(const Graph& original, const Plan& plan,
                        std::function<bool(const Weight&)> streamed) {
  GraphEditor reference(original);
  replay(reference_changes(plan), reference);
  GraphModule module(reference.graph(), options_of(std::move(streamed)));
  module->mask(plan);
  return in_floats(std::move(module));
}

TorchNetwork plain_run(const Graph& graph, std::function<bool(const Weight&)> streamed,
                       c10::Device device) {
  const auto not_held = [streamed = std::move(streamed),
                         read = read_weights(graph)](const Weight& weight) {
    return !read.contains(weight.name) || (streamed && streamed(weight));
  };
  GraphModule module(graph, options_of(not_held));
  if (!device.is_cpu()) module->to(device);
  return in_floats(std::move(module));
}

std::string TorchEngine::version() const { return TORCH_VERSION; }

std::unique_ptr<Network> TorchEngine::open(const Graph& graph, const OpenOptions& options) {
  return guarded([&] {
    auto network = std::make_unique<TorchNetwork>(plain_run(graph, options.stays, device_));
    if (options.stays) {  // bound networks store all weights, for timing
      network->timed_by(
          [graph, device = device_](TorchNetwork::List inputs) -> TorchNetwork::Bound {
            return [compute = plain_run(graph, {}, device), inputs = std::move(inputs)] {
              return compute(inputs);
            };
          });
    }
    return network;
  });
}

std::unique_ptr<Network> TorchEngine::open_masked(const Graph& graph, const Plan& plan,
                                                  const OpenOptions& options) {
  return guarded(
      [&] { return std::make_unique<TorchNetwork>(masked_run(graph, plan, options.stays)); });
}

int TorchEngine::at_once() const { return batches_at_once(device_); }

namespace {

/// The transpose of a matrix [rows, columns] that is stored by columns.
at::Tensor transposed(const double* data, int64_t rows, int64_t columns) {
  return at::from_blob(const_cast<double*>(data), {columns, rows}, at::kDouble);
}

}  // namespace

bool TorchEngine::multiply(int64_t rows, int64_t inner, int64_t columns, const double* a,
                           const double* b, double* c) const {
  const at::NoGradGuard no_gradients;
  try {
    const at::Tensor first = transposed(a, rows, inner).to(device_);
    const at::Tensor second = transposed(b, inner, columns).to(device_);
    transposed(c, rows, columns).copy_(second.mm(first));
    return true;
  } catch (const c10::Error&) {  // a device without memory
    return false;
  }
}

bool TorchEngine::solve(int64_t n, const double* a, int64_t columns, double* b) const {
  const at::NoGradGuard no_gradients;
  try {
    const auto [factor, failed] = at::linalg_cholesky_ex(transposed(a, n, n).to(device_));
    if (failed.item<int>() != 0) return false;
    const at::Tensor right = transposed(b, n, columns);
    right.copy_(at::cholesky_solve(right.to(device_).t(), factor).t());
    return true;
  } catch (const c10::Error&) {
    return false;
  }
}

void TorchEngine::side_by_side(int64_t count, const std::function<void(int64_t)>& work) {
  torch_io::side_by_side(count, device_, work);
}

}  // namespace parsimony::torch_io
