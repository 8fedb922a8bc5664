#include "parsimony/graph/interface.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/base/parse.h"
#include "parsimony/base/ranges.h"
#include "parsimony/graph/errors.h"

namespace parsimony {
namespace {

constexpr std::string_view kOpen = "?";

ConfigError bad_spec(std::string_view text, const std::string& why, const std::string& hint = "") {
  return ConfigError("--input " + std::string(text) + ": " + why +
                     "; expected for example 1x3x32x32, 2x8:int64, :int64=16000 or NAME=1x3x32x32" +
                     (hint.empty() ? "" : "." + hint));
}

template <typename Number>
Number parse_number(std::string_view text, std::string_view whole) {
  const auto value = number_of<Number>(text);
  if (!value) throw bad_spec(whole, "\"" + std::string(text) + "\" is not a number");
  return *value;
}

DType parse_type(std::string_view name, std::string_view whole) {
  std::vector<std::string> names;
  for (int t = 1; t <= static_cast<int>(DType::kBool); ++t) {
    names.emplace_back(name_of(static_cast<DType>(t)));
    if (names.back() == name) return static_cast<DType>(t);
  }
  throw bad_spec(whole, "unknown element type \"" + std::string(name) + "\"",
                 did_you_mean(name, names));
}

/// Returns where the name ends in "NAME=…"; npos if there is none, as in ":int64=16000".
size_t end_of_name(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) return std::string_view::npos;
  const std::string_view before = text.substr(0, equals);
  const bool sized =
      before[0] >= '0' && before[0] <= '9' && before.find_first_of("x:") != std::string_view::npos;
  const bool is_spec = before == kOpen || before[0] == ':' || sized;
  return is_spec ? std::string_view::npos : equals;
}

bool is_number(std::string_view text) { return number_of<double>(text).has_value(); }

/// The shortest text that reads back as the same number.
std::string number_text(double value) {
  std::array<char, 32> buffer{};
  const char* end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return {buffer.data(), static_cast<size_t>(end - buffer.data())};
}

}  // namespace

InputSpec parse_input_spec(std::string_view text) {
  if (const size_t equals = end_of_name(text); equals != std::string_view::npos) {
    const std::string_view rest = text.substr(equals + 1);
    InputSpec spec = parse_input_spec(is_number(rest) ? "?=" + std::string(rest) : rest);
    spec.name = text.substr(0, equals);
    return spec;
  }
  InputSpec spec;
  std::string_view rest = text;
  spec.open = rest.starts_with(kOpen);
  if (spec.open) rest.remove_prefix(kOpen.size());
  std::optional<std::string_view> value;
  if (const size_t equals = rest.find('='); equals != std::string_view::npos) {
    value = rest.substr(equals + 1);
    rest = rest.substr(0, equals);
  }
  if (const size_t colon = rest.find(':'); colon != std::string_view::npos) {
    spec.dtype = parse_type(rest.substr(colon + 1), text);
    rest = rest.substr(0, colon);
  }
  if (value && (spec.open || is_floating(spec.dtype))) {
    spec.value = parse_number<double>(*value, text);
  } else if (value) {
    spec.value = static_cast<double>(parse_number<int64_t>(*value, text));
  }
  for (size_t begin = 0; !rest.empty() && begin != std::string_view::npos;) {
    const size_t x = rest.find('x', begin);
    const auto size = parse_number<int64_t>(rest.substr(begin, x - begin), text);
    if (size < 1) throw bad_spec(text, "sizes must be positive");
    spec.dims.push_back(size);
    begin = x == std::string_view::npos ? x : x + 1;
  }
  if (spec.value && !spec.dims.empty()) throw bad_spec(text, "only a scalar can be given a value");
  element_count(spec.dims);
  return spec;
}

std::string to_text(const InputSpec& spec) {
  if (spec.open) return std::string(kOpen) + (spec.value ? "=" + number_text(*spec.value) : "");
  if (spec.value) {
    const DType dtype = spec.dtype == DType::kUnknown ? DType::kInt64 : spec.dtype;
    return ":" + std::string(name_of(dtype)) + "=" +
           (is_floating(dtype) ? number_text(*spec.value)
                               : std::to_string(static_cast<int64_t>(*spec.value)));
  }
  std::string text;
  for (const int64_t size : spec.dims) text += (text.empty() ? "" : "x") + std::to_string(size);
  if (spec.dtype != DType::kUnknown) text += ":" + std::string(name_of(spec.dtype));
  return text;
}

namespace {

ConfigError cannot_feed_back(std::string_view state, std::string_view why) {
  return ConfigError("--states ", state, ": the output cannot be fed back: ", why);
}

ConfigError bad_free_axis(std::string_view text) {
  return ConfigError("--free: found ", in_quotes(text),
                     ", expected an input or output, NAME or NAME:AXIS with an axis that it has");
}

constexpr std::string_view kAuto = "auto";

/// Words that tell the two ends of a state apart.
constexpr auto kEnds = std::to_array<std::string_view>({"past", "present", "new", "next", "old",
                                                        "prev", "previous", "in", "input", "inputs",
                                                        "out", "output", "outputs", "updated"});
/// Words that tell the two ends of a state apart behind a name: "h0", "h_n".
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

bool is_end(const std::vector<StatePair>& states, ValueId v) {
  return std::ranges::any_of(states,
                             [&](const StatePair& s) { return s.output == v || s.input == v; });
}

/// Adds pairs, in order, of outputs and inputs with the same key, where there are as many of both.
template <typename Key, typename KeyOf>
void pair_by(std::span<const ValueId> outputs, std::span<const ValueId> inputs, const KeyOf& key_of,
             const Graph& graph, const Facts& facts, std::vector<StatePair>& states) {
  std::map<Key, std::pair<std::vector<ValueId>, std::vector<ValueId>>> by_key;
  for (const ValueId v : outputs) {
    if (!is_end(states, v)) by_key[key_of(v)].first.push_back(v);
  }
  for (const ValueId v : inputs) {
    if (!is_end(states, v)) by_key[key_of(v)].second.push_back(v);
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

/// Ends that were paired before stay so. Shapes tell where names do not.
void find_automatically(const Graph& graph, const Facts& facts, std::vector<StatePair>& states) {
  for (const StatePair& state : likely_states(graph, facts)) {
    if (!share_an_end(states, state)) states.push_back(state);
  }
  if (!states.empty() || graph.inputs.size() < 2 || graph.outputs.size() < 2) return;
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
    throw ConfigError(
        "--states: found ", in_quotes(text),
        ", expected auto or OUTPUT=INPUT, the output that the next run takes as input");
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
    placed[at].name.clear();
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
    const bool passed_through = state.output == state.input;
    return passed_through || stem_of(graph.value(state.output).name).empty();
  });
  if (states.empty()) return states;
  // A first input and a first output that share a name are data, unless others are left to be it.
  const auto is_left = [&](ValueId v) { return !is_end(states, v); };
  if (!std::ranges::any_of(graph.inputs, is_left) || !std::ranges::any_of(graph.outputs, is_left)) {
    std::erase(states, StatePair{graph.outputs[0], graph.inputs[0]});
  }
  return states;
}

Interface resolve(const InterfaceOptions& options, const Graph& graph, const Facts& facts) {
  return Resolving(graph, facts).run(options);
}

}  // namespace parsimony
