#include "parsimony/training/recovery/output_error.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "parsimony/api/network_error.h"
#include "parsimony/torch_io/executor/graph_module.h"
#include "parsimony/training/loop/target_loss.h"
#include "parsimony/training/recovery/ends.h"
#include "parsimony/training/statistics/side_by_side.h"

namespace parsimony::training {
namespace {

GraphModule runnable(const Graph& graph, c10::Device device) {
  GraphModule module(graph, GraphModuleOptions{.trainable = false});
  module->to(device);
  return module;
}

}  // namespace

double output_error(const Graph& dense, const SmallNetwork& small, const Batches& batches,
                    int64_t batch) {
  const at::NoGradGuard no_grad;
  const c10::Device device = device_of(batches);
  GraphModule wanted = runnable(dense, device);
  GraphModule found = runnable(small.graph(), device);
  OutputError error;
  const Feed feed = batches(batch);
  const Feed own = small_feed(small, batches(batch));
  while (true) {
    const std::vector<SampleBatch> group = next_group(feed, batches_at_once(device));
    const std::vector<SampleBatch> others = next_group(own, static_cast<int>(group.size()));
    if (group.empty()) break;
    std::vector<OutputError> errors(group.size());
    side_by_side(std::ssize(group), device, [&](int64_t g) {
      const std::vector<at::Tensor> a = small_outputs(small, wanted->forward(group[g].inputs));
      const std::vector<at::Tensor> b = found->forward(others[g].inputs);
      for (size_t o = 0; o < a.size(); ++o) {
        if (!a[o].is_floating_point() || !a[o].sizes().equals(b[o].sizes())) continue;
        const at::Tensor exact = a[o].to(at::kDouble);
        errors[g].add({.apart = (b[o].to(at::kDouble) - exact).square().sum().item<double>(),
                       .size = exact.square().sum().item<double>()});
      }
    });
    for (const OutputError& of_batch : errors) error.add(of_batch);
  }
  return error.relative();
}

double mean_loss(const SmallNetwork& network, const Batches& batches, int64_t batch,
                 const Loss& loss) {
  const at::NoGradGuard no_grad;
  GraphModule module = runnable(network.graph(), device_of(batches));
  double sum = 0;
  int64_t count = 0;
  const Feed feed = small_feed(network, batches(batch));
  while (const std::optional<SampleBatch> some = feed()) {
    const at::Tensor of_batch = loss(module->forward(some->inputs), *some);
    sum += of_batch.item<double>() * static_cast<double>(some->count);
    count += some->count;
  }
  return sum / static_cast<double>(std::max<int64_t>(1, count));
}

std::optional<double> accuracy(const Graph& graph, const Dataset& data, int64_t batch,
                               c10::Device device) {
  if (data.test.count() == 0) return {};
  const at::NoGradGuard no_grad;
  GraphModule module = runnable(graph, device);
  Loader loader(data.test, for_evaluation(with_scale_of(data, {.batch = batch, .device = device})));
  int64_t correct = 0;
  loader.start(0);
  while (const std::optional<Batch> some = loader.next()) {
    const at::Tensor answers = module->forward(some->inputs);
    const auto classes = static_cast<int64_t>(data.classes.size());
    const at::Tensor rows = class_rows(answers, some->labels);
    if (!rows.defined() || rows.size(1) < classes) return {};
    correct += rows.argmax(1).eq(some->labels.flatten()).sum().item<int64_t>();
  }
  const int64_t none = std::ranges::count(data.test.labels, kNoLabel);
  return static_cast<double>(correct) / static_cast<double>(std::ssize(data.test.labels) - none);
}

}  // namespace parsimony::training
