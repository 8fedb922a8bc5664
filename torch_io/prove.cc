#include "parsimony/torch_io/prove.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <limits>
#include <map>
#include <regex>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/graph/graph_editor.h"
#include "parsimony/graph/infer.h"
#include "parsimony/torch_io/executor/graph_module.h"
#include "parsimony/torch_io/reason.h"
#include "parsimony/torch_io/tensor.h"

namespace parsimony::torch_io {
namespace {

// How much larger than its own rounding the difference may be where that is not below the
// tolerance.
constexpr double kRoundingMargin = 4;
constexpr double kWeakTolerance = 1e-2;
// What integer inputs are drawn below: the first serves bytes and word indices, the second masks.
constexpr int64_t kRanges[] = {256, 2};

bool looks_like_flag(const std::string& name) {
  static const std::regex pattern("mask|type|segment|flag|padding", std::regex::icase);
  return std::regex_search(name, pattern);
}

at::Tensor random_input(const Value& value, const Shape& dims, int64_t below,
                        const at::Generator& generator) {
  const at::ScalarType type = scalar_type_of(value.dtype);
  if (at::isFloatingType(type)) return at::randn(dims, generator, at::kFloat).to(type);
  if (type == at::kBool || looks_like_flag(value.name)) below = 2;
  return at::randint(0, std::min<int64_t>(below, 127), dims, generator, at::kLong).to(type);
}

at::Tensor as_double(const at::Tensor& tensor) { return tensor.detach().to(at::kDouble); }

/// max|a - b| / max|a|; infinities that are the same do not differ, and NaN always does: it would
/// agree with every fault.
double difference_of(const at::Tensor& wanted, const at::Tensor& found) {
  if (!wanted.defined() || !found.defined() || !wanted.sizes().equals(found.sizes()))
    return std::numeric_limits<double>::infinity();
  if (wanted.numel() == 0) return 0;
  const at::Tensor a = as_double(wanted);
  const at::Tensor b = as_double(found);
  const at::Tensor apart = (a - b).abs().masked_fill(a.eq(b), 0);
  const double largest = apart.max().item<double>();
  if (largest == 0) return 0;
  const double scale = a.abs().masked_fill(a.isfinite().logical_not(), 0).max().item<double>();
  const double ratio = largest / scale;
  return ratio >= 0 ? ratio : std::numeric_limits<double>::infinity();  // NaN counts as infinite
}

/// Computes another way for as long as it lives: without oneDNN's kernels.
class OtherKernels {
 public:
  OtherKernels() : used_(at::globalContext().userEnabledMkldnn()) {
    at::globalContext().setUserEnabledMkldnn(!used_);
  }
  ~OtherKernels() { at::globalContext().setUserEnabledMkldnn(used_); }
  OtherKernels(const OtherKernels&) = delete;
  OtherKernels& operator=(const OtherKernels&) = delete;

 private:
  bool used_;
};

}  // namespace

bool mixes(const Plan& plan) {
  return std::any_of(plan.groups.begin(), plan.groups.end(),
                     [](const PlanGroup& group) { return group.mixes; });
}

std::vector<at::Tensor> random_inputs(const Graph& graph, const Probe& probe, uint64_t seed,
                                      int64_t below) {
  const at::Generator generator = at::detail::createCPUGenerator(seed);
  const Facts facts = infer(graph, probe);
  std::vector<at::Tensor> inputs;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Value& value = graph.value(graph.inputs[i]);
    const auto& shape = facts.shapes[graph.inputs[i]];
    if (!shape) throw UnsupportedError("the shape of input \"" + value.name + "\" is not known");
    if (i < probe.inputs.size() && probe.inputs[i].value) {
      inputs.push_back(at::full(*shape, *probe.inputs[i].value, scalar_type_of(value.dtype)));
    } else {
      inputs.push_back(random_input(value, *shape, below, generator));
    }
  }
  return inputs;
}

Reference::Reference(const Graph& graph, const Probe& probe, bool mixes, Computation masked,
                     const ProofOptions& options)
    : masked_(std::move(masked)), options_(options), mixes_(mixes) {
  for (const ValueId output : graph.outputs) names_.push_back(graph.value(output).name);
  for (const int64_t below : kRanges) {
    try {
      run_original(graph, probe, below);
      return;
    } catch (const std::exception& error) {
      if (below != kRanges[std::size(kRanges) - 1]) continue;
      throw UnsupportedError("the original does not run on random inputs: " + reason_of(error));
    }
  }
}

void Reference::run_original(const Graph& graph, const Probe& probe, int64_t below) {
  inputs_.clear();
  for (int i = 0; i < options_.inputs; ++i) {
    inputs_.push_back(random_inputs(graph, probe, options_.seed + static_cast<uint64_t>(i), below));
  }
  const Choices::Use use(choices_, Choices::Mode::kRecord);
  outputs_ = masked_.each(inputs_);
}

std::vector<std::vector<at::Tensor>> Reference::computed_otherwise() const {
  const OtherKernels other;
  return masked_.each(inputs_);
}

/// How far the original is from itself when it is computed another way.
double Reference::rounding(size_t output,
                           const std::vector<std::vector<at::Tensor>>& otherwise) const {
  double largest = 0;
  for (size_t i = 0; i < otherwise.size(); ++i) {
    const double apart = difference_of(outputs_[i][output], otherwise[i].at(output));
    if (apart <= std::numeric_limits<double>::max()) largest = std::max(largest, apart);
  }
  return largest;
}

double Reference::difference(size_t output,
                             const std::vector<std::vector<at::Tensor>>& found) const {
  double largest = 0;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const double apart = i < found.size() && output < found[i].size()
                             ? difference_of(outputs_[i][output], found[i][output])
                             : std::numeric_limits<double>::infinity();
    largest = std::max(largest, apart);
  }
  return largest;
}

void Reference::allow_for_rounding(Proof& proof) const {
  std::vector<std::vector<at::Tensor>> otherwise;
  for (size_t o = 0; o < proof.outputs.size(); ++o) {
    OutputDifference& output = proof.outputs[o];
    if (output.difference <= output.tolerance) continue;
    if (otherwise.empty()) otherwise = computed_otherwise();
    output.tolerance = std::max(output.tolerance, kRoundingMargin * rounding(o, otherwise));
    if (output.tolerance <= kWeakTolerance) continue;
    proof.notes.push_back("output \"" + output.name +
                          "\": the check is weak, for the original itself rounds as much");
  }
}

bool Reference::hardly_moves(size_t output, double tolerance) const {
  if (outputs_.size() < 2) return false;
  return std::all_of(outputs_.begin() + 1, outputs_.end(), [&](const auto& one) {
    return difference_of(outputs_.front()[output], one[output]) <= tolerance;
  });
}

Proof Reference::compare_outputs(const std::vector<std::vector<at::Tensor>>& found) const {
  Proof proof;
  proof.inputs = static_cast<int>(inputs_.size());
  proof.seed = options_.seed;
  proof.mixes = mixes_;
  for (size_t o = 0; o < names_.size(); ++o) {
    proof.outputs.push_back({names_[o], difference(o, found), options_.tolerance});
    if (!hardly_moves(o, options_.tolerance)) continue;
    proof.notes.push_back("output \"" + names_[o] +
                          "\" of the masked original hardly depends on the input: its agreement "
                          "proves little");
  }
  return proof;
}

Proof Reference::compare(const Computation& small) const {
  std::vector<std::vector<at::Tensor>> found;
  std::string fault;
  try {
    found = small.each(inputs_);
  } catch (const std::exception& error) {
    fault = reason_of(error);
  }
  Proof proof = compare_outputs(found);
  if (!fault.empty()) proof.notes.push_back("the small network does not run: " + fault);
  if (proof.holds() || !fault.empty()) return proof;
  std::optional<Proof> alike = compare_choosing_alike(small);
  return alike ? *std::move(alike) : proof;
}

std::optional<Proof> Reference::compare_choosing_alike(const Computation& small) const {
  std::vector<std::vector<at::Tensor>> found;
  Choices choices = choices_;
  try {
    const Choices::Use use(choices, Choices::Mode::kReplay);
    found = small.each(inputs_);
  } catch (const std::exception&) {
    return std::nullopt;
  }
  std::map<std::pair<std::string, size_t>, double> apart;  // by node and operand
  for (const Choice& choice : choices.list()) {
    double& largest = apart[{choice.node, choice.operand}];
    largest = std::max(largest, difference_of(choice.numbers, choice.found));
  }
  if (apart.empty()) return std::nullopt;
  Proof proof = compare_outputs(found);
  for (const auto& [place, difference] : apart) {
    proof.choices.push_back({place.first + ", operand " + std::to_string(place.second), difference,
                             options_.tolerance});
  }
  if (!proof.holds()) return std::nullopt;
  return proof;
}

Proof Reference::prove(Runner& small) {
  return compare(
      [&](const std::vector<Computation::List>& inputs) { return small.run({inputs}).runs; });
}

namespace {

GraphModuleOptions options_of(std::function<bool(const Weight&)> read_anew) {
  return {.trainable = false, .read_anew = std::move(read_anew)};
}

Computation in_floats(GraphModule module) {
  module->widen_halves();
  return [module](const std::vector<Computation::List>& inputs) mutable {
    const at::NoGradGuard no_grad;
    return module->forward_each(inputs);
  };
}

}  // namespace

Computation masked_run(const Graph& original, const Plan& plan,
                       std::function<bool(const Weight&)> read_anew) {
  GraphEditor reference(original);
  replay(reference_changes(plan), reference);
  GraphModule module(reference.graph(), options_of(std::move(read_anew)));
  module->mask(plan);
  return in_floats(std::move(module));
}

Computation plain_run(const Graph& graph, std::function<bool(const Weight&)> read_anew) {
  return in_floats(GraphModule(graph, options_of(std::move(read_anew))));
}

bool differs(const Graph& original, const Plan& plan, const Probe& probe,
             const ProofOptions& options) {
  GraphEditor small(original, GraphEditor::Elements::kAll);
  replay(plan, small);
  const Reference reference(original, probe, false, masked_run(original, plan), options);
  Proof proof = reference.compare(plain_run(small.graph()));
  reference.allow_for_rounding(proof);
  return !proof.holds();
}

}  // namespace parsimony::torch_io
