#include "parsimony/training/statistics/measure.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <optional>
#include <utility>

#include "parsimony/torch_io/executor/graph_module.h"
#include "parsimony/training/net/logits.h"
#include "parsimony/training/statistics/activations.h"
#include "parsimony/training/statistics/errors.h"

namespace parsimony::training {
namespace {

constexpr int64_t kBatch = 32;

/// Samples that the network takes at once; 0 if that is open.
int64_t fixed_batch(const Graph& graph) {
  const auto& declared = graph.value(graph.inputs.front()).declared;
  return declared && !declared->empty() && declared->front() > 0 ? declared->front() : 0;
}

void check_dims(const Graph& graph, const at::Tensor& x) {
  const auto& declared = graph.value(graph.inputs.front()).declared;
  if (!declared) return;
  const Shape found = x.sizes().vec();
  bool fits = declared->size() == found.size();
  for (size_t d = 1; fits && d < found.size(); ++d) {
    fits = (*declared)[d] <= 0 || (*declared)[d] == found[d];
  }
  if (!fits) throw errors::calibration_dims(found, *declared);
}

}  // namespace

struct Measuring::State {
  State(const Graph& of, const Facts& facts, const Coupling& coupling, const Needs& needs)
      : graph(of), net(nullptr), sites(sites_of(of, coupling)) {
    if (of.inputs.size() != 1) throw errors::calibration_inputs(of.inputs.size());
    for (const Group& group : coupling.groups) statistics.groups.push_back(group.id);
    net = GraphModule(with_logits(of));
    activations.emplace(of, facts, coupling, sites, needs.channels);
    net->observe([this](const Node&, ValueId value, const at::Tensor& x) { see(value, x); });
  }

  void see(ValueId value, const at::Tensor& x) {
    const at::NoGradGuard no_grad;
    activations->see(value, x.detach());
  }

  const Graph& graph;
  GraphModule net;
  std::vector<Site> sites;
  std::optional<ActivationSums> activations;
  Statistics statistics;
};

Measuring::Measuring(const Graph& graph, const Facts& facts, const Coupling& coupling,
                     const Needs& needs)
    : state_(std::make_unique<State>(graph, facts, coupling, needs)) {}
Measuring::~Measuring() = default;
Measuring::Measuring(Measuring&&) noexcept = default;

int64_t Measuring::batch() const {
  const int64_t fixed = fixed_batch(state_->graph);
  return fixed > 0 ? fixed : kBatch;
}

void Measuring::add(const Batch& batch) {
  check_dims(state_->graph, batch.inputs);
  const at::NoGradGuard no_grad;
  state_->net->forward(batch.inputs);
  const int64_t count = batch.labels.size(0);
  state_->activations->add_samples(count);
  state_->statistics.samples += count;
}

Statistics Measuring::finish() const {
  Statistics statistics = state_->statistics;
  state_->activations->finish(statistics);
  return statistics;
}

int64_t Measuring::bytes() const { return state_->activations->bytes(); }

Statistics measure(const Graph& graph, const Facts& facts, const Coupling& coupling,
                   const Needs& needs, const Batches& batches) {
  Measuring measuring(graph, facts, coupling, needs);
  const int64_t fixed = fixed_batch(graph);
  const Feed feed = batches(measuring.batch());
  bool any = false;
  while (const std::optional<Batch> batch = feed()) {
    if (fixed > 0 && batch->labels.size(0) != fixed) continue;
    measuring.add(*batch);
    any = true;
  }
  if (!any) throw errors::no_calibration_data(measuring.batch());
  return measuring.finish();
}

Measurement measurement(Batches batches) {
  return [batches = std::move(batches)](const Graph& graph, const Facts& facts,
                                        const Coupling& coupling, const Needs& needs) {
    return measure(graph, facts, coupling, needs, batches);
  };
}

}  // namespace parsimony::training
