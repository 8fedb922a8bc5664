#include "parsimony/training/ranks/replicas.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <string>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <unordered_map>
#include <utility>

#include "parsimony/torch_io/reason.h"
#include "parsimony/training/errors.h"

namespace parsimony::training {
namespace {

std::vector<at::Tensor> trained(std::vector<at::Tensor> parameters) {
  std::erase_if(parameters, [](const at::Tensor& tensor) { return !tensor.requires_grad(); });
  return parameters;
}

/// "[64, 3, 3, 3] Float", one line a tensor.
std::string kinds_of(const std::vector<at::Tensor>& tensors) {
  std::string text;
  for (const at::Tensor& tensor : tensors) {
    text += to_string(Shape(tensor.sizes().begin(), tensor.sizes().end())) + " " +
            c10::toString(tensor.scalar_type()) + "\n";
  }
  return text;
}

std::unique_ptr<c10d::Reducer> reducer_of(const RankGroup& group,
                                          const std::vector<at::Tensor>& parameters,
                                          const ReplicasOptions& options) {
  auto [buckets, limits] = c10d::compute_bucket_assignment_by_size(
      parameters, {static_cast<size_t>(options.first_bucket), static_cast<size_t>(options.bucket)});
  // Gradients arrive back to front.
  std::ranges::reverse(buckets);
  std::ranges::reverse(limits);
  const std::vector<bool> sparse(parameters.size(), false);
  std::unordered_map<size_t, std::string> names;
  for (size_t i = 0; i < parameters.size(); ++i) names[i] = std::to_string(i);
  auto reducer = std::make_unique<c10d::Reducer>(
      parameters, buckets, limits, group.handle(), sparse, options.bucket, options.find_unused,
      /*gradient_as_bucket_view=*/false, names, options.first_bucket);
  if (options.half) {
    reducer->register_builtin_comm_hook(c10d::BuiltinCommHookType::FP16_COMPRESS);
  }
  return reducer;
}

}  // namespace

Replicas::Replicas(const RankGroup& group, std::vector<at::Tensor> parameters,
                   std::vector<at::Tensor> buffers, const ReplicasOptions& options)
    : group_(group),
      parameters_(trained(std::move(parameters))),
      buffers_(std::move(buffers)),
      find_unused_(options.find_unused) {
  if (parameters_.empty()) throw errors::nothing_to_reduce();
  group.agree("the parameters of the network", kinds_of(parameters_));
  group.share(parameters_);
  share_buffers();
  reducer_ = reducer_of(group, parameters_, options);
}

Replicas::Replicas(const RankGroup& group, const torch::nn::Module& module,
                   const ReplicasOptions& options)
    : Replicas(group, module.parameters(), module.buffers(), options) {}

Replicas::~Replicas() = default;

/// A loss that gives every parameter a gradient of zeros.
at::Tensor Replicas::nothing() const {
  at::Tensor sum = at::zeros({}, parameters_.front().options());
  for (const at::Tensor& parameter : parameters_) sum = sum + parameter.mul(0).sum();
  return sum;
}

void Replicas::backward(const at::Tensor& loss, int64_t samples, int64_t all) {
  if (all == 0) {
    const at::Tensor count = at::full({1}, samples, at::kLong);
    group_.sum(count);
    all = count.item<int64_t>();
  }
  // The reducer divides by the number of ranks.
  const double share = static_cast<double>(samples * group_.size()) / static_cast<double>(all);
  const at::Tensor own = samples == 0 ? nothing() : share == 1 ? loss : loss * share;
  try {
    reducer_->rebuild_buckets();
    reducer_->prepare_for_backward(find_unused_ ? std::vector<at::Tensor>{own}
                                                : std::vector<at::Tensor>{});
    own.backward();
  } catch (const std::exception& error) {
    throw errors::rank_lost(group_.rank(), group_.size(), "exchanging gradients",
                            torch_io::reason_of(error));
  }
}

}  // namespace parsimony::training
