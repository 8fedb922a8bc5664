#include "parsimony/api/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include "parsimony/api/errors.h"
#include "parsimony/base/errors.h"
#include "parsimony/graph/attributes.h"
#include "parsimony/graph/elements.h"
#include "parsimony/graph/errors.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/graph/operators/schema.h"
#include "parsimony/graph/slice.h"

namespace parsimony {
namespace {

size_t number_of(const Graph& graph, const std::vector<ValueId>& ends, std::string_view name,
                 std::string_view what) {
  const auto at =
      std::ranges::find_if(ends, [&](ValueId v) { return graph.value(v).name == name; });
  if (at == ends.end()) throw errors::not_in_model(what, name);
  return static_cast<size_t>(at - ends.begin());
}

void shorten(TensorBytes& tensor, const std::vector<AxisKeep>& axes) {
  if (axes.empty() || tensor.bytes.empty()) return;
  check_slices(tensor.name, tensor.dims, axes);
  tensor.bytes = sliced_bytes(tensor.bytes.data(), tensor.dims, size_of(tensor.dtype), axes);
  tensor.dims = sliced(tensor.dims, axes);
}

/// Returns the indices that are missing in `axis`.
AxisKeep complement(const AxisKeep& axis) {
  AxisKeep rest{axis.axis, axis.size, {}};
  for (int64_t i = 0; i < axis.size; ++i) {
    if (!std::ranges::binary_search(axis.keep, i)) rest.keep.push_back(i);
  }
  return rest;
}

/// Keeps the last elements along every dimension that is longer than expected.
void take_end(TensorBytes& tensor, const Shape& expected) {
  std::vector<AxisKeep> axes;
  for (int d = 0; d < std::ssize(tensor.dims) && d < std::ssize(expected); ++d) {
    if (tensor.dims[d] <= expected[d]) continue;
    AxisKeep axis{d, tensor.dims[d], std::vector<int64_t>(expected[d])};
    std::iota(axis.keep.begin(), axis.keep.end(), tensor.dims[d] - expected[d]);
    axes.push_back(std::move(axis));
  }
  shorten(tensor, axes);
}

}  // namespace

InputSlicer::InputSlicer(const Graph& graph, const Plan& plan)
    : inputs_(graph.inputs.size()), outputs_(graph.outputs.size()) {
  for (const PlanEnd& end : plan.ends) {
    const size_t at = number_of(graph, end.input ? graph.inputs : graph.outputs, end.value,
                                end.input ? "input" : "output");
    (end.input ? inputs_ : outputs_)[at].push_back({end.axis, end.size, end.keep});
  }
  for (const PlanWords& words : plan.words) {
    words_.emplace_back(number_of(graph, graph.inputs, words.input, "input"), words.keep);
  }
  for (const PlanState& state : plan.states) {
    states_.emplace_back(number_of(graph, graph.outputs, state.output, "output"),
                         number_of(graph, graph.inputs, state.input, "input"));
  }
}

namespace {

/// Replaces each integer, which is none of a byte.
template <typename Change>
void change_integers(TensorBytes& tensor, const Change& change) {
  const auto each = [&]<typename Integer>(Integer number) {
    for (size_t at = 0; at + sizeof number <= tensor.bytes.size(); at += sizeof number) {
      std::memcpy(&number, tensor.bytes.data() + at, sizeof number);
      number = static_cast<Integer>(change(static_cast<int64_t>(number)));
      std::memcpy(tensor.bytes.data() + at, &number, sizeof number);
    }
  };
  if (tensor.dtype == DType::kInt64) return each(int64_t{});
  if (tensor.dtype == DType::kInt32) return each(int32_t{});
  throw UnsupportedError("input ", in_quotes(tensor.name),
                         ": numbers of words are expected to be int32 or int64");
}

}  // namespace

void InputSlicer::restrict_words(TensorList& inputs) const {
  for (const auto& [input, keep] : words_) {
    const auto count = std::ssize(keep);
    change_integers(inputs.at(input), [&, &stays = keep](int64_t word) {
      if (std::ranges::binary_search(stays, word)) return word;
      return stays[(word % count + count) % count];
    });
  }
}

TensorList InputSlicer::small_inputs(TensorList inputs) const {
  for (const auto& [input, keep] : words_) {
    change_integers(inputs.at(input), [&stays = keep](int64_t word) {
      return std::ranges::lower_bound(stays, word) - stays.begin();
    });
  }
  return cut(std::move(inputs), inputs_);
}

void InputSlicer::feed_back(const TensorList& outputs, TensorList& inputs) const {
  for (const auto& [from, to] : states_) {
    TensorBytes state = outputs.at(from);
    TensorBytes& input = inputs.at(to);
    take_end(state, input.dims);
    state.name = input.name;
    input = std::move(state);
  }
}

void InputSlicer::mask(TensorList& inputs) const {
  for (size_t i = 0; i < inputs.size() && i < inputs_.size(); ++i) {
    TensorBytes& input = inputs[i];
    for (const AxisKeep& axis : inputs_[i]) {
      const AxisKeep removed = complement(axis);
      if (removed.keep.empty()) continue;
      check_slices(input.name, input.dims, {&removed, 1});
      for_each_run(input.bytes.data(), input.dims, size_of(input.dtype), {&removed, 1},
                   [&](const std::byte* run, int64_t bytes) {
                     std::memset(input.bytes.data() + (run - input.bytes.data()), 0, bytes);
                   });
    }
  }
}

TensorList InputSlicer::cut(TensorList tensors, const Cuts& cuts) {
  for (size_t i = 0; i < tensors.size() && i < cuts.size(); ++i) {
    shorten(tensors[i], cuts[i]);
  }
  return tensors;
}

namespace {

// Allowed difference relative to the original's own rounding error.
constexpr double kRoundingMargin = 4;
constexpr double kWeakTolerance = 1e-2;
constexpr size_t kSteps = 8;  // of networks with states
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Returns whether a result can jump when operands change slightly: not if it is computed from
/// integers, which are equal in both networks unless a node before them chose, nor if it is only
/// cast to another type.
bool chooses(const Graph& graph, const Node& node) {
  if (!has_trait(node, kChooses)) return false;
  const auto moves = [&](ValueId v) {
    const DType type = v == kNone ? DType::kInt64 : graph.value(v).dtype;
    return type == DType::kUnknown || is_floating(type);
  };
  if (std::ranges::none_of(node.inputs, moves)) return false;
  if (!has_trait(node, kCopies)) return true;
  const DType to = dtype_of_onnx(attr(node, "to", int64_t{0}));
  return !is_floating(to) || is_small_float(to);
}

/// The same, but for sizes, which are known before the network runs.
bool chooses(const Graph& graph, const Facts& facts, const Node& node) {
  const auto is_computed = [&](ValueId v) { return v == kNone || facts.computed[v]; };
  return chooses(graph, node) && !std::ranges::all_of(node.outputs, is_computed);
}

}  // namespace

bool mixes(const Plan& plan) {
  return std::ranges::any_of(plan.groups, [](const PlanGroup& group) { return group.mixes; });
}

ProofOptions tolerance_for(const Engine& engine, const Graph& graph, ProofOptions options) {
  constexpr double kOfHalves = 1e-2;
  const bool halves = std::ranges::any_of(graph.values, [](const Value& value) {
    return value.dtype == DType::kFloat16 || value.dtype == DType::kBFloat16;
  });
  if (halves && !engine.executes_graphs()) options.tolerance = kOfHalves;
  return options;
}

std::string why_inconclusive(const Engine& engine, const Graph& graph, const Facts& facts) {
  const auto in_doubt = [&](const Node& node) { return chooses(graph, facts, node); };
  if (engine.executes_graphs() || std::ranges::none_of(graph.nodes, in_doubt)) return {};
  return "outputs differ in " + engine.name() +
         ", which does not report the operands of the network's discrete choices; libtorch "
         "compares them";
}

std::string why_incomparable(const Graph& graph) {
  std::vector<ValueId> pending(graph.outputs);
  IdVector<ValueId, bool> seen(graph.values.size(), false);
  while (!pending.empty()) {
    const ValueId value = pending.back();
    pending.pop_back();
    if (value == kNone || seen[value]) continue;
    seen[value] = true;
    const NodeId producer = graph.value(value).producer;
    if (producer == kNone) continue;
    const Node& node = graph.node(producer);
    if (draws(graph, node)) {
      return "node " + in_quotes(label_of(graph, node)) +
             " draws random numbers, which differ between runs";
    }
    for (int i = 0; i < std::ssize(node.inputs); ++i) {
      if (reads_elements(node, i)) pending.push_back(node.inputs[i]);
    }
    for (const BodyId body : node.bodies) {
      const std::vector<ValueId>& outputs = graph.bodies[body].outputs;
      pending.insert(pending.end(), outputs.begin(), outputs.end());
    }
  }
  return {};
}

bool zeros_suffice(const Plan& plan) {
  return !mixes(plan) && plan.blocks.empty() && plan.scales.empty();
}

double difference_of(const TensorBytes& a, const TensorBytes& b) {
  if (a.dims != b.dims || a.bytes.empty() != b.bytes.empty()) return kInfinity;
  if (a.bytes.empty()) return element_count(a.dims) == 0 ? 0 : kInfinity;
  const ReadNumber read_a = reader_of(a.dtype);
  const ReadNumber read_b = reader_of(b.dtype);
  if (read_a == nullptr || read_b == nullptr) return a.bytes == b.bytes ? 0 : kInfinity;
  const size_t a_bytes = size_of(a.dtype);
  const size_t b_bytes = size_of(b.dtype);
  double largest = 0;
  double scale = 0;
  bool nan = false;
  const auto count = static_cast<size_t>(element_count(a.dims));
  for (size_t i = 0; i < count; ++i) {
    const double x = read_a(a.bytes.data() + i * a_bytes);
    const double y = read_b(b.bytes.data() + i * b_bytes);
    if (std::isfinite(x)) scale = std::max(scale, std::abs(x));
    if (x == y) continue;
    const double apart = std::abs(x - y);
    nan = nan || std::isnan(apart);
    largest = std::max(largest, apart);
  }
  if (nan) return kInfinity;
  if (largest == 0) return 0;
  const double ratio = largest / scale;
  return ratio >= 0 ? ratio : kInfinity;  // NaN counts as infinite
}

Reference::Reference(const Graph& graph, const Probe& probe, const Plan& plan, Network& masked,
                     const ProofOptions& options, const TensorList& sample)
    : options_(options),
      mixes_(mixes(plan)),
      smooth_(std::ranges::none_of(graph.nodes,
                                   [&](const Node& node) { return chooses(graph, node); })),
      feed_(graph, plan),
      sample_(sample) {
  for (const ValueId output : graph.outputs) names_.push_back(graph.value(output).name);
  std::string first_without;
  for (const runtime::Floats floats : runtime::kFloats) {
    try {
      run(graph, probe, masked, floats);
    } catch (const UnsupportedError&) {
      if (first_without.empty()) throw;
      continue;  // it did run, with non-finite values
    }
    const std::string without = without_numbers();
    if (without.empty()) return;
    if (first_without.empty()) first_without = without;
  }
  throw errors::NoNumbersError(
      "the masked original returns NaN or only infinities at output ", in_quotes(first_without),
      " on random inputs of every kind that was tried: normally distributed, "
      "between 0 and 1, between 0.5 and 1.5");
}

void Reference::run(const Graph& graph, const Probe& probe, Network& masked,
                    runtime::Floats floats) {
  floats_ = floats;
  for (const int64_t below : runtime::kIntegerRanges) {
    try {
      draw(graph, probe, {.below = below, .floats = floats});
      run_steps(masked);
      if (ended_.empty() || below == runtime::kIntegerRanges.back()) return;
    } catch (const std::exception& error) {
      if (below != runtime::kIntegerRanges.back()) continue;
      throw UnsupportedError(std::string("the original does not run on random inputs: ") +
                             error.what());
    }
  }
}

/// Runs the steps up to the first that fails, for example because positions or masks would have to
/// grow with a cache.
void Reference::run_steps(Network& masked) {
  choices_.assign(inputs_.size(), {});
  outputs_.clear();
  ended_.clear();
  try {
    drive(masked, Side::kOriginal, &choices_, outputs_);
  } catch (const std::exception& error) {
    const size_t steps = outputs_.size() / inputs_.front().size();
    if (steps == 0) throw;
    ended_ = error.what();
    inputs_.resize(steps);
    choices_.resize(steps);
  }
}

namespace {

/// Moves each number by one unit in its last place, as far as it has one. Whole numbers stay: masks
/// and ids are not rounded.
void move_last_bits(TensorBytes& tensor) {
  const ReadNumber read = reader_of(tensor.dtype);
  const auto size = static_cast<size_t>(size_of(tensor.dtype));
  if (read == nullptr || !is_floating(tensor.dtype) || size < 2) return;
  for (size_t at = 0; at < tensor.bytes.size(); at += size) {
    const double number = read(tensor.bytes.data() + at);
    if (!std::isfinite(number) || number == std::trunc(number)) continue;
    tensor.bytes[at] ^= std::byte{1};  // little-endian
  }
}

}  // namespace

void Reference::drive(Network& network, Side side, std::vector<ChoiceRecord>* choices,
                      std::vector<TensorList>& outputs) const {
  const bool small = side == Side::kSmall;
  std::vector<TensorList> last;
  for (size_t s = 0; s < inputs_.size(); ++s) {
    std::vector<TensorList> inputs = inputs_[s];
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (small) inputs[i] = feed_.small_inputs(std::move(inputs[i]));
      if (s > 0) feed_.feed_back(last[i], inputs[i]);
      if (!small) feed_.mask(inputs[i]);
      if (side == Side::kRounded && smooth_) std::ranges::for_each(inputs[i], move_last_bits);
    }
    ChoiceRecord* record = choices == nullptr ? nullptr : &choices->at(s);
    last = network.run(inputs, {.alternate_kernels = side == Side::kRounded, .choices = record});
    for (const TensorList& one : last) {
      outputs.push_back(small ? one : feed_.small_outputs(one));
    }
  }
}

/// Draws the inputs of every step, although states are replaced in all but the first.
void Reference::draw(const Graph& graph, const Probe& probe, const runtime::Draw& draw) {
  const uint64_t seeds = std::max<uint64_t>(1, graph.inputs.size());  // one for each input
  uint64_t seed = options_.seed;
  inputs_.assign(feed_.has_states() ? kSteps : 1, {});
  for (auto& step : inputs_) {
    for (int i = 0; i < options_.inputs; ++i, seed += seeds) {
      step.push_back(runtime::random_inputs(graph, probe, seed, draw));
      const bool as_given = i == 0 && step.size() == 1;
      for (size_t n = 0; n < sample_.size(); ++n) {
        if (sample_[n].name.empty()) continue;
        step.back()[n] = as_given ? sample_[n] : runtime::varied(sample_[n], seed + n);
      }
      feed_.restrict_words(step.back());
    }
  }
}

namespace {

bool has_numbers(const TensorBytes& tensor) {
  const ReadNumber read = reader_of(tensor.dtype);
  if (read == nullptr || !is_floating(tensor.dtype) || tensor.bytes.empty()) return true;
  const auto size = static_cast<size_t>(size_of(tensor.dtype));
  bool any_finite = false;
  for (size_t at = 0; at < tensor.bytes.size(); at += size) {
    const double number = read(tensor.bytes.data() + at);
    if (std::isnan(number)) return false;
    any_finite = any_finite || std::isfinite(number);
  }
  return any_finite;
}

}  // namespace

std::string Reference::without_numbers() const {
  for (const TensorList& outputs : outputs_) {
    for (size_t o = 0; o < outputs.size(); ++o) {
      if (!has_numbers(outputs[o])) return o < names_.size() ? names_[o] : outputs[o].name;
    }
  }
  return {};
}

/// Returns the difference of the original from itself when all is rounded otherwise.
double Reference::rounding(size_t output, const std::vector<TensorList>& rounded) const {
  double largest = 0;
  for (size_t i = 0; i < rounded.size(); ++i) {
    const double apart = difference_of(outputs_[i].at(output), rounded[i].at(output));
    if (apart <= std::numeric_limits<double>::max()) largest = std::max(largest, apart);
  }
  return largest;
}

double Reference::difference(size_t output, const std::vector<TensorList>& found) const {
  double largest = 0;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const bool both = i < found.size() && output < found[i].size() && output < outputs_[i].size();
    largest =
        std::max(largest, both ? difference_of(outputs_[i][output], found[i][output]) : kInfinity);
  }
  return largest;
}

void Reference::widen_tolerance(Proof& proof, Network& masked) const {
  std::vector<TensorList> rounded;
  for (size_t o = 0; o < proof.outputs.size(); ++o) {
    OutputDifference& output = proof.outputs[o];
    if (output.difference <= output.tolerance) continue;
    if (rounded.empty()) drive(masked, Side::kRounded, nullptr, rounded);
    output.tolerance = std::max(output.tolerance, kRoundingMargin * rounding(o, rounded));
    if (output.tolerance <= kWeakTolerance) continue;
    proof.notes.push_back("output \"" + output.name +
                          "\": inconclusive: the original's own rounding error is as large");
  }
}

bool Reference::hardly_moves(size_t output) const {
  if (outputs_.size() < 2) return false;
  return std::all_of(outputs_.begin() + 1, outputs_.end(), [&](const TensorList& one) {
    return difference_of(outputs_.front().at(output), one.at(output)) <= options_.tolerance;
  });
}

Proof Reference::compare_outputs(const std::vector<TensorList>& found) const {
  Proof proof;
  proof.inputs = options_.inputs;
  proof.steps = static_cast<int>(inputs_.size());
  proof.seed = options_.seed;
  proof.mixes = mixes_;
  if (floats_ != runtime::Floats::kNormal) {
    proof.notes.push_back("random floats are " + std::string(runtime::name_of(floats_)) +
                          ": the original returns non-finite values on normally distributed ones");
  }
  if (!ended_.empty()) {
    const std::string many = std::to_string(proof.steps);
    proof.notes.push_back((proof.steps == 1 ? "states are not fed back"
                                            : "states are fed back for " + many + " steps only") +
                          ", because the original does not run after that: " + ended_);
  }
  for (size_t o = 0; o < names_.size(); ++o) {
    proof.outputs.push_back({names_[o], difference(o, found), options_.tolerance});
    if (!hardly_moves(o)) continue;
    proof.notes.push_back(
        "output \"" + names_[o] +
        "\" of the masked original hardly depends on the input, so its agreement proves little");
  }
  return proof;
}

Proof Reference::compare(Network& small) const {
  std::vector<TensorList> found;
  std::string fault;
  try {
    drive(small, Side::kSmall, nullptr, found);
  } catch (const std::exception& error) {
    fault = std::string("the small network does not run: ") + error.what();
  }
  Proof proof = compare_outputs(found);
  proof.fault = fault;
  if (!fault.empty()) proof.notes.push_back(fault);
  const bool chose = std::ranges::any_of(
      choices_, [](const ChoiceRecord& step) { return step.recorded.has_value(); });
  if (proof.holds() || !fault.empty() || !chose) return proof;
  std::optional<Proof> alike = compare_choosing_alike(small);
  return alike ? *std::move(alike) : proof;
}

std::optional<Proof> Reference::compare_choosing_alike(Network& small) const {
  std::vector<TensorList> found;
  std::vector<ChoiceRecord> choices = choices_;
  try {
    drive(small, Side::kSmall, &choices, found);
  } catch (const std::exception&) {
    return std::nullopt;
  }
  std::map<std::pair<std::string, size_t>, double> apart;  // by node and operand
  for (const ChoiceRecord& step : choices) {
    for (const ComparedChoice& choice : step.compared) {
      double& largest = apart[{choice.node, choice.operand}];
      largest = std::max(largest, difference_of(choice.recorded, choice.found));
    }
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

bool differs(const Graph& original, const Plan& plan, const Probe& probe,
             const ProofOptions& options, Engine& engine) {
  GraphEditor small(original, GraphEditor::Elements::kAll);
  replay(plan, small);
  const std::unique_ptr<Network> masked = engine.open_masked(original, plan, {});
  const Reference reference(original, probe, plan, *masked, options);
  Proof proof = reference.compare(*engine.open(small.graph()));
  reference.widen_tolerance(proof, *masked);
  return !proof.holds();
}

}  // namespace parsimony
