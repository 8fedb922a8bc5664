#include "parsimony/training/recovery/refit.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include "parsimony/api/recovery/row_sums.h"
#include "parsimony/torch_io/executor/graph_module.h"
#include "parsimony/torch_io/executor/linear_rows.h"
#include "parsimony/torch_io/tensor.h"
#include "parsimony/training/recovery/ends.h"
#include "parsimony/training/recovery/fit_sums.h"
#include "parsimony/training/recovery/recurrence.h"
#include "parsimony/training/statistics/side_by_side.h"

namespace parsimony::training {
namespace {

/// Holds only the weights that the part reads.
GraphModule lean(const Graph& part) {
  IdVector<WeightId, bool> read(part.weights.size(), false);
  for (const Node& node : part.nodes) {
    for_each_read(part, node, [&](ValueId v) {
      if (part.value(v).weight != kNone) read[part.value(v).weight] = true;
    });
  }
  std::vector<std::string> unread;
  for (const WeightId w : part.weights.ids()) {
    if (!read[w]) unread.push_back(part.weights[w].name);
  }
  std::ranges::sort(unread);
  const auto is_unread = [&](const Weight& weight) {
    return std::ranges::binary_search(unread, weight.name);
  };
  return GraphModule(part, GraphModuleOptions{.trainable = false, .streamed = is_unread});
}

class TorchPart final : public Part {
 public:
  TorchPart(const Graph& part, c10::Device device) : module_(lean(part)) { module_->to(device); }

  std::vector<Held> run(const std::vector<Held>& inputs) override {
    std::vector<at::Tensor> tensors;
    for (const Held& input : inputs) tensors.push_back(tensor_of(input));
    std::vector<Held> found;
    for (at::Tensor& output : module_->forward(tensors)) found.push_back(held(std::move(output)));
    return found;
  }

 private:
  GraphModule module_;
};

class TorchSums final : public LayerSums {
 public:
  TorchSums(LayerFit fit, const RankGroup* ranks)
      : fit_(std::move(fit)), ranks_(ranks), sums_(fit_.weights, fit_.shift) {}

  void next_round() override { sums_.next_round(); }

  void add(const Held& input, const Held& wanted, const Held& found, How how) override {
    const int64_t axis = fit_.layer.answer_axis;
    at::Tensor target = tensor_of(wanted).to(at::kFloat);
    if (!fit_.kept.empty()) {
      target = target.index_select(axis, at::tensor(fit_.kept, at::kLong).to(target.device()));
    }
    const at::Tensor own = tensor_of(found).to(at::kFloat);
    if (!target.sizes().equals(own.sizes())) return;
    at::Tensor lack = target - own;
    if (how.rectified) lack = at::where(target.gt(0), lack, own.clamp_min(0).neg());
    const auto in_rows = [&](at::Tensor answer) {
      for (size_t i = 0; i < fit_.steps.size(); ++i) {
        answer = at::slice(answer, static_cast<int64_t>(i) + 2, 0, {}, fit_.steps[i]);
      }
      return answer_rows(answer, axis, groups_of_layer(fit_.node));
    };
    const at::Tensor x = tensor_of(input).to(at::kFloat);
    const at::Tensor weight = torch_io::to_tensor(fit_.weight).to(x.device());
    sums_.add(linear_rows(fit_.node, x, weight, fit_.steps), in_rows(lack),
              how.held_out ? in_rows(target) : at::Tensor(), how.held_out);
  }

  std::vector<SplitSums> sums() override { return sums_.sums(ranks_); }

 private:
  const LayerFit fit_;
  const RankGroup* ranks_;
  FitSums sums_;
};

std::vector<double> numbers_in(const at::Tensor& x) {
  const at::Tensor dense = x.to(at::kCPU, at::kDouble).contiguous();
  return {dense.data_ptr<double>(), dense.data_ptr<double>() + dense.numel()};
}

}  // namespace

at::Tensor tensor_of(const Held& held) {
  return held ? *static_cast<const at::Tensor*>(held.get()) : at::Tensor();
}

Held held(at::Tensor tensor) { return std::make_shared<const at::Tensor>(std::move(tensor)); }

HeldFeed held(Feed feed) {
  return [feed = std::move(feed)]() -> std::optional<HeldBatch> {
    std::optional<SampleBatch> batch = feed();
    if (!batch) return {};
    HeldBatch result;
    for (at::Tensor& input : batch->inputs) result.inputs.push_back(held(std::move(input)));
    result.alone = batch->states != nullptr;
    return result;
  };
}

std::unique_ptr<Part> TorchRefit::open(const Graph& part) {
  return std::make_unique<TorchPart>(part, device_);
}

Shape TorchRefit::dims_of(const Held& value) const { return tensor_of(value).sizes().vec(); }

int64_t TorchRefit::bytes_of(const Held& value) const {
  return static_cast<int64_t>(tensor_of(value).nbytes());
}

int TorchRefit::at_once() const { return batches_at_once(device_); }

void TorchRefit::side_by_side(int64_t count, const std::function<void(int64_t)>& work) {
  training::side_by_side(count, device_, work);
}

HeldFeed TorchRefit::feed(bool small) {
  Feed feed = batches_(batch_);
  return held(small ? small_feed(small_, std::move(feed)) : std::move(feed));
}

std::unique_ptr<LayerSums> TorchRefit::sums_for(const LayerFit& fit) {
  return std::make_unique<TorchSums>(fit, ranks_);
}

JudgedFit TorchRefit::fit_recurrent(const Graph& dense, SmallNetwork& small, const FitLayer& layer,
                                    const FitData& data, const RefitOptions& options,
                                    const std::string& reason) {
  RecurrentFit fit(dense, small, layer, options.weights);
  for (size_t b = 0; b < data.inputs.size(); ++b) {
    std::vector<at::Tensor> of_dense;
    for (const auto& batches : data.wanted) of_dense.push_back(tensor_of(batches[b]));
    fit.add(tensor_of(data.inputs[b]), of_dense, data.held_out[b]);
  }
  return fit.finish(options.ridge, ranks_, reason);
}

ChannelMoments TorchRefit::moments_of(const Held& value) {
  const at::Tensor x = tensor_of(value);
  const at::Tensor rows = x.movedim(1, -1).reshape({-1, x.size(1)}).to(at::kDouble);
  return {rows.size(0), numbers_in(rows.sum(0)), numbers_in(rows.square().sum(0))};
}

int TorchRefit::ranks() const { return ranks_ == nullptr ? 1 : ranks_->size(); }

void TorchRefit::sum_over_ranks(std::span<double> numbers) {
  if (ranks_ == nullptr) return;
  ranks_->sum(at::from_blob(numbers.data(), {std::ssize(numbers)}, at::kDouble));
}

int refit(const Graph& dense, SmallNetwork& small, const std::vector<std::string>& fixed,
          const Batches& batches, const RefitOptions& options, const RankGroup* ranks) {
  const at::NoGradGuard no_grad;
  TorchRefit engine(small, batches, options.batch, ranks);
  return parsimony::refit(engine, dense, small, fixed, options);
}

int estimate_batch_norms(SmallNetwork& small, const Batches& batches, int64_t batch,
                         const RankGroup* ranks) {
  const at::NoGradGuard no_grad;
  TorchRefit engine(small, batches, batch, ranks);
  return parsimony::estimate_batch_norms(engine, small);
}

}  // namespace parsimony::training
