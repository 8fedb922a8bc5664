#include "parsimony/graph/interface.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "parsimony/base/parse.h"
#include "parsimony/base/ranges.h"
#include "parsimony/graph/errors.h"

namespace parsimony {
namespace {

ConfigError cannot_feed_back(std::string_view state, std::string_view why) {
  return ConfigError("--states ", state, ": the output cannot be fed back: ", why);
}

ConfigError bad_free_axis(std::string_view text) {
  return ConfigError("--free: found ", in_quotes(text),
                     ", wanted an input or output, NAME or NAME:AXIS with an axis that it has");
}

constexpr std::string_view kAuto = "auto";

/// Words that tell the two ends of a state apart.
constexpr auto kEnds = std::to_array<std::string_view>({"past", "present", "new", "next", "old",
                                                        "prev", "previous", "in", "input", "inputs",
                                                        "out", "output", "outputs", "updated"});
/// The same behind a name: "h0", "h_n".
constexpr auto kTurns = std::to_array<std::string_view>({"0", "n"});

/// "pastKey.0" is past, key and 0.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words;
  unsigned char before = 0;
  for (const unsigned char c : name) {
    const bool starts =
        std::isalnum(before) == 0 || (std::islower(before) != 0 && std::isupper(c) != 0);
    before = c;
    if (std::isalnum(c) == 0) continue;
    if (starts) words.emplace_back();
    words.back() += static_cast<char>(std::tolower(c));
  }
  if (words.size() == 1 && words[0].size() == 2)
    words = {words[0].substr(0, 1), words[0].substr(1)};
  return words;
}

/// A name without these words: "past_key_values.0.key" and "present.0.key" are both "0 key ".
std::string stem_of(std::string_view name) {
  std::vector<std::string> words = words_of(name);
  constexpr std::array<std::string_view, 3> kPairs = {"past", "key", "values"};  // Hugging Face
  if (words.size() > 3 && std::equal(kPairs.begin(), kPairs.end(), words.begin())) {
    words.erase(words.begin(), words.begin() + 3);
  }
  if (words.size() == 2 && contains(kTurns, words[1])) words.pop_back();
  std::string stem;
  for (const std::string& word : words) {
    if (!contains(kEnds, word)) stem += word + " ";
  }
  return stem;
}

/// Sizes as far as the file fixes them; -1 elsewhere.
Shape fixed_sizes(const Graph& graph, const Facts& facts, ValueId v) {
  Shape sizes = facts.shapes[v].value_or(Shape());
  const auto& declared = graph.value(v).declared;
  for (size_t d = 0; declared && d < sizes.size() && d < declared->size(); ++d) {
    if ((*declared)[d] < 0) sizes[d] = -1;
  }
  return sizes;
}

/// Why an output cannot be an input of the next run; empty if it can. One dimension may be longer,
/// as of a cache that grows.
std::string why_not(const Graph& graph, const Facts& facts, const StatePair& state) {
  const auto& from = facts.shapes[state.output];
  const auto& to = facts.shapes[state.input];
  if (!from || !to) return "their shapes are not known";
  const DType made = graph.value(state.output).dtype;
  const DType read = graph.value(state.input).dtype;
  if (made != read && made != DType::kUnknown && read != DType::kUnknown) {
    return "their element types differ";
  }
  int longer = 0;
  bool shorter = from->size() != to->size();
  for (size_t d = 0; !shorter && d < from->size(); ++d) {
    longer += (*from)[d] > (*to)[d] ? 1 : 0;
    shorter = (*from)[d] < (*to)[d];
  }
  if (!shorter && longer <= 1) return {};
  return "shapes " + to_string(*from) + " and " + to_string(*to) + " do not fit";
}

bool holds(const Graph& graph, const Facts& facts, const StatePair& state) {
  return why_not(graph, facts, state).empty();
}

/// Adds pairs, in order, of outputs and inputs with the same key, where there are as many of both.
template <typename Key, typename KeyOf>
void pair_by(std::span<const ValueId> outputs, std::span<const ValueId> inputs, const KeyOf& key_of,
             const Graph& graph, const Facts& facts, std::vector<StatePair>& states) {
  std::map<Key, std::pair<std::vector<ValueId>, std::vector<ValueId>>> by_key;
  const auto is_state = [&](ValueId v) {
    return std::ranges::any_of(states,
                               [&](const StatePair& s) { return s.output == v || s.input == v; });
  };
  for (const ValueId v : outputs) {
    if (!is_state(v)) by_key[key_of(v)].first.push_back(v);
  }
  for (const ValueId v : inputs) {
    if (!is_state(v)) by_key[key_of(v)].second.push_back(v);
  }
  for (const auto& [key, ends] : by_key) {
    if (ends.first.size() != ends.second.size()) continue;
    for (size_t i = 0; i < ends.first.size(); ++i) {
      const StatePair state{ends.first[i], ends.second[i]};
      if (holds(graph, facts, state)) states.push_back(state);
    }
  }
}

ValueId end_called(const Graph& graph, const std::vector<ValueId>& ends, std::string_view name,
                   std::string_view what) {
  std::vector<std::string> names;
  for (const ValueId v : ends) {
    if (graph.value(v).name == name) return v;
    names.push_back(graph.value(v).name);
  }
  throw ConfigError("the network has no ", what, " ", in_quotes(name), ".",
                    did_you_mean(name, names));
}

bool share_an_end(const std::vector<StatePair>& states, const StatePair& state) {
  return std::ranges::any_of(states, [&](const StatePair& known) {
    return known.output == state.output || known.input == state.input;
  });
}

/// Ends that were paired before stay so.
void find_automatically(const Graph& graph, const Facts& facts, std::vector<StatePair>& states) {
  for (const StatePair& state : likely_states(graph, facts)) {
    if (!share_an_end(states, state)) states.push_back(state);
  }
  if (graph.inputs.size() < 2 || graph.outputs.size() < 2) return;
  const auto outputs = std::span(graph.outputs).subspan(1);
  const auto inputs = std::span(graph.inputs).subspan(1);
  pair_by<Shape>(
      outputs, inputs, [&](ValueId v) { return fixed_sizes(graph, facts, v); }, graph, facts,
      states);
  pair_by<size_t>(
      outputs, inputs, [&](ValueId v) { return fixed_sizes(graph, facts, v).size(); }, graph, facts,
      states);
}

StatePair state_of(std::string_view text, const Graph& graph, const Facts& facts) {
  const size_t at = text.find('=');
  if (at == std::string_view::npos) {
    throw ConfigError("--states: found ", in_quotes(text),
                      ", wanted auto or OUTPUT=INPUT, the output that the next run takes as input");
  }
  const StatePair state{end_called(graph, graph.outputs, text.substr(0, at), "output"),
                        end_called(graph, graph.inputs, text.substr(at + 1), "input")};
  const std::string why = why_not(graph, facts, state);
  if (!why.empty()) throw cannot_feed_back(text, why);
  return state;
}

class Resolving {
 public:
  Resolving(const Graph& graph, const Facts& facts) : graph_(graph), facts_(facts) {}

  Interface run(const InterfaceOptions& options) {
    std::vector<StatePair>& states = interface_.states;
    for (const std::string& text : options.states) {
      if (text == kAuto) continue;
      const StatePair state = state_of(text, graph_, facts_);
      if (share_an_end(states, state)) {
        throw cannot_feed_back(text, "one of the two is in another pair");
      }
      states.push_back(state);
    }
    if (contains(options.states, kAuto)) find_automatically(graph_, facts_, states);
    for (const StatePair& state : interface_.states) tie(state);
    for (const std::string& text : options.free) set_free(text);
    return std::move(interface_);
  }

 private:
  /// Dimensions of one size at both ends, which the input fixes: exporters leave outputs open.
  void tie(const StatePair& state) {
    const Shape& from = *facts_.shapes[state.output];
    const Shape to = fixed_sizes(graph_, facts_, state.input);
    for (int d = 0; d < std::ssize(from); ++d) {
      if (from[d] != to[d] || to[d] <= 1) continue;
      const ValueDim out{state.output, d};
      const ValueDim in{state.input, d};
      interface_.tied.emplace_back(out, in);
      interface_.free.insert(interface_.free.end(), {out, in});
    }
  }

  void set_free(std::string_view text) {
    std::string_view name = text;
    std::optional<int> axis;
    const size_t colon = text.rfind(':');
    if (colon != std::string_view::npos && !is_end(text)) {
      name = text.substr(0, colon);
      axis = number_of<int>(text.substr(colon + 1));
      if (!axis) throw bad_free_axis(text);
    }
    std::vector<ValueId> ends = graph_.inputs;
    ends.insert(ends.end(), graph_.outputs.begin(), graph_.outputs.end());
    const ValueId v = end_called(graph_, ends, name, "input or output");
    const Shape sizes = fixed_sizes(graph_, facts_, v);
    if (axis && *axis < 0) *axis += static_cast<int>(sizes.size());
    if (axis && (*axis < 0 || *axis >= std::ssize(sizes))) throw bad_free_axis(text);
    if (axis && sizes[*axis] < 0) {
      throw ConfigError("--free ", text,
                        ": the model leaves the size of this axis open, so it has no channels");
    }
    for (int d = 0; d < std::ssize(sizes); ++d) {
      if ((!axis || d == *axis) && sizes[d] > 1) interface_.free.push_back({v, d});
    }
  }

  bool is_end(std::string_view name) const {
    const auto called = [&](ValueId v) { return graph_.value(v).name == name; };
    return std::ranges::any_of(graph_.inputs, called) ||
           std::ranges::any_of(graph_.outputs, called);
  }

  const Graph& graph_;
  const Facts& facts_;
  Interface interface_;
};

}  // namespace

std::vector<InputSpec> by_position(const std::vector<InputSpec>& specs, const Graph& graph) {
  InputSpec nothing;
  nothing.open = true;
  std::vector<InputSpec> placed;
  const auto place = [&](size_t at, const InputSpec& spec) {
    if (placed.size() <= at) placed.resize(at + 1, nothing);
    placed[at] = spec;
  };
  size_t next = 0;
  for (const InputSpec& spec : specs) {
    if (!spec.name.empty()) {
      const ValueId v = end_called(graph, graph.inputs, spec.name, "input");
      place(std::ranges::find(graph.inputs, v) - graph.inputs.begin(), spec);
    } else if (next == graph.inputs.size()) {
      throw errors::too_many_inputs(specs.size(), next);
    } else {
      place(next++, spec);
    }
  }
  return placed;
}

std::vector<StatePair> likely_states(const Graph& graph, const Facts& facts) {
  std::vector<StatePair> states;
  pair_by<std::string>(
      graph.outputs, graph.inputs, [&](ValueId v) { return stem_of(graph.value(v).name); }, graph,
      facts, states);
  std::erase_if(states, [&](const StatePair& state) {
    const bool data = state.output == graph.outputs[0] && state.input == graph.inputs[0];
    return data || stem_of(graph.value(state.output).name).empty();
  });
  return states;
}

Interface resolve(const InterfaceOptions& options, const Graph& graph, const Facts& facts) {
  return Resolving(graph, facts).run(options);
}

}  // namespace parsimony
