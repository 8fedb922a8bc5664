#include "parsimony/training/run/record.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "parsimony/base/files.h"
#include "parsimony/engines/timing.h"
#include "parsimony/graph/operators/linear_form.h"

namespace parsimony::training {
namespace {

LedgerPoint::Evidence evidence(const Proof& proof) {
  LedgerPoint::Evidence result;
  result.ran = proof.ran();
  result.reason = proof.not_run;
  result.against = proof.mixes ? "the original with the removed channels absent from its statistics"
                               : "the original with the removed slices set to zero";
  if (const OutputDifference* worst = proof.worst()) {
    result.difference = worst->difference;
    result.tolerance = worst->tolerance;
  }
  return result;
}

/// Returns the axis along which a weight has its layer's outputs, by the plans: exporters also
/// write matrices with the inputs first.
size_t output_axis(const std::string& tensor, const std::vector<Plan>& plans) {
  size_t axis = 0;
  for (const Plan& plan : plans) {
    for (const PlanGroup& group : plan.groups) {
      for (const PlanSlice& slice : group.slices) {
        if (slice.tensor != tensor) continue;
        if (slice.role == Role::kOut) return slice.axis;
        if (slice.role == Role::kIn && slice.axis == 0) axis = 1;
      }
    }
  }
  return axis;
}

/// "conv1" for "conv1.weight".
std::string layer_of(std::string tensor) {
  constexpr std::string_view kSuffix = ".weight";
  if (tensor.ends_with(kSuffix)) tensor.resize(tensor.size() - kSuffix.size());
  return tensor;
}

}  // namespace

void Record::add(PruneResult cut, double seconds, TrainableModel& net) {
  if (plans.empty()) {
    point.params.before = cut.dense.params;
    point.macs.before = cut.dense.macs;
  }
  point.params.after = cut.small.params;
  point.macs.after = cut.small.macs;
  point.prune_seconds += seconds;
  point.unpruned_dims = cut.plan.unpruned_dims;
  if (!cut.plan.empty()) point.proof = evidence(cut.proof);
  plans.push_back(std::move(cut.plan));
  point.layers = layer_widths(net, plans, dense_shapes);
}

void Record::add(const EpochTimes& epoch, const RankGroup& ranks, bool first) {
  if (!point.ranks) point.ranks.emplace();
  std::vector<int64_t>& bytes = point.ranks->step_bytes;
  if (first || bytes.empty()) bytes.push_back(0);
  bytes.back() = epoch.step_bytes;
  const Phases& seconds = epoch.seconds;
  const double working = seconds.total() - seconds.wait - seconds.exchange;
  const at::Tensor rates = at::zeros({ranks.size()}, at::kDouble);
  rates[ranks.rank()] = static_cast<double>(epoch.samples) / working;
  ranks.sum(rates);
  const double* begin = rates.data_ptr<double>();
  point.ranks->samples_per_second.assign(begin, begin + ranks.size());
}

std::vector<LedgerPoint::Layer> layer_widths(TrainableModel& net, const std::vector<Plan>& plans,
                                             const std::map<std::string, Shape>& dense_shapes) {
  std::vector<LedgerPoint::Layer> layers;
  for (const auto& [name, tensor] : net.parameters()) {
    const auto dense = dense_shapes.find(name);
    if (tensor.dim() < 2 || dense == dense_shapes.end()) continue;
    const size_t axis = output_axis(name, plans);
    const std::string op = layer_word(static_cast<size_t>(tensor.dim()));
    layers.push_back(
        {layer_of(name), op, dense->second[axis], tensor.size(static_cast<int64_t>(axis))});
  }
  return layers;
}

int64_t bytes_of(TrainableModel& net, const at::Tensor& example, const std::string& scratch) {
  const TemporaryFolder folder(scratch);
  net.save((folder.path() / "model").string(), example);
  return folder.bytes();
}

double latency_of(TrainableModel& net, const at::Tensor& x) {
  constexpr int kWarmUp = 3;
  constexpr int kRuns = 15;
  const at::NoGradGuard no_grad;
  net.train(false);
  std::vector<double> times;
  for (int i = 0; i < kWarmUp + kRuns; ++i) {
    const double begin = machine::steady_seconds();
    // The sum synchronises the device.
    static_cast<void>(net.forward(x).sum().item<double>());
    if (i >= kWarmUp) times.push_back((machine::steady_seconds() - begin) * 1e3);
  }
  std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
  return times[kRuns / 2];
}

}  // namespace parsimony::training
