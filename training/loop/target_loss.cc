#include "parsimony/training/loop/target_loss.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "parsimony/base/errors.h"
#include "parsimony/base/types.h"
#include "parsimony/base/words.h"
#include "parsimony/configs/recipe.h"
#include "parsimony/graph/operators/schema.h"
#include "parsimony/training/errors.h"

namespace parsimony::training {

at::Tensor class_rows(const at::Tensor& outputs, const at::Tensor& labels) {
  const int64_t dims = labels.dim();
  if (outputs.dim() != dims + 1) return {};
  if (outputs.sizes().slice(0, dims) == labels.sizes()) return outputs.flatten(0, dims - 1);
  const bool after =
      outputs.size(0) == labels.size(0) && outputs.sizes().slice(2) == labels.sizes().slice(1);
  return after ? outputs.movedim(1, -1).flatten(0, dims - 1) : at::Tensor();
}

at::Tensor class_rows(const at::Tensor& outputs, const at::Tensor& labels, int64_t classes) {
  at::Tensor rows = class_rows(outputs, labels);
  if (rows.defined() && rows.size(1) >= classes) return rows;
  throw errors::does_not_fit("the outputs have shape " + to_string(outputs.sizes().vec()) +
                             ", the data has " + std::to_string(classes) +
                             " classes and labels of " + to_string(labels.sizes().vec()));
}

at::Tensor cross_entropy(const at::Tensor& rows, const at::Tensor& labels, double smoothing) {
  const at::Tensor sum = at::cross_entropy_loss(rows.to(at::kFloat), labels.flatten(), {},
                                                at::Reduction::Sum, kNoLabel, smoothing);
  return sum / labels.ne(kNoLabel).sum().clamp_min(1);
}

namespace {

ConfigError no_targets(std::string_view output) {
  return ConfigError("loss: the data has no targets for the output ", in_quotes(output),
                     "; add an array of that name with as many samples as the inputs");
}

// Lower bound of probabilities in logarithms.
constexpr double kSmallestProbability = 1e-7;

/// The meaning of an output's numbers.
enum class Numbers : uint8_t { kAny, kProbabilities, kLikelihoods };

Numbers numbers_of(const Graph& graph, ValueId value) {
  while (true) {
    const NodeId producer = graph.value(value).producer;
    if (producer == kNone) return Numbers::kAny;
    const Node& node = graph.node(producer);
    if (has_trait(node, kProbabilities)) return Numbers::kProbabilities;
    if (has_trait(node, kLikelihoods)) return Numbers::kLikelihoods;
    if (!has_trait(node, kRearranges) && !has_trait(node, kCopies)) return Numbers::kAny;
    value = node.inputs.front();
  }
}

struct OutputTerm {
  LossTerm asked;
  size_t output = 0;
  std::string name;
  Numbers numbers = Numbers::kAny;
};

at::Tensor log_probabilities(const OutputTerm& term, const at::Tensor& scores, int64_t axis) {
  const bool done = term.numbers == Numbers::kProbabilities;
  return done ? scores.clamp_min(kSmallestProbability).log() : at::log_softmax(scores, axis);
}

[[noreturn]] void fail(const OutputTerm& term, const at::Tensor& output, const at::Tensor& target) {
  throw ModelError("loss ", name_of(term.asked.kind), ": the output ", in_quotes(term.name), " is ",
                   to_string(output.sizes().vec()), ", its target ",
                   to_string(target.sizes().vec()));
}

void check_range(const OutputTerm& term, const at::Tensor& target, double lowest, double highest) {
  if (target.numel() == 0) return;
  const auto least = target.min().item<double>();
  const auto most = target.max().item<double>();
  if (least >= lowest && most <= highest) return;
  char text[96];
  std::snprintf(text, sizeof text, " contains %g, expected numbers in [%g, %g]",
                least < lowest ? least : most, lowest, highest);
  throw ModelError("loss ", name_of(term.asked.kind), ": the target of the output ",
                   in_quotes(term.name), text);
}

at::Tensor class_loss_of(const OutputTerm& term, const at::Tensor& output,
                         const at::Tensor& target) {
  const at::Tensor rows = class_rows(output, target);
  if (!rows.defined()) fail(term, output, target);
  at::Tensor classes = target.flatten().to(at::kLong);
  const at::Tensor counts =
      term.asked.ignore ? classes.ne(*term.asked.ignore) : at::ones_like(classes, at::kBool);
  classes = classes.where(counts, at::zeros_like(classes));
  check_range(term, classes, 0, static_cast<double>(rows.size(1) - 1));
  const at::Tensor each =
      log_probabilities(term, rows, 1).gather(1, classes.unsqueeze(1)).squeeze(1);
  return -each.where(counts, at::zeros_like(each)).sum() / counts.sum().clamp_min(1);
}

/// Batch and time may be in either order: if both fit, the batch is first.
at::Tensor sequence_loss(const OutputTerm& term, const at::Tensor& output,
                         const at::Tensor& target) {
  if (output.dim() != 3 || target.dim() != 2) fail(term, output, target);
  const int64_t n = target.size(0);
  if (output.size(0) != n && output.size(1) != n) fail(term, output, target);
  const at::Tensor by_time = output.size(0) == n ? output.transpose(0, 1) : output;
  const at::Tensor classes = target.to(at::kLong);
  const auto most = static_cast<double>(output.size(2) - 1);
  if (static_cast<double>(term.asked.blank) > most) fail(term, output, target);
  check_range(term, classes.clamp_min(0), 0, most);
  const at::Tensor lengths = classes.ge(0).sum(1);
  const at::Tensor times = at::full({n}, by_time.size(0), lengths.options());
  // Targets longer than the available time have no path and no gradient.
  return at::ctc_loss(log_probabilities(term, by_time, 2), classes, times, lengths,
                      term.asked.blank, at::Reduction::Mean, /*zero_infinity=*/true);
}

at::Tensor event_loss(const OutputTerm& term, const at::Tensor& output, const at::Tensor& target) {
  check_range(term, target, 0, 1);
  return term.numbers == Numbers::kLikelihoods
             ? at::binary_cross_entropy(output, target)
             : at::binary_cross_entropy_with_logits(output, target);
}

at::Tensor divergence_from(const OutputTerm& term, const at::Tensor& output,
                           const at::Tensor& target) {
  check_range(term, target, 0, 1);
  const at::Tensor predictions = log_probabilities(term, output, output.dim() == 4 ? 1 : -1);
  return at::kl_div(predictions, target, at::Reduction::Sum) / target.sum().clamp_min(1);
}

at::Tensor loss_of(const OutputTerm& term, const at::Tensor& answer, const at::Tensor& given) {
  if (!given.defined() || !answer.is_floating_point()) fail(term, answer, given);
  const at::Tensor output = answer.to(at::kFloat);
  if (term.asked.kind == LossKind::kCrossEntropy) return class_loss_of(term, output, given);
  if (term.asked.kind == LossKind::kCtc) return sequence_loss(term, output, given);
  if (given.numel() != output.numel()) fail(term, output, given);
  const at::Tensor target = given.to(at::kFloat).view_as(output);
  switch (term.asked.kind) {
    case LossKind::kBce:
      return event_loss(term, output, target);
    case LossKind::kL1:
      return at::l1_loss(output, target);
    case LossKind::kHuber:
      return at::huber_loss(output, target, at::Reduction::Mean, term.asked.delta);
    case LossKind::kKl:
      return divergence_from(term, output, target);
    default:
      return at::mse_loss(output, target);
  }
}

}  // namespace

Loss target_loss(const Graph& graph, const std::vector<LossTerm>& terms,
                 const std::vector<bool>& given) {
  std::vector<std::string> names;
  for (const ValueId output : graph.outputs) names.push_back(graph.value(output).name);
  std::vector<OutputTerm> found;
  for (const LossTerm& term : terms) {
    if (!term.output.empty() && !std::ranges::count(names, term.output)) {
      std::vector<std::string> quoted;
      for (const std::string& name : names) quoted.push_back(in_quotes(name));
      throw ConfigError("loss: the network has no output ", in_quotes(term.output),
                        "; its outputs are ", listed(quoted, quoted.size()));
    }
    for (size_t o = 0; o < names.size(); ++o) {
      if (!term.output.empty() ? term.output != names[o] : !given[o]) continue;
      if (!given[o]) throw no_targets(names[o]);
      found.push_back({term, o, names[o], numbers_of(graph, graph.outputs[o])});
    }
  }
  if (found.empty()) throw no_targets(names.empty() ? "" : names.front());
  return [found](const std::vector<at::Tensor>& outputs, const SampleBatch& batch) {
    at::Tensor sum;
    for (const OutputTerm& term : found) {
      const bool own = term.output < batch.targets.size() && batch.targets[term.output].defined();
      const at::Tensor& target = own ? batch.targets[term.output] : batch.labels;
      const at::Tensor loss = loss_of(term, outputs[term.output], target) * term.asked.weight;
      sum = sum.defined() ? sum + loss : loss;
    }
    return sum;
  };
}

}  // namespace parsimony::training
