#include "parsimony/training/statistics/measure.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "parsimony/api/measure.h"
#include "parsimony/api/taken_branches.h"
#include "parsimony/base/errors.h"
#include "parsimony/pruners/layers.h"
#include "parsimony/torch_io/executor/graph_module.h"
#include "parsimony/torch_io/network.h"
#include "parsimony/torch_io/side_by_side.h"
#include "parsimony/training/loop/device.h"
#include "parsimony/training/loop/output_loss.h"
#include "parsimony/training/loop/target_loss.h"
#include "parsimony/training/net/graph_net.h"
#include "parsimony/training/statistics/gradients.h"

namespace parsimony::training {
namespace {

at::Tensor class_loss(const at::Tensor& predictions, const at::Tensor& labels) {
  const at::Tensor rows = class_rows(predictions, labels);
  if (!rows.defined()) {
    throw ModelError("calibration: criteria by gradient need outputs of shape [", labels.size(0),
                     ", classes], found ", to_string(predictions.sizes().vec()),
                     "; use a criterion by weights or activations");
  }
  const auto highest = labels.max().item<int64_t>();
  if (highest >= rows.size(1)) {
    throw ModelError("calibration: the data has label ", highest, ", the network has ",
                     rows.size(1), " classes");
  }
  return cross_entropy(rows, labels);
}

/// Returns gradients, undefined for tensors that the loss does not depend on.
std::vector<at::Tensor> differentiate(const at::Tensor& loss, const std::vector<at::Tensor>& by) {
  if (by.empty()) return {};
  return torch::autograd::grad({loss}, by, {}, {}, false, /*allow_unused=*/true);
}

SampleBatch part_of(const SampleBatch& batch, int64_t first, int64_t count) {
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

}  // namespace

/// Measures that need gradients.
class Measuring::Gradients {
 public:
  /// Of values of unknown sizes: none run side by side.
  static constexpr int64_t kUnknown = int64_t{1} << 40;

  /// @param bytes  that the values of a sample take
  Gradients(const Graph& graph, const Coupling& coupling, const std::set<Measure>& needs,
            int64_t bytes, Loss given)
      : by_batch(needs.contains(Measure::kTaylor) || needs.contains(Measure::kTaylorSquared)),
        by_sample(needs.contains(Measure::kHessian) || needs.contains(Measure::kFisher)),
        by_weight(needs.contains(Measure::kHessian)),
        sample_bytes(bytes),
        loss(std::move(given)),
        own(graph) {
    if (by_sample && fixed_batch(graph) > 1) {
      throw UnsupportedError(
          "calibration: criteria fisher and obd need batches of one sample, and the network's "
          "batch size is fixed at ",
          fixed_batch(graph),
          "; use taylor, export it with a dynamic batch dimension, or, where a program has one, "
          "read it for a batch of 1 (--input)");
    }
    const std::vector<Site> sites = sites_of(graph, coupling);
    const bool gated = needs.contains(Measure::kFisher);
    // In this order, because the gates move nodes and change producers.
    Graph answering = loss ? graph : with_logits(graph);
    Gated with = gated ? with_gates(answering, sites) : Gated{std::move(answering), {}};
    if (!loss) {
      std::vector<ValueId>& outputs = with.graph.outputs;
      outputs.resize(1);
      outputs.insert(outputs.end(), own.values().begin(), own.values().end());
    }
    net = GraphModule(std::move(with.graph), GraphModuleOptions{.constants = true});
    if (gated) gates.emplace(coupling, sites, std::move(with.gates));
    weights.emplace(graph, coupling, net->weights(), needs);
    for (const at::Tensor& weight : weights->weights()) {
      if (by_batch || by_weight) weight_bytes += weight.numel() * kGradientBytes;
    }
    net->observe([this](const Node&, ValueId value, const at::Tensor& x) {
      if (watching != nullptr && gates) gates->see(value, x, *watching);
    });
  }

  /// Adds batches in order, whose passes are made side by side as far as they fit into memory.
  void add(std::span<const SampleBatch> batches) {
    if (!placed && !batches.empty() && !batches.front().inputs.empty()) {
      device = batches.front().inputs.front().device();
      net->to(device);
    }
    placed = true;
    for (size_t first = 0; first < batches.size();) {
      const size_t count = std::min(at_once_of(batches[first]), batches.size() - first);
      add_group(batches.subspan(first, count));
      first += count;
    }
  }

  void finish(Statistics& statistics) const {
    weights->finish(statistics);
    if (gates) gates->finish(statistics);
  }

  int64_t bytes() const { return weights->bytes() + (gates ? gates->bytes() : 0); }
  bool sums_batches() const { return by_batch; }

 private:
  /// Values that passes side by side may keep for their gradients, in bytes.
  static constexpr int64_t kMostKept = int64_t{512} << 20;
  static constexpr int64_t kGradientBytes = sizeof(float) + sizeof(double);

  size_t at_once_of(const SampleBatch& batch) const {
    const int64_t fit = kMostKept / std::max<int64_t>(1, batch.count * sample_bytes + weight_bytes);
    return static_cast<size_t>(
        std::clamp<int64_t>(fit, 1, std::max(1, torch_io::batches_at_once(device))));
  }

  void side_by_side(int64_t count, const std::function<void(int64_t)>& work) const {
    torch_io::side_by_side(count, device, work);
  }

  /// On one thread, so that sums do not depend on the number of cores.
  void one_after_the_other(const std::function<void()>& work) const {
    side_by_side(1, [&](int64_t) { work(); });
  }

  /// Passes are made side by side, and what depends on earlier ones in the order of batches.
  void add_group(std::span<const SampleBatch> batches) {
    const bool learns = !loss && !batches.front().labels.defined();
    std::vector<std::vector<at::Tensor>> predictions(batches.size());
    const auto runs_whole = [&](const SampleBatch& batch) {
      return by_batch || (learns && batch.count > 1);  // a single sample's pass gives them
    };
    side_by_side(std::ssize(batches), [&](int64_t b) {
      const at::AutoGradMode gradients(by_batch);
      if (runs_whole(batches[b])) predictions[b] = net->forward(batches[b].inputs);
    });
    std::vector<Pass> passes;
    for (size_t b = 0; b < batches.size() && by_sample; ++b) {
      const int64_t step = passes_together(batches[b]) ? batches[b].count : 1;
      for (int64_t i = 0; i < batches[b].count; i += step) {
        passes.push_back({.part = part_of(batches[b], i, step), .batch = b});
      }
    }
    std::vector<at::Tensor> losses(batches.size());
    size_t begun = 0;
    const auto begin = [&](size_t batch, const std::vector<at::Tensor>& of_pass) {
      for (; begun <= batch; ++begun) {
        const bool whole = runs_whole(batches[begun]);
        if (learns) own.learn(of_own(whole ? predictions[begun] : of_pass));
        const at::AutoGradMode gradients(by_batch);
        if (by_batch) losses[begun] = loss_of(predictions[begun], batches[begun], of_batches);
      }
    };
    for (size_t first = 0; first < passes.size();) {
      const size_t count = std::min(at_once_of(passes[first].part), passes.size() - first);
      add_passes(std::span(passes).subspan(first, count), begin);
      first += count;
    }
    if (!by_batch) return;
    one_after_the_other([&] { begin(batches.size() - 1, {}); });
    predictions.clear();
    std::vector<PerGroup<at::Tensor>> changes(batches.size());
    side_by_side(std::ssize(batches), [&](int64_t b) {
      const auto found = differentiate(std::exchange(losses[b], {}), weights->weights());
      changes[b] = weights->sums(found, 1);
    });
    for (const PerGroup<at::Tensor>& of_batch : changes) weights->add_batch(of_batch);
  }

  /// If samples do not interact, one backward pass computes the gates' gradients of all.
  bool passes_together(const SampleBatch& batch) {
    const bool separable = gates && !by_weight && !loss && batch.labels.defined() &&
                           batch.labels.dim() == 1 && batch.labels.ne(kNoLabel).all().item<bool>();
    if (!separable || batch.count < 2) return false;
    if (!apart) apart = are_apart(part_of(batch, 0, 2));
    return *apart;
  }

  /// Whether the loss of the first of two samples has no gradient with respect to the second one's
  /// values.
  bool are_apart(SampleBatch two) {
    const at::AutoGradMode gradients(true);
    require_gradients(two);
    GateGradients::Seen seen;
    std::vector<at::Tensor> predictions = watched(two, seen);
    std::vector<at::Tensor> expected;
    for (const auto& [gate, x] : seen) expected.push_back(x);
    for (const at::Tensor& x : two.inputs) {
      if (x.requires_grad()) expected.push_back(x);
    }
    const auto apart_in = [](const at::Tensor& x) { return x.dim() > 0 && x.size(0) == 2; };
    if (!std::ranges::all_of(expected, apart_in) || !apart_in(predictions.front())) return false;
    predictions.front() = predictions.front().narrow(0, 0, 1);
    const at::Tensor first = loss_of(predictions, part_of(two, 0, 1), of_samples);
    return std::ranges::all_of(differentiate(first, expected), [](const at::Tensor& gradient) {
      return !gradient.defined() || gradient.select(0, 1).eq(0).all().item<bool>();
    });
  }

  void require_gradients(SampleBatch& part) const {
    for (at::Tensor& x : part.inputs) {
      x = x.clone();
      x.requires_grad_(gates.has_value() && x.is_floating_point());
    }
  }

  /// A pass forward and back over some samples.
  struct Pass {
    SampleBatch part;
    size_t batch = 0;  ///< in its group
    std::vector<at::Tensor> predictions = {};
    GateGradients::Seen seen = {};
    at::Tensor loss = {};               ///< the sum of the samples' losses
    PerGroup<at::Tensor> squares = {};  ///< of the weights' changes
    std::optional<GateGradients::Changes> changes = {};
  };

  /// @param begin  called with the batch and the predictions of each pass before its loss is taken
  void add_passes(
      std::span<Pass> passes,
      const std::function<void(size_t batch, const std::vector<at::Tensor>& of_pass)>& begin) {
    const at::AutoGradMode gradients(true);
    side_by_side(std::ssize(passes), [&](int64_t p) {
      require_gradients(passes[p].part);
      passes[p].predictions = watched(passes[p].part, passes[p].seen);
    });
    one_after_the_other([&] {  // draws are in the order of samples
      for (Pass& pass : passes) {
        begin(pass.batch, pass.predictions);
        pass.loss = loss_of(pass.predictions, pass.part, of_samples);
        if (pass.part.count > 1) pass.loss = pass.loss * pass.part.count;
      }
    });
    side_by_side(std::ssize(passes), [&](int64_t p) { differentiate_pass(passes[p]); });
    for (Pass& pass : passes) {
      if (by_weight) weights->add_sample(pass.squares);
      if (gates && pass.changes) gates->add(*pass.changes, pass.part.count);
      if (gates && !pass.changes) add_each(pass.part);
      pass = {};
    }
  }

  /// Of samples whose values do not have them along their first axis.
  void add_each(const SampleBatch& samples) {
    for (int64_t i = 0; i < samples.count; ++i) {
      Pass pass{.part = part_of(samples, i, 1)};
      add_passes({&pass, 1}, [](size_t, const std::vector<at::Tensor>&) {});
    }
  }

  void differentiate_pass(Pass& pass) const {
    std::vector<at::Tensor> expected;
    if (by_weight) expected = weights->weights();
    const size_t count = expected.size();
    for (const auto& [gate, x] : pass.seen) expected.push_back(x);
    const std::vector<at::Tensor> found = differentiate(std::exchange(pass.loss, {}), expected);
    pass.predictions.clear();
    if (by_weight) pass.squares = weights->sums(found, 2);
    if (gates) {
      pass.changes = gates->changes(pass.seen, std::span(found).subspan(count), pass.part.count);
    }
    pass.seen.clear();
  }

  /// Lets the gates see the run of this thread.
  struct Watching {
    explicit Watching(GateGradients::Seen& seen) { watching = &seen; }
    ~Watching() { watching = nullptr; }
    Watching(const Watching&) = delete;
    Watching& operator=(const Watching&) = delete;
  };

  /// Computes predictions, and sees the gates' values.
  std::vector<at::Tensor> watched(const SampleBatch& part, GateGradients::Seen& seen) {
    const Watching here(seen);
    return net->forward(part.inputs);
  }

  static std::vector<at::Tensor> of_own(const std::vector<at::Tensor>& predictions) {
    return {predictions.begin() + 1, predictions.end()};
  }

  at::Tensor loss_of(const std::vector<at::Tensor>& predictions, const SampleBatch& batch,
                     const at::Generator& generator) const {
    if (loss) return loss(predictions, batch);
    if (batch.labels.defined()) return class_loss(predictions.front(), batch.labels);
    const at::Tensor drawn = own.drawn(of_own(predictions), generator);
    if (!drawn.defined() || !drawn.requires_grad()) {
      throw UnsupportedError(
          "criteria by gradient: the data has no labels, and no floating-point output of the "
          "network depends on its weights");
    }
    return drawn;
  }

  const bool by_batch;
  const bool by_sample;
  const bool by_weight;  ///< weights' gradients are needed by sample, too
  GraphModule net{nullptr};
  const int64_t sample_bytes;  ///< of a sample's values
  int64_t weight_bytes = 0;    ///< of the weights' gradients, and their products in double
  c10::Device device{c10::kCPU};
  bool placed = false;  ///< the network is on the samples' device
  /// What the gates see of the run of this thread; null: nothing.
  static thread_local GateGradients::Seen* watching;
  std::optional<bool> apart;  ///< samples do not interact
  const Loss loss;
  OutputLoss own;  ///< used without a loss and labels
  // Of its own each, so that a measure is the same with and without others.
  const at::Generator of_batches = at::detail::createCPUGenerator(/*seed_val=*/0);
  const at::Generator of_samples = at::detail::createCPUGenerator(/*seed_val=*/0);
  std::optional<WeightGradients> weights;
  std::optional<GateGradients> gates;
};

thread_local GateGradients::Seen* Measuring::Gradients::watching = nullptr;

struct Measuring::State {
  State(const Graph& of, const Facts& facts, const Coupling& coupling, const Needs& needs,
        Loss given)
      : graph(of), forward(engine, of, facts, coupling, needs) {
    if (!std::ranges::all_of(needs.channels, is_forward)) {
      std::vector<ValueId> computed;
      bool known = true;
      for (const ValueId v : of.values.ids()) {
        if (of.value(v).weight != kNone) continue;
        known = known && facts.shapes[v].has_value();
        computed.push_back(v);
      }
      const int64_t bytes = known ? bytes_each(of, facts, computed) : Gradients::kUnknown;
      if (known)
        bytes_per_input =
            static_cast<double>(bytes) / static_cast<double>(bytes_each(of, facts, of.inputs));
      gradients.emplace(of, coupling, needs.channels, bytes, std::move(given));
    }
  }

  const Graph& graph;
  torch_io::TorchEngine engine;  ///< on the samples' device, from the first batch on
  ForwardStatistics forward;
  std::optional<Gradients> gradients;
  double bytes_per_input = 0;  ///< of all values, for each byte of the inputs; 0: not known
};

Measuring::Measuring(const Graph& graph, const Facts& facts, const Coupling& coupling,
                     const Needs& needs, Loss loss)
    : state_(std::make_unique<State>(graph, facts, coupling, needs, std::move(loss))) {}
Measuring::~Measuring() = default;
Measuring::Measuring(Measuring&&) noexcept = default;

int64_t Measuring::batch(const SampleBatch& sample) const {
  if (const int64_t fixed = fixed_batch(state_->graph); fixed > 0) return fixed;
  const int64_t size = calibration_batch(state_->graph);
  if (!state_->gradients) return state_->forward.batch();
  if (sample.inputs.empty()) return size;
  int64_t values = 0;
  for (const at::Tensor& input : sample.inputs) values += input.numel() / sample.count;
  if (state_->gradients->sums_batches()) {
    // Of a batch's values, which its gradients need.
    constexpr double kMostBytes = int64_t{2} << 30;
    const double bytes = state_->bytes_per_input * static_cast<double>(values * sizeof(float));
    if (bytes * static_cast<double>(size) <= kMostBytes) return size;
    return std::max<int64_t>(1, static_cast<int64_t>(kMostBytes / bytes));
  }
  // Sums over samples do not depend on batches.
  const int64_t fits = batch_that_fits(values);
  return sample.inputs.front().is_cuda() ? std::max(size, fits) : std::min(size, fits);
}

void Measuring::add(const SampleBatch& batch) { add({&batch, 1}); }

void Measuring::add(std::span<const SampleBatch> batches) {
  std::vector<MeasuredRun> runs;
  for (const SampleBatch& batch : batches) {
    check_dims(state_->graph, batch.inputs);
    if (!batch.inputs.empty()) state_->engine = torch_io::TorchEngine(batch.inputs[0].device());
    // Gradients take the batches as they are; activations of fewer samples may fit into memory.
    const bool fixed = fixed_batch(state_->graph) > 0;
    const int64_t step = fixed ? batch.count : std::min(batch.count, state_->forward.batch());
    for (int64_t i = 0; i < batch.count; i += step) {
      const int64_t count = std::min(step, batch.count - i);
      runs.push_back({values_of(part_of(batch, i, count).inputs), count});
    }
  }
  state_->forward.add(runs);
  if (state_->gradients) state_->gradients->add(batches);
}

Statistics Measuring::finish() const {
  Statistics statistics;
  state_->forward.finish(statistics);
  if (state_->gradients) state_->gradients->finish(statistics);
  return statistics;
}

int64_t Measuring::bytes() const {
  return state_->forward.bytes() + (state_->gradients ? state_->gradients->bytes() : 0);
}

namespace {

/// Measures `batches`. @param all  the batches of all ranks, by which each decides alike
Statistics measure(const Graph& graph, const Facts& facts, const Coupling& coupling,
                   const Needs& needs, const Batches& batches, const Loss& loss,
                   const Batches& all) {
  const NoKernelTrials no_trials;
  const SampleBatch first = batches(1)().value_or(SampleBatch());
  const c10::Device device = first.inputs.empty() ? c10::kCPU : first.inputs.front().device();
  const bool forward = !needs.inputs.empty() || std::ranges::any_of(needs.channels, is_forward);
  const EachRun each_run = [&](const auto& see) {
    const Measuring whole(graph, facts, coupling, needs, loss);
    for_each_batch(graph, all, whole.batch(first), [&](const SampleBatch& batch) {
      check_dims(graph, batch.inputs);
      see(values_of(batch.inputs));
    });
  };
  torch_io::TorchEngine engine(device);
  const Hoisted hoisted(
      graph, forward ? branches_taken(engine, graph, each_run) : std::vector<std::string>());
  Measuring measuring(hoisted.graph(), facts, coupling, needs, loss);
  std::vector<SampleBatch> group;
  const auto add_group = [&] {
    measuring.add(group);
    group.clear();
  };
  const int at_once = torch_io::batches_at_once(device);
  for_each_batch(graph, batches, measuring.batch(first), [&](const SampleBatch& batch) {
    group.push_back(batch);
    if (std::ssize(group) == at_once) add_group();
  });
  add_group();
  return measuring.finish();
}

}  // namespace

Statistics measure(const Graph& graph, const Facts& facts, const Coupling& coupling,
                   const Needs& needs, const Batches& batches, const Loss& loss) {
  return measure(graph, facts, coupling, needs, batches, loss, batches);
}

std::vector<double> block_influences(const Graph& graph, const std::vector<ResidualBlock>& blocks,
                                     const Batches& batches) {
  torch_io::TorchEngine engine(device_of(batches));
  BlockInfluences influences(engine, graph, blocks);
  const int64_t fixed = fixed_batch(graph);
  for_each_batch(graph, batches, fixed > 0 ? fixed : influences.batch(),
                 [&](const SampleBatch& batch) {
                   check_dims(graph, batch.inputs);
                   influences.add(values_of(batch.inputs));
                 });
  return influences.result();
}

namespace {

/// Gives what no data reached on this rank, but on others, the size that it has there.
/// @returns for each measure and group, in order, the samples of the ranks that reached it
std::vector<double> fill_unreached(const RankGroup& ranks, const std::set<std::string>& matrices,
                                   Statistics& own) {
  std::vector<std::vector<double>*> groups;
  for (auto& [measure, of_groups] : own.channels) {
    for (std::vector<double>& channels : of_groups) groups.push_back(&channels);
  }
  for (const std::string& name : matrices) own.inputs.try_emplace(name);
  std::vector<double> sizes;  // of each: the samples of ranks that have it, and times its sizes
  const auto add = [&](std::initializer_list<Eigen::Index> of_one) {
    const bool reached = *of_one.begin() > 0;
    const auto samples = static_cast<double>(reached ? own.samples : 0);
    sizes.push_back(samples);
    for (const Eigen::Index size : of_one) sizes.push_back(samples * static_cast<double>(size));
  };
  for (const std::vector<double>* channels : groups) add({std::ssize(*channels)});
  for (const auto& [name, moments] : own.inputs) {
    add({moments.second.rows(), moments.second.cols(), moments.sum.size()});
  }
  if (sizes.empty()) return {};
  ranks.sum(at::from_blob(sizes.data(), {std::ssize(sizes)}, at::kDouble));
  const double* next = sizes.data();
  const auto size = [&](double samples) {
    return static_cast<Eigen::Index>(*next++ / std::max(1.0, samples));
  };
  std::vector<double> reached;
  for (std::vector<double>* channels : groups) {
    reached.push_back(*next++);
    channels->resize(static_cast<size_t>(size(reached.back())));
  }
  for (auto& [name, moments] : own.inputs) {
    const double samples = *next++;
    const Eigen::Index rows = size(samples);
    const Eigen::Index columns = size(samples);
    const Eigen::Index sum = size(samples);
    if (moments.second.size() > 0) continue;
    moments.second.setZero(rows, columns);
    moments.sum.setZero(sum);
  }
  std::erase_if(own.inputs, [](const auto& entry) { return entry.second.second.size() == 0; });
  return reached;
}

/// Returns whether it is a mean over the values that were seen, not over all samples.
bool is_of_seen(Measure measure) {
  return measure == Measure::kZeroShare || measure == Measure::kMeanActivation ||
         measure == Measure::kRank;
}

}  // namespace

Statistics sum_over(const RankGroup& ranks, Statistics own, const Needs& needs) {
  const std::vector<double> reached = fill_unreached(ranks, needs.inputs, own);
  // Means are converted to sums, weighted by the number of samples.
  std::vector<double> numbers = {static_cast<double>(own.samples)};
  const auto each = [&](const auto& change) {
    const double* samples = reached.data();
    for (auto& [measure, groups] : own.channels) {
      for (std::vector<double>& channels : groups) {
        const double over = is_of_seen(measure) ? *samples : 0;
        ++samples;
        for (double& x : channels) change(measure == Measure::kActivationNorm, over, x);
      }
    }
  };
  each([&](bool root, double /*over*/, double x) {
    numbers.push_back((root ? x * x : x) * numbers.front());
  });
  for (const auto& [name, moments] : own.inputs) {
    const Eigen::MatrixXd& second = moments.second;
    numbers.push_back(static_cast<double>(moments.rows));
    numbers.insert(numbers.end(), second.data(), second.data() + second.size());
    numbers.insert(numbers.end(), moments.sum.data(), moments.sum.data() + moments.sum.size());
  }
  ranks.sum(at::from_blob(numbers.data(), {std::ssize(numbers)}, at::kDouble));
  const double* next = numbers.data();
  const double samples = *next++;
  own.samples = static_cast<int64_t>(samples);
  each([&](bool root, double over, double& x) {
    x = *next++ / (over > 0 ? over : samples);
    if (root) x = std::sqrt(x);
  });
  for (auto& [name, moments] : own.inputs) {
    moments.rows = static_cast<int64_t>(*next++);
    std::copy_n(next, moments.second.size(), moments.second.data());
    next += moments.second.size();
    std::copy_n(next, moments.sum.size(), moments.sum.data());
    next += moments.sum.size();
  }
  return own;
}

Measurement measurement(Batches batches, Loss loss, const RankGroup* ranks) {
  Batches own_share = ranks != nullptr ? share_of(batches, ranks->rank(), ranks->size()) : batches;
  return [all = std::move(batches), batches = std::move(own_share), loss = std::move(loss), ranks](
             const Graph& graph, const Facts& facts, const Coupling& coupling, const Needs& needs) {
    Statistics own = measure(graph, facts, coupling, needs, batches, loss, all);
    return ranks == nullptr ? own : sum_over(*ranks, std::move(own), needs);
  };
}

}  // namespace parsimony::training
