#include "parsimony/training/statistics/measure.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/pruners/activations.h"
#include "parsimony/pruners/sites.h"
#include "parsimony/torch_io/executor/graph_module.h"
#include "parsimony/training/loop/device.h"
#include "parsimony/training/loop/output_loss.h"
#include "parsimony/training/loop/target_loss.h"
#include "parsimony/training/net/graph_net.h"
#include "parsimony/training/statistics/gradients.h"
#include "parsimony/training/statistics/input_moments.h"

namespace parsimony::training {
namespace {

at::Tensor class_loss(const at::Tensor& answers, const at::Tensor& labels) {
  const at::Tensor rows = class_rows(answers, labels);
  if (!rows.defined()) {
    throw ModelError("calibration: criteria by gradient need outputs of shape [", labels.size(0),
                     ", classes], found ", to_string(answers.sizes().vec()),
                     "; use a criterion by weights or activations");
  }
  const auto highest = labels.max().item<int64_t>();
  if (highest >= rows.size(1)) {
    throw ModelError("calibration: the data have label ", highest, ", the network has ",
                     rows.size(1), " classes");
  }
  return cross_entropy(rows, labels);
}

/// Undefined where the loss does not depend on a tensor.
std::vector<at::Tensor> differentiate(const at::Tensor& loss, const std::vector<at::Tensor>& by) {
  if (by.empty()) return {};
  return torch::autograd::grad({loss}, by, {}, {}, false, /*allow_unused=*/true);
}

}  // namespace

struct Measuring::State {
  State(const Graph& of, const Facts& facts, const Coupling& coupling, const Needs& needs,
        Loss given)
      : graph(of), net(nullptr), moments(of, needs.inputs), loss(std::move(given)), own(of) {
    const auto any = [&](std::initializer_list<Measure> wanted) {
      return std::any_of(wanted.begin(), wanted.end(),
                         [&](Measure measure) { return needs.channels.contains(measure); });
    };
    for (const Group& group : coupling.groups) statistics.groups.push_back(group.id);
    by_batch = any({Measure::kTaylor, Measure::kTaylorSquared});
    by_sample = any({Measure::kHessian, Measure::kFisher});
    by_weight = any({Measure::kHessian});
    if (by_sample && fixed_batch(of) > 1) {
      throw UnsupportedError(
          "calibration: criteria fisher and obd look at one sample at a time, and the network "
          "takes ",
          fixed_batch(of), " at once; use taylor, or export it with an open batch dimension");
    }
    const std::vector<Site> sites = sites_of(of, coupling);
    const bool gated = needs.channels.contains(Measure::kFisher);
    // In this order: the gates move nodes, and producers are no longer what they were.
    Graph answering = loss ? of : with_logits(of);
    Gated with = gated ? with_gates(answering, sites) : Gated{std::move(answering), {}};
    if ((by_batch || by_sample) && !loss) {
      std::vector<ValueId>& outputs = with.graph.outputs;
      outputs.resize(1);
      outputs.insert(outputs.end(), own.values().begin(), own.values().end());
    }
    net = GraphModule(std::move(with.graph),
                      GraphModuleOptions{.trainable = by_batch || by_sample, .constants = true});
    if (gated) gates.emplace(coupling, sites, std::move(with.gates));
    activations.emplace(of, facts, coupling, sites, needs.channels);
    weights.emplace(of, coupling, net->weights(), needs.channels);
    net->observe([this](const Node&, ValueId value, const at::Tensor& x) {
      if (looks) look(value, x);
      if (!looks && gates) gates->see(value, x);
    });
  }

  void look(ValueId value, const at::Tensor& x) {
    const at::NoGradGuard no_grad;
    if (!x.defined()) return;
    if (activations->observes(value)) {
      const at::Tensor dense = x.detach().to(at::kCPU, at::kFloat).contiguous();
      activations->see(value, {dense.data_ptr<float>(), dense.sizes().vec()});
    }
    moments.see(value, x.detach());
  }

  void add_batch(const SampleBatch& batch) {
    if (!placed && !batch.inputs.empty()) net->to(batch.inputs.front().device());
    placed = true;
    const bool learns = !loss && !batch.labels.defined() && (by_batch || by_sample);
    if (activations->empty() && moments.empty() && !by_batch && !learns) return;
    looks = true;
    for (size_t i = 0; i < batch.inputs.size(); ++i) look(graph.inputs[i], batch.inputs[i]);
    const at::AutoGradMode gradients(by_batch);
    const std::vector<at::Tensor> answers = net->forward(batch.inputs);
    if (learns) own.learn(of_own(answers));
    if (by_batch) weights->add_batch(differentiate(loss_of(answers, batch), weights->weights()));
  }

  void add_samples(const SampleBatch& batch) {
    if (add_together(batch)) return;
    for (int64_t i = 0; i < batch.count; ++i) {
      const std::optional<GateGradients::Changes> changes = add_part(part_of(batch, i, 1));
      if (gates) gates->add(*changes, 1);
    }
  }

  /// Where samples do not meet, one backward pass has the gates' gradients of all.
  bool add_together(const SampleBatch& batch) {
    const bool separable = gates && !by_weight && !loss && batch.labels.defined() &&
                           batch.labels.dim() == 1 && batch.labels.ne(kNoLabel).all().item<bool>();
    if (!separable || batch.count < 2) return false;
    if (!apart) apart = are_apart(part_of(batch, 0, 2));
    if (!*apart) return false;
    const std::optional<GateGradients::Changes> changes = add_part(batch);
    if (changes) gates->add(*changes, batch.count);
    return changes.has_value();
  }

  /// Whether the loss of the first of two samples has no gradient at all in the second one's
  /// values.
  bool are_apart(SampleBatch two) {
    looks = false;
    const at::AutoGradMode gradients(true);
    require_gradients(two);
    std::vector<at::Tensor> answers = net->forward(two.inputs);
    std::vector<at::Tensor> wanted = gates->forget_seen();
    for (const at::Tensor& x : two.inputs) {
      if (x.requires_grad()) wanted.push_back(x);
    }
    const auto apart_in = [](const at::Tensor& x) { return x.dim() > 0 && x.size(0) == 2; };
    if (!std::ranges::all_of(wanted, apart_in) || !apart_in(answers.front())) return false;
    answers.front() = answers.front().narrow(0, 0, 1);
    const at::Tensor first = loss_of(answers, part_of(two, 0, 1));
    return std::ranges::all_of(differentiate(first, wanted), [](const at::Tensor& gradient) {
      return !gradient.defined() || gradient.select(0, 1).eq(0).all().item<bool>();
    });
  }

  static SampleBatch part_of(const SampleBatch& batch, int64_t first, int64_t count) {
    const auto own = [&](const at::Tensor& all) {
      const bool each = all.defined() && all.dim() > 0 && all.size(0) == batch.count;
      return each ? all.narrow(0, first, count) : all;
    };
    SampleBatch part;
    part.count = count;
    part.labels = own(batch.labels);
    for (const at::Tensor& target : batch.targets) part.targets.push_back(own(target));
    for (const at::Tensor& all : batch.inputs) part.inputs.push_back(own(all));
    return part;
  }

  void require_gradients(SampleBatch& part) const {
    for (at::Tensor& x : part.inputs) {
      x = x.clone();
      x.requires_grad_(gates.has_value() && x.is_floating_point());
    }
  }

  /// @returns the changes at the gates, where there are some, by sample
  std::optional<GateGradients::Changes> add_part(SampleBatch part) {
    looks = false;
    const at::AutoGradMode gradients(true);
    require_gradients(part);
    const std::vector<at::Tensor> answers = net->forward(part.inputs);
    std::vector<at::Tensor> wanted;
    if (by_weight) wanted = weights->weights();
    const size_t count = wanted.size();
    if (gates) {
      for (const at::Tensor& seen : gates->seen()) wanted.push_back(seen);
    }
    at::Tensor of_samples = loss_of(answers, part);
    if (part.count > 1) of_samples = of_samples * part.count;
    const auto found = differentiate(of_samples, wanted);
    const auto middle = found.begin() + static_cast<std::ptrdiff_t>(count);
    if (by_weight) weights->add_sample({found.begin(), middle});
    if (!gates) return {};
    return gates->changes({middle, found.end()}, part.count);
  }

  static std::vector<at::Tensor> of_own(const std::vector<at::Tensor>& answers) {
    return {answers.begin() + 1, answers.end()};
  }

  at::Tensor loss_of(const std::vector<at::Tensor>& answers, const SampleBatch& batch) const {
    if (loss) return loss(answers, batch);
    if (batch.labels.defined()) return class_loss(answers.front(), batch.labels);
    const at::Tensor drawn = own.drawn(of_own(answers), generator);
    if (!drawn.defined() || !drawn.requires_grad()) {
      throw UnsupportedError(
          "criteria by gradient: the data have no labels, and no floating-point output of the "
          "network depends on its weights");
    }
    return drawn;
  }

  const Graph& graph;
  GraphModule net;
  bool by_batch = false;
  bool by_sample = false;
  bool by_weight = false;     ///< by sample, also the weights' gradients
  bool placed = false;        ///< the network is where the samples are
  bool looks = true;          ///< a batch is under way that is looked at, not its gradients
  std::optional<bool> apart;  ///< samples do not meet
  InputMomentSums moments;
  const Loss loss;
  OutputLoss own;  ///< without a loss and labels
  const at::Generator generator = at::detail::createCPUGenerator(/*seed_val=*/0);
  std::optional<ActivationSums> activations;
  std::optional<WeightGradients> weights;
  std::optional<GateGradients> gates;
  Statistics statistics;
};

Measuring::Measuring(const Graph& graph, const Facts& facts, const Coupling& coupling,
                     const Needs& needs, Loss loss)
    : state_(std::make_unique<State>(graph, facts, coupling, needs, std::move(loss))) {}
Measuring::~Measuring() = default;
Measuring::Measuring(Measuring&&) noexcept = default;

int64_t Measuring::batch(const SampleBatch& sample) const {
  const int64_t size = calibration_batch(state_->graph);
  // Sums over samples are the same in any batches.
  const bool any = !state_->by_batch && fixed_batch(state_->graph) <= 0;
  if (!any || sample.inputs.empty() || !sample.inputs.front().is_cuda()) return size;
  int64_t values = 0;
  for (const at::Tensor& input : sample.inputs) values += input.numel() / sample.count;
  return std::max(size, batch_on_device(values));
}

void Measuring::add(const SampleBatch& batch) {
  check_dims(state_->graph, batch.inputs);
  const int64_t count = batch.count;
  state_->add_batch(batch);
  if (state_->by_sample) state_->add_samples(batch);
  state_->activations->add_samples(count);
  state_->statistics.samples += count;
}

Statistics Measuring::finish() const {
  Statistics statistics = state_->statistics;
  state_->activations->finish(statistics);
  state_->moments.finish(statistics);
  state_->weights->finish(statistics);
  if (state_->gates) state_->gates->finish(statistics);
  return statistics;
}

int64_t Measuring::bytes() const {
  return state_->activations->bytes() + state_->moments.bytes() + state_->weights->bytes() +
         (state_->gates ? state_->gates->bytes() : 0);
}

Statistics measure(const Graph& graph, const Facts& facts, const Coupling& coupling,
                   const Needs& needs, const Batches& batches, const Loss& loss) {
  const NoKernelTrials no_trials;
  Measuring measuring(graph, facts, coupling, needs, loss);
  const std::optional<SampleBatch> first = batches(1)();
  for_each_batch(graph, batches, measuring.batch(first.value_or(SampleBatch())),
                 [&](const SampleBatch& batch) { measuring.add(batch); });
  return measuring.finish();
}

Statistics sum_over(const RankGroup& ranks, Statistics own) {
  // Means become sums, whose weight is the number of samples.
  std::vector<double> numbers = {static_cast<double>(own.samples)};
  const auto each = [&](const auto& change) {
    for (auto& [measure, groups] : own.channels) {
      for (std::vector<double>& channels : groups) {
        for (double& x : channels) change(measure == Measure::kActivationNorm, x);
      }
    }
  };
  each([&](bool root, double x) { numbers.push_back((root ? x * x : x) * numbers.front()); });
  for (const auto& [name, moments] : own.inputs) {
    const Eigen::MatrixXd& second = moments.second;
    numbers.push_back(static_cast<double>(moments.rows));
    numbers.insert(numbers.end(), second.data(), second.data() + second.size());
  }
  ranks.sum(at::from_blob(numbers.data(), {std::ssize(numbers)}, at::kDouble));
  const double* next = numbers.data();
  const double samples = *next++;
  own.samples = static_cast<int64_t>(samples);
  each([&](bool root, double& x) {
    x = *next++ / samples;
    if (root) x = std::sqrt(x);
  });
  for (auto& [name, moments] : own.inputs) {
    moments.rows = static_cast<int64_t>(*next++);
    std::copy_n(next, moments.second.size(), moments.second.data());
    next += moments.second.size();
  }
  return own;
}

Measurement measurement(Batches batches, Loss loss, const RankGroup* ranks) {
  if (ranks != nullptr) batches = share_of(std::move(batches), ranks->rank(), ranks->size());
  return [batches = std::move(batches), loss = std::move(loss), ranks](
             const Graph& graph, const Facts& facts, const Coupling& coupling, const Needs& needs) {
    Statistics own = measure(graph, facts, coupling, needs, batches, loss);
    return ranks == nullptr ? own : sum_over(*ranks, std::move(own));
  };
}

}  // namespace parsimony::training
