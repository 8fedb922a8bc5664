// Which sizes inference assumes for what a file leaves open, and which others the result is checked
// with.
#include <algorithm>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/graph/growing_facts.h"
#include "parsimony/graph/infer.h"
#include "parsimony/graph/interface.h"
#include "parsimony/graph/open_sizes_impl.h"

namespace parsimony {

bool leaves_open(const Graph& graph) {
  return std::ranges::any_of(graph.inputs, [&](ValueId id) {
    const auto& declared = graph.value(id).declared;
    return declared && is_open(*declared);
  });
}

namespace {

int64_t known_shapes(const Facts& facts) {
  return std::ranges::count_if(facts.shapes, [](const auto& s) { return s.has_value(); });
}

/// Does the caller say what every input is?
bool all_given(const Graph& graph, const std::vector<InputSpec>& inputs) {
  return inputs.size() >= graph.inputs.size() &&
         std::ranges::none_of(inputs, [](const InputSpec& spec) { return spec.open; });
}

using OpenDim = std::pair<int, int>;  // input and axis

/// Symbolic dimensions of inputs without a given shape; of a name the first.
std::vector<OpenDim> open_dims(const Graph& graph, const Probe& probe) {
  std::vector<OpenDim> dims;
  std::set<std::string_view> names;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Value& value = graph.value(graph.inputs[i]);
    const bool given = i < probe.inputs.size() && !probe.inputs[i].open;
    for (size_t d = 0; value.declared && !given && d < value.declared->size(); ++d) {
      if ((*value.declared)[d] >= 0) continue;
      const std::string_view name = symbol_of(value, d);
      if (!name.empty() && !names.insert(name).second) continue;
      dims.emplace_back(static_cast<int>(i), static_cast<int>(d));
    }
  }
  return dims;
}

/// An integer that has the name of a dimension is its size: both get the same.
void give_sizes(const Graph& graph, Probe& probe) {
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Value& value = graph.value(graph.inputs[i]);
    const bool given = i < probe.inputs.size() && (!probe.inputs[i].open || probe.inputs[i].value);
    const bool number = value.declared && std::ranges::all_of(*value.declared, [](int64_t size) {
                          return size == 1;
                        });
    if (given || !number || !is_index_type(value.dtype)) continue;
    for (const auto& [input, dim] : open_dims(graph, probe)) {
      if (symbol_of(graph.value(graph.inputs[input]), dim) != value.name) continue;
      InputSpec nothing;
      nothing.open = true;
      if (probe.inputs.size() <= i) probe.inputs.resize(i + 1, nothing);
      probe.inputs[i].value = static_cast<double>(probe.other);
      probe.sizes[{input, dim}] = probe.other;
    }
  }
}

/// The probe with another size for a dimension, and for the number that is this size.
Probe with_size(const Graph& graph, const Probe& probe, OpenDim dim, int64_t size) {
  Probe result = probe;
  int64_t& known = result.sizes[dim];
  const std::string_view name = symbol_of(graph.value(graph.inputs[dim.first]), dim.second);
  for (size_t i = 0; i < result.inputs.size() && !name.empty(); ++i) {
    InputSpec& spec = result.inputs[i];
    const bool is_size = spec.open && spec.value == static_cast<double>(known);
    if (is_size && graph.value(graph.inputs[i]).name == name)
      spec.value = static_cast<double>(size);
  }
  known = size;
  return result;
}

/// How far inference comes with a probe: the node at which operands do not fit, and their sizes.
struct Progress {
  std::optional<Facts> facts;  ///< if all fit
  NodeId node;
  std::vector<int64_t> sizes;
};

Progress progress_with(const Graph& graph, const Probe& probe) {
  GrowingFacts facts(graph, probe);
  Progress result;
  try {
    result.facts = std::move(facts).last();
  } catch (const ShapeError& error) {
    result.node = error.node();
    result.sizes = facts.sizes_at_fault();
  } catch (const ModelError&) {
    result.node = NodeId(0);  // an input of such a size is too large
  }
  return result;
}

/// Gives open dimensions, one after the other, the size of an operand that they do not fit, as long
/// as more nodes fit then. Empty if some do not in the end.
std::optional<Facts> solve(const Graph& graph, Probe& probe) {
  constexpr size_t kMostVisits = size_t{1} << 22;  // of nodes: a few seconds
  const size_t most_trials = kMostVisits / (graph.nodes.size() + 1);
  const std::vector<OpenDim> dims = open_dims(graph, probe);
  Progress reached = progress_with(graph, probe);
  size_t trials = 0;
  while (!reached.facts) {
    Probe best = probe;
    Progress furthest = reached;
    for (const auto& dim : dims) {
      for (const int64_t size : std::views::reverse(reached.sizes)) {  // masks allow smaller ones
        if (size < 1 || ++trials > most_trials) continue;
        Probe trial = with_size(graph, probe, dim, size);
        Progress progress = progress_with(graph, trial);
        if (!progress.facts && progress.node <= furthest.node) continue;
        best = std::move(trial);
        furthest = std::move(progress);
        if (furthest.facts) break;
      }
      if (furthest.facts) break;
    }
    if (!furthest.facts && furthest.node == reached.node) return std::nullopt;
    probe = std::move(best);
    reached = std::move(furthest);
  }
  return std::move(reached.facts);
}

struct Choice {
  Probe probe;
  std::optional<Facts> facts;  // empty if nothing was open to choose, or no choice suits
};

Choice choose(const Graph& graph, const std::vector<InputSpec>& inputs) {
  Choice best{{by_position(inputs, graph), 2, 32}, std::nullopt};
  if (!leaves_open(graph) || all_given(graph, best.probe.inputs)) return best;
  give_sizes(graph, best.probe);
  const Probe given = best.probe;
  std::set<std::string> faults;
  int64_t most = -1;
  for (const int64_t first : {2, 1}) {
    for (const int64_t other : {32, 64, 224, 320, 512, 640, 128, 16}) {
      Probe probe = given;
      probe.first = first;
      probe.other = other;
      try {
        Facts facts = infer(graph, probe);
        const int64_t known = known_shapes(facts);
        if (known <= most) continue;
        most = known;
        best = {probe, std::move(facts)};
        if (known == static_cast<int64_t>(graph.values.size())) return best;
      } catch (const ModelError& error) {
        faults.insert(error.what());
      }
    }
  }
  if (best.facts) return best;
  Probe solved = best.probe;
  best.facts = solve(graph, solved);
  if (best.facts) {
    best.probe = std::move(solved);
  } else {
    best.probe.open = faults.size() > 1;  // one and the same contradiction is the file's own
  }
  return best;
}

}  // namespace

Probe choose_probe(const Graph& graph, const std::vector<InputSpec>& inputs) {
  return choose(graph, inputs).probe;
}

Probed infer_with_choice(const Graph& graph, const std::vector<InputSpec>& inputs) {
  Choice choice = choose(graph, inputs);
  if (!choice.facts) choice.facts = infer(graph, choice.probe);
  return {std::move(choice.probe), std::move(*choice.facts)};
}

namespace {

/// Changes the sizes that were found by one, where all operands fit then, too.
void vary_sizes(const Graph& graph, int64_t known, Probe& probe) {
  for (const auto& [dim, size] : std::map(probe.sizes)) {
    for (const int64_t other : {size + 1, size - 1}) {
      if (other < 1) continue;
      Probe trial = with_size(graph, probe, dim, other);
      const Progress progress = progress_with(graph, trial);
      if (!progress.facts || known_shapes(*progress.facts) != known) continue;
      probe = std::move(trial);
      break;
    }
  }
}

}  // namespace

std::optional<Probed> second_probe(const Graph& graph, const Probed& first) {
  if (!leaves_open(graph) || first.probe.open || all_given(graph, first.probe.inputs)) {
    return std::nullopt;
  }
  const int64_t known = known_shapes(first.facts);
  Probed second{first.probe, {}};
  vary_sizes(graph, known, second.probe);
  second.probe.first += 1;
  try {
    for (const int64_t other : {2 * first.probe.other, first.probe.other}) {
      second.probe.other = other;
      second.facts = infer(graph, second.probe);
      if (known_shapes(second.facts) == known) return second;
    }
  } catch (const ModelError&) {
    // A network that takes only one size.
  }
  return std::nullopt;
}

Facts infer_sample(const Graph& graph, const Probed& first) {
  Probe one = first.probe;
  one.first = 1;
  if (!leaves_open(graph) || first.probe.first == 1) return first.facts;
  try {
    Facts facts = infer(graph, one);
    if (known_shapes(facts) == known_shapes(first.facts)) return facts;
  } catch (const ModelError&) {
    // A network that takes no single sample.
  }
  return first.facts;
}

}  // namespace parsimony
