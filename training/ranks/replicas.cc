#include "parsimony/training/ranks/replicas.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <string>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <unordered_map>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/base/types.h"
#include "parsimony/torch_io/reason.h"

namespace parsimony::training {
namespace {

std::vector<at::Tensor> trained(std::vector<at::Tensor> parameters) {
  std::erase_if(parameters, [](const at::Tensor& tensor) { return !tensor.requires_grad(); });
  return parameters;
}

/// Returns "[64, 3, 3, 3] Float", one line per tensor.
std::string kinds_of(const std::vector<at::Tensor>& tensors) {
  std::string text;
  for (const at::Tensor& tensor : tensors) {
    text += to_string(Shape(tensor.sizes().begin(), tensor.sizes().end())) + " " +
            c10::toString(tensor.scalar_type()) + "\n";
  }
  return text;
}

/// Sums a bucket as the reducer does by default, optionally in half precision, and counts bytes.
class Hook final : public c10d::CommHookInterface {
 public:
  Hook(const RankGroup& group, const ReplicasOptions& options, SentGradients& sent)
      : group_(group.handle()),
        // Ranks that use other parameters have their buckets ready between other sums.
        shared_(options.find_unused ? nullptr : group.shared()),
        half_(options.half),
        seen_(options.seen),
        sent_(sent) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    const auto begin = std::chrono::steady_clock::now();
    const at::Tensor buffer = bucket.getBufferRef();
    std::vector<at::Tensor> sent = {half_ ? buffer.to(at::kHalf) : buffer};
    sent[0].div_(group_->getSize());
    const auto bytes = static_cast<int64_t>(sent[0].nbytes());
    sent_.bytes += bytes;
    sent_.ready = begin - sent_.blocked;
    const auto finish = [seen = seen_, begin, bytes, buffer, sum = sent[0]] {
      if (!sum.is_same(buffer)) buffer.copy_(sum);
      if (seen) seen({begin, std::chrono::steady_clock::now(), bytes});
      return c10::IValue(buffer);
    };
    if (shared_ != nullptr && shared_->takes(sent[0])) {
      shared_->sum(sent[0]);
      sent_.blocked += std::chrono::steady_clock::now() - begin;
      auto done = c10::make_intrusive<c10::ivalue::Future>(c10::TensorType::get());
      done->markCompleted(finish());
      return done;
    }
    return group_->allreduce(sent)->getFuture()->then(
        [finish](c10::ivalue::Future& done) {
          if (done.hasError()) std::rethrow_exception(done.exception_ptr());
          return finish();
        },
        c10::TensorType::get());
  }

  at::Tensor parseHookResult(const c10::IValue& result) override { return result.toTensor(); }

 private:
  const c10::intrusive_ptr<c10d::ProcessGroup> group_;
  SharedSums* const shared_;
  const bool half_;
  const std::function<void(const Exchange&)> seen_;
  SentGradients& sent_;
};

/// Handles versions of libtorch: later ones take no bucket limits, and the latest have more
/// trailing options.
template <typename Reducer, typename Buckets, typename Limits, typename... Options>
std::unique_ptr<Reducer> make_reducer(const std::vector<at::Tensor>& parameters,
                                      const Buckets& buckets, const Limits& limits,
                                      const Options&... options) {
  using Tensors = std::vector<at::Tensor>;
  if constexpr (std::is_constructible_v<Reducer, Tensors, Buckets, Limits, Options...>) {
    return std::make_unique<Reducer>(parameters, buckets, limits, options...);
  } else if constexpr (std::is_constructible_v<Reducer, Tensors, Buckets, Options...>) {
    return std::make_unique<Reducer>(parameters, buckets, options...);
  } else if constexpr (std::is_constructible_v<Reducer, Tensors, Buckets, Options..., bool, bool>) {
    return std::make_unique<Reducer>(parameters, buckets, options..., false, false);
  } else {
    return std::make_unique<Reducer>(parameters, buckets, options...,
                                     /*skip_all_reduce_unused_params=*/false,
                                     /*use_python_reducer=*/false,
                                     /*bucket_bytes_cap_list=*/std::vector<int64_t>());
  }
}

std::unique_ptr<c10d::Reducer> reducer_of(const RankGroup& group,
                                          const std::vector<at::Tensor>& parameters,
                                          const ReplicasOptions& options, SentGradients& sent) {
  auto [buckets, limits] = c10d::compute_bucket_assignment_by_size(
      parameters, {static_cast<size_t>(options.first_bucket), static_cast<size_t>(options.bucket)});
  // Gradients become ready from back to front.
  std::ranges::reverse(buckets);
  std::ranges::reverse(limits);
  const std::vector<bool> sparse(parameters.size(), false);
  std::unordered_map<size_t, std::string> names;
  for (size_t i = 0; i < parameters.size(); ++i) names[i] = std::to_string(i);
  auto reducer = make_reducer<c10d::Reducer>(
      parameters, buckets, limits, group.handle(), sparse, options.bucket, options.find_unused,
      /*gradient_as_bucket_view=*/true, names, options.first_bucket);
  reducer->register_comm_hook(std::make_unique<Hook>(group, options, sent));
  return reducer;
}

}  // namespace

Replicas::Replicas(const RankGroup& group, std::vector<at::Tensor> parameters,
                   std::vector<at::Tensor> buffers, const ReplicasOptions& options)
    : group_(group),
      parameters_(trained(std::move(parameters))),
      buffers_(std::move(buffers)),
      find_unused_(options.find_unused) {
  if (parameters_.empty()) {
    throw UnsupportedError("no parameter of the network requires a gradient");
  }
  group.agree("the parameters of the network", kinds_of(parameters_));
  group.share(parameters_);
  share_buffers();
  reducer_ = reducer_of(group, parameters_, options, sent_);
}

Replicas::Replicas(const RankGroup& group, const torch::nn::Module& module,
                   const ReplicasOptions& options)
    : Replicas(group, module.parameters(), module.buffers(), options) {}

Replicas::~Replicas() = default;

/// Returns a loss that gives every parameter a gradient of zeros.
at::Tensor Replicas::nothing() const {
  at::Tensor sum = at::zeros({}, parameters_.front().options());
  for (const at::Tensor& parameter : parameters_) sum = sum + parameter.mul(0).sum();
  return sum;
}

void Replicas::backward(const at::Tensor& loss, int64_t samples, int64_t all) {
  if (all == 0) all = group_.sum(samples);
  // The reducer divides by the number of ranks.
  const double share = static_cast<double>(samples * group_.size()) / static_cast<double>(all);
  const at::Tensor own = samples == 0 ? nothing() : share == 1 ? loss : loss * share;
  sent_ = {.ready = std::chrono::steady_clock::now()};
  try {
    reducer_->rebuild_buckets();
    reducer_->prepare_for_backward(find_unused_ ? std::vector<at::Tensor>{own}
                                                : std::vector<at::Tensor>{});
    own.backward();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    const std::string why = torch_io::reason_of(error);
    if (why.find("finished reduction in the prior iteration") != std::string::npos) {
      throw UnsupportedError(
          "some parameters did not contribute to the loss of the previous step; set "
          "ReplicasOptions::find_unused: ",
          why);
    }
    const bool by_others =
        why.find("gloo") != std::string::npos || why.find("shared memory") != std::string::npos;
    if (!by_others) throw;
    throw group_.lost("exchanging gradients of step " + std::to_string(steps_), why);
  }
  // Gradients are views of buckets, which saves a copy; optimizers must not be affected.
  for (at::Tensor& parameter : parameters_) {
    at::Tensor& gradient = parameter.mutable_grad();
    if (gradient.defined()) gradient = gradient.variable_data();
  }
  ++steps_;
}

}  // namespace parsimony::training
