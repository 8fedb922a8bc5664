#include "parsimony/training/loop/output_loss.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/graph/operators/schema.h"
#include "parsimony/speedup/fit_layers.h"

namespace parsimony::training {
namespace {

// Lower bound of probabilities in logarithms.
constexpr double kSmallest = 1e-7;

// Equal probabilities have a divergence from their mean below this.
constexpr double kNoSpread = 1e-8;

at::Tensor log_of(const at::Tensor& p) { return p.clamp_min(kSmallest).log(); }

/// Returns a log(a / b), where 0 log 0 is 0.
at::Tensor divergence(const at::Tensor& a, const at::Tensor& b) {
  return a * (log_of(a) - log_of(b));
}

/// Returns the divergence of events with these probabilities.
at::Tensor of_events(const at::Tensor& a, const at::Tensor& b) {
  return divergence(a, b) + divergence(1 - a, 1 - b);
}

at::Tensor weighted(const at::Tensor& distances, const at::Tensor& weight) {
  return weight.defined() ? distances * weight : distances;
}

/// Returns the axis along which values at the same places differ in number; else -1.
int axis_between(const at::Tensor& a, const at::Tensor& b) {
  if (a.dim() != b.dim() || a.dim() < 3) return -1;  // two axes: no places within samples
  int axis = -1;
  for (int i = 0; i < a.dim(); ++i) {
    if (a.size(i) == b.size(i)) continue;
    if (axis >= 0) return -1;
    axis = i;
  }
  return axis;
}

/// Replaces values by those that they are rearranged or selected from.
class Sources {
 public:
  explicit Sources(const Graph& graph) : graph_(graph), producer_(producers_of(graph)) {}

  /// Returns values computed with weights.
  std::vector<ValueId> of(ValueId output) const {
    std::vector<ValueId> open = {output};
    std::vector<ValueId> found;
    for (size_t i = 0; i < open.size(); ++i) {
      const NodeId n = producer_[open[i]];
      if (n == kNone) continue;  // an input or a weight
      const Node& node = graph_.node(n);
      if (!passes(node)) {
        found.push_back(open[i]);
        continue;
      }
      for (const ValueId v : node.inputs) {
        if (v != kNone && !contains(open, v)) open.push_back(v);
      }
    }
    return found;
  }

  bool has(ValueId value) const { return producer_[value] != kNone; }
  const Node& producer(ValueId value) const { return graph_.node(producer_[value]); }

 private:
  static bool passes(const Node& node) {
    return has_trait(node, kRearranges) || has_trait(node, kCopies) || has_trait(node, kPermutes) ||
           has_trait(node, kChooses);
  }

  const Graph& graph_;
  IdVector<ValueId, NodeId> producer_;
};

}  // namespace

OutputLoss::OutputLoss(const Graph& dense, const SmallNetwork& small,
                       const std::vector<MatchSettings::Term>& terms) {
  const Graph& graph = small.graph();
  const Sources sources(graph);
  const std::vector<FitLayer> layers = fit_layers(graph);
  const auto compare = [&](ValueId value, ValueId expected, double weight) {
    if (weight == 0 || contains(values_, value)) return;
    Term& term = add(graph, sources.producer(value), value, expected, weight);
    const auto layer = std::ranges::find(layers, value, &FitLayer::answer);
    if (layer != layers.end()) {
      term.axis = layer->output_axis;
      term.kept = kept_channels(small, *layer);
    }
    for (const PlanEnd& end : small.ends()) {
      if (end.input || end.value != graph.value(value).name) continue;
      term.axis = end.axis;
      term.kept = end.keep;
    }
  };
  const auto in_dense = [&](ValueId v) {
    const std::string& name = graph.value(v).name;
    return dense.values.has(v) && dense.value(v).name == name ? v : dense.find(name);
  };
  for (const MatchSettings::Term& term : terms) {
    const ValueId value = graph.find(term.value);
    const bool there = value != kNone && sources.has(value) && in_dense(value) != kNone;
    if (!there) {
      throw ConfigError(
          "--match ", in_quotes(term.value),
          ": the pruned network computes no value of that name; prune --html shows them");
    }
    if (!contains(graph.outputs, value)) compare(value, in_dense(value), term.weight);
  }
  if (graph.outputs.size() != dense.outputs.size()) {
    throw ModelError("the dense network has ", dense.outputs.size(),
                     " outputs, the one to be trained has ", graph.outputs.size());
  }
  for (size_t o = 0; o < graph.outputs.size(); ++o) {
    const ValueId output = graph.outputs[o];
    const auto given =
        std::ranges::find(terms, graph.value(output).name, &MatchSettings::Term::value);
    const double weight = given == terms.end() ? 1 : given->weight;
    const std::vector<ValueId> values = sources.of(output);
    if (std::ranges::all_of(values, [&](ValueId v) { return in_dense(v) != kNone; })) {
      for (const ValueId value : values) compare(value, in_dense(value), weight);
    } else if (sources.has(output)) {
      compare(output, dense.outputs[o], weight);
    }
  }
}

OutputLoss::OutputLoss(const Graph& graph) {
  const Sources sources(graph);
  for (const ValueId output : graph.outputs) {
    for (const ValueId value : sources.of(output)) {
      if (!contains(values_, value)) add(graph, sources.producer(value), value, value, 1);
    }
  }
}

OutputLoss::Term& OutputLoss::add(const Graph& graph, const Node& producer, ValueId value,
                                  ValueId dense, double weight) {
  values_.push_back(value);
  dense_values_.push_back(dense);
  names_.push_back(graph.value(value).name);
  Term& term = terms_.emplace_back();
  term.weight = weight;
  term.is_output = contains(graph.outputs, value);
  if (has_trait(producer, kProbabilities)) term.kind = Kind::kDistribution;
  if (has_trait(producer, kLikelihoods)) term.kind = Kind::kEvents;
  return term;
}

at::Tensor OutputLoss::confidence(size_t term, const std::vector<at::Tensor>& dense) const {
  at::Tensor product;
  for (size_t i = 0; i < terms_.size(); ++i) {
    if (i == term || terms_[i].kind != Kind::kEvents) continue;
    const int axis = axis_between(dense[term], dense[i]);
    if (axis < 0) continue;
    const at::Tensor largest = dense[i].detach().to(at::kFloat).amax(axis, /*keepdim=*/true);
    product = product.defined() ? product * largest : largest;
  }
  return product;
}

void OutputLoss::learn(const std::vector<at::Tensor>& dense) {
  ++batches_;
  const auto count_in = [&](double& mean, const at::Tensor& value) {
    mean += (value.item<double>() - mean) / static_cast<double>(batches_);
  };
  for (size_t i = 0; i < terms_.size(); ++i) {
    if (!dense[i].is_floating_point() || dense[i].numel() == 0) continue;
    const at::Tensor a = dense[i].to(at::kFloat);
    const at::Tensor weight = confidence(i, dense);
    const at::Tensor mean = weight.defined() ? (a * weight).mean() / weight.mean() : a.mean();
    const bool events = terms_[i].kind == Kind::kEvents;
    count_in(terms_[i].spread,
             weighted(events ? of_events(a, mean) : (a - mean).square(), weight).mean());
    if (weight.defined()) count_in(terms_[i].confidence, weight.mean());
  }
}

void OutputLoss::average_over(const RankGroup& ranks) {
  const at::Tensor means = at::empty({std::ssize(terms_), 2}, at::kDouble);
  auto* const numbers = means.data_ptr<double>();
  for (size_t i = 0; i < terms_.size(); ++i) {
    numbers[2 * i] = terms_[i].spread;
    numbers[2 * i + 1] = terms_[i].confidence;
  }
  ranks.sum(means);
  for (size_t i = 0; i < terms_.size(); ++i) {
    terms_[i].spread = numbers[2 * i] / ranks.size();
    terms_[i].confidence = numbers[2 * i + 1] / ranks.size();
  }
}

at::Tensor OutputLoss::distance(const Term& term, const at::Tensor& dense, const at::Tensor& small,
                                const at::Tensor& weight) {
  const at::Tensor a = dense.to(at::kFloat);
  const at::Tensor b = small.to(at::kFloat);
  switch (term.kind) {
    case Kind::kDistribution:
      return divergence(a, b).sum() / a.sum().clamp_min(1);
    case Kind::kEvents:
      return weighted(of_events(a, b), weight).mean() / (term.spread < kNoSpread ? 1 : term.spread);
    case Kind::kOther:
      break;
  }
  if (term.spread <= 0) return at::mse_loss(b, a);
  const double deviation = std::sqrt(term.spread / term.confidence);
  const at::Tensor huber = at::huber_loss(b, a, at::Reduction::None, deviation);
  return 2 * weighted(huber, weight).mean() / term.spread;
}

at::Tensor OutputLoss::squared_scale(const Term& term, const at::Tensor& a,
                                     const at::Tensor& weight) {
  const auto count = static_cast<double>(a.numel());
  const double spread = term.spread;
  at::Tensor scale;
  switch (term.kind) {
    case Kind::kDistribution:
      return 2 * a.clamp_min(kSmallest) * a.sum().clamp_min(1);
    case Kind::kEvents:
      scale = 2 * count * (a * (1 - a)).clamp_min(kSmallest) * (spread < kNoSpread ? 1 : spread);
      break;
    case Kind::kOther:
      scale = at::full({}, count * (spread > 0 ? spread : 1), a.options());
  }
  return weight.defined() ? scale / weight.clamp_min(kSmallest) : scale;
}

at::Tensor OutputLoss::expected(Term& term, const at::Tensor& dense, const at::Tensor& small) {
  if (!small.is_floating_point()) {
    // Values other than outputs are sizes.
    if (term.is_output) term.note = "integers have no gradients";
    return {};
  }
  at::Tensor expected = dense;
  if (!term.kept.empty()) {
    const at::Tensor kept = at::tensor(term.kept, at::kLong).to(dense.device());
    expected = dense.index_select(term.axis, kept);
  }
  if (expected.sizes().equals(small.sizes())) return expected;
  term.note = "its shape is " + to_string(small.sizes().vec()) + ", the dense network's " +
              to_string(expected.sizes().vec());
  return {};
}

at::Tensor OutputLoss::operator()(const std::vector<at::Tensor>& dense,
                                  const std::vector<at::Tensor>& small) {
  at::Tensor sum;
  for (size_t i = 0; i < terms_.size(); ++i) {
    const at::Tensor a = expected(terms_[i], dense[i], small[i]);
    if (!a.defined() || a.numel() == 0) continue;
    const at::Tensor apart =
        distance(terms_[i], a, small[i], confidence(i, dense)) * terms_[i].weight;
    sum = sum.defined() ? sum + apart : apart;
  }
  return sum;
}

at::Tensor OutputLoss::drawn(const std::vector<at::Tensor>& values,
                             const at::Generator& generator) const {
  at::Tensor sum;
  for (size_t i = 0; i < terms_.size(); ++i) {
    if (!values[i].is_floating_point() || values[i].numel() == 0) continue;
    const at::Tensor a = values[i].to(at::kFloat);
    const at::Tensor scale = squared_scale(terms_[i], a.detach(), confidence(i, values));
    const at::Tensor sign = at::randint(2, a.sizes(), generator, at::kFloat).mul_(2).sub_(1);
    const at::Tensor part = (a * sign.to(a.device()) * (terms_[i].weight / scale).sqrt()).sum();
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

std::vector<std::string> OutputLoss::notes() const {
  std::vector<std::string> notes;
  for (size_t i = 0; i < terms_.size(); ++i) {
    if (!terms_[i].note.empty()) notes.push_back(names_[i] + " is not compared: " + terms_[i].note);
  }
  return notes;
}

}  // namespace parsimony::training
