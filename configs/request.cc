#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <optional>

#include "parsimony/base/errors.h"
#include "parsimony/base/parse.h"
#include "parsimony/base/ranges.h"
#include "parsimony/base/words.h"
#include "parsimony/configs/config.h"
#include "parsimony/configs/keys_impl.h"
#include "parsimony/configs/request_impl.h"
#include "parsimony/pruners/criterion.h"
#include "parsimony/pruners/elements/rule.h"

namespace parsimony {

namespace {

/// Keys about channels: some criteria score single elements.
constexpr std::array<std::string_view, 6> kChannelKeys = {
    "budget",        "round_to", "keep_at_least", "internal_metric_block", "dependency_group_id",
    "equal_width_id"};
/// Criteria that a single element's magnitude stands for.
constexpr std::array<std::string_view, 3> kMagnitudes = {"l1", "l2", "level"};

constexpr WordTable<Scope, 4> kScopes = {{{"local", Scope::kLocal},
                                          {"global", Scope::kGlobal},
                                          {"isomorphic", Scope::kIsomorphic},
                                          {"outputs", Scope::kOutputs}}};

constexpr double kSlack = 1e-6;  // between a decimal ratio and a pattern's

/// Returns the names of a list as "obs, fisher", each once.
std::vector<std::string> names_in(std::string_view text) {
  std::vector<std::string> names;
  for (std::string_view name : split(text, ',')) {
    name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
    name = name.substr(0, name.find_last_not_of(' ') + 1);
    if (!contains(names, name)) names.emplace_back(name);
  }
  return names;
}

/// An object may have at most one of several synonymous keys.
std::optional<JsonReader> only_one(const JsonReader& object,
                                   std::initializer_list<std::string_view> keys) {
  std::optional<JsonReader> found;
  for (const std::string_view key : keys) {
    const auto next = object.find(key);
    if (found && next) {
      object.fail(in_quotes(found->own_key()) + " and " + in_quotes(key) +
                  " are two names for one thing; give one of them");
    }
    if (next) found = next;
  }
  return found;
}

/// An inner object's settings of how much to prune replace those of an outer one.
void forget_how_much(GivenRequest& given) {
  if (given.request.amount) {
    given.request.budget = Budget::kChannels;
    given.keys.erase("budget");
  }
  given.request.ratio = 0;
  given.request.amount.reset();
  given.request.also.clear();
  given.request.threshold.reset();
  given.aligned_with.clear();
  for (const char* key : {"sparse_ratio", "sparse_threshold", "align"}) given.keys.erase(key);
}

void check_scope(const JsonReader& object, std::string_view key, bool local) {
  const auto scope = object.find("scope");
  if (!scope) return;
  const auto agrees = [&](std::string_view name) { return (name == "local") == local; };
  if (std::ranges::all_of(names_in(scope->text()), agrees)) return;
  object.fail(in_quotes(key) + " and \"scope\": " + scope->json() + " contradict each other");
}

void read_ratios(const JsonReader& object, GivenRequest& given) {
  const auto ratio =
      only_one(object, {"sparse_ratio", "sparsity", "sparsity_per_layer", "total_sparsity"});
  const auto budget = object.find("budget");
  const bool amount = budget && budget->is_object();
  const auto threshold = object.find("sparse_threshold");
  const auto align = object.find("align");
  const int given_ways =
      int{ratio.has_value()} + int{amount} + int{threshold.has_value()} + int{align.has_value()};
  if (given_ways == 0) return;
  forget_how_much(given);
  if (given_ways > 1) {
    object.fail(
        "\"sparse_ratio\", \"sparse_threshold\", an amount in \"budget\" and \"align\" each say "
        "how much to prune; give one of them");
  }
  if (threshold) {
    given.request.threshold = threshold->number();
    given.keys.insert("sparse_threshold");
  }
  if (align) {
    given.aligned_with = read_align(*align);
    if (given.aligned_with.empty()) {
      align->fail("no \"module_name\": a weight can follow another layer's only");
    }
    given.keys.insert("align");
  }
  if (!ratio) return;
  given.request.ratio = ratio->number(kBelowOne);
  given.keys.insert("sparse_ratio");
  if (ratio->own_key() == "sparsity_per_layer") {
    check_scope(object, ratio->own_key(), true);
    given.request.scope = Scope::kLocal;
    given.request.scopes.clear();
  }
  if (ratio->own_key() != "total_sparsity") return;
  check_scope(object, ratio->own_key(), false);
  if (!object.has("scope")) {
    given.request.scope = Scope::kGlobal;
    given.request.scopes.clear();
  }
  if (!given.keys.contains("budget")) given.request.budget = Budget::kWeights;
}

void read_limits(const JsonReader& object, GivenRequest& given) {
  Request& request = given.request;
  const auto integer = [&](std::string_view key, int most, int& to) {
    const auto value = object.find(key);
    if (!value) return;
    given.keys.emplace(key);
    to = value->small(1, most);
  };
  if (const auto value = object.find("round_to"); value && value->is_text()) {
    given.keys.emplace("round_to");
    request.target = parse_target(value->text(), value->place());
  } else {
    integer("round_to", kMaxRoundTo, request.round_to);
  }
  integer("keep_at_least", std::numeric_limits<int>::max(), request.keep_at_least);
  integer("internal_metric_block", kMaxRoundTo, request.metric_blocks);
  if (const auto least = object.find("min_sparse_ratio")) {
    request.min_ratio = least->number(kBelowOne);
  }
  if (const auto most = only_one(object, {"max_sparse_ratio", "max_sparsity_per_layer"})) {
    request.max_ratio = most->number(kShare);
  }
}

/// An id is a number or a word; 3 and "3" are not the same.
std::string read_id(const JsonReader& value) {
  if (!value.is_integer() && !value.is_text()) value.expected("an integer or a string");
  return value.json();
}

void read_groups(const JsonReader& object, GivenRequest& given) {
  const auto read_tie = [&](const char* key, std::string& group) {
    const auto id = object.find(key);
    if (!id) return;
    given.keys.insert(key);
    group = read_id(*id);
  };
  read_tie("dependency_group_id", given.request.dependency_group);
  read_tie("equal_width_id", given.request.equal_width);
  const auto id = object.find("global_group_id");
  if (!id) return;
  check_scope(object, "global_group_id", false);
  given.keys.insert("global_group_id");
  given.request.global_group = read_id(*id);
  if (given.request.scope == Scope::kLocal) given.request.scope = Scope::kGlobal;
  if (contains(given.request.scopes, Scope::kGlobal)) {
    std::erase(given.request.scopes, Scope::kLocal);
  } else {
    std::ranges::replace(given.request.scopes, Scope::kLocal, Scope::kGlobal);
  }
  if (given.request.scopes.size() == 1) given.request.scopes.clear();
  if (!given.keys.contains("budget")) given.request.budget = Budget::kWeights;
}

/// Elements, not channels, are asked for: the criterion is one of those that score them.
void choose_element_criterion(GivenRequest& given, std::string_view base) {
  Request& request = given.request;
  const bool scores_elements = find_criterion(request.criterion).score == nullptr;
  if (scores_elements && given.block.empty()) return;
  const bool magnitude =
      std::find(kMagnitudes.begin(), kMagnitudes.end(), request.criterion) != kMagnitudes.end();
  if (!magnitude || !request.criteria.empty()) {
    throw ConfigError(
        base, ": criterion ", in_quotes(request.criterion),
        (scores_elements ? " scores single elements, but \"granularity\" asks for blocks"
                         : " scores whole channels, but \"granularity\" asks for elements"));
  }
  request.criterion = given.block.empty() ? "level" : given.block;
}

void check_elements(const GivenRequest& given, std::string_view base) {
  const auto refuse = [&](std::string_view key) {
    throw ConfigError(base, ": criterion ", in_quotes(given.request.criterion),
                      " zeroes single elements, but ", in_quotes(key), " is about channels");
  };
  const bool counts_elements = !given.request.amount && given.request.budget == Budget::kWeights;
  for (std::string_view key : kChannelKeys) {
    if (given.keys.contains(key) && !(key == "budget" && counts_elements)) refuse(key);
  }
  if (given.keys.contains("align")) refuse("align");
  if (given.keys.contains("channel_granularity")) refuse("granularity");
  if (given.request.scope == Scope::kIsomorphic) refuse("isomorphic");
  if (given.request.scope == Scope::kOutputs) refuse("outputs");
  if (given.request.scopes.empty()) return;
  throw ConfigError(base, ": criterion ", in_quotes(given.request.criterion),
                    " does not rank channels: name one \"scope\"");
}

/// Criteria with an N:M pattern imply the ratio.
void imply_ratio(const ElementRule& rule, GivenRequest& given, std::string_view base) {
  if (!rule.pattern.exists()) return;
  const double ratio = rule.pattern.ratio();
  if (given.keys.contains("sparse_ratio") && std::abs(given.request.ratio - ratio) > kSlack) {
    throw ConfigError(base, ": criterion ", in_quotes(given.request.criterion),
                      " removes a share of ", formatted("%g", ratio), ", but the ratio is ",
                      formatted("%g", given.request.ratio));
  }
  if (ratio < given.request.min_ratio || ratio > given.request.max_ratio) {
    throw ConfigError(base, ": criterion ", in_quotes(given.request.criterion),
                      " removes a share of ", formatted("%g", ratio),
                      ", which \"min_sparse_ratio\" and \"max_sparse_ratio\" do not allow");
  }
  given.request.ratio = ratio;
  given.keys.insert("sparse_ratio");
}

/// Checks that only magnitudes of elements get a threshold, or are ranked across layers.
void check_ranking(const ElementRule& rule, const GivenRequest& given, std::string_view base) {
  const std::string who = "criterion " + in_quotes(given.request.criterion);
  if (rule.method != ElementMethod::kLevel && given.request.scope != Scope::kLocal) {
    throw ConfigError(base, ": ", who,
                      " ranks elements within a matrix; \"scope\" must be \"local\"");
  }
  if (rule.method != ElementMethod::kLevel && given.request.threshold) {
    throw ConfigError(base, ": ", who,
                      " zeroes a share of the elements: give \"sparse_ratio\", no threshold");
  }
}

}  // namespace

bool GivenRequest::says_how_much() const {
  return keys.contains("sparse_ratio") || keys.contains("sparse_threshold") ||
         request.amount.has_value() || !aligned_with.empty();
}

JsonReader::Items list_of(const JsonReader& value, const std::string& what) {
  if (!value.is_list()) value.expected("a list of " + what);
  if (value.size() == 0) value.fail("the list is empty; omit the key to select every layer");
  return value.list();
}

std::string parse_criterion(const std::string& text, std::string_view place) {
  try {
    element_rule(text);
    return text;
  } catch (const ConfigError& error) {
    throw ConfigError(place, ": ", error.what());
  }
}

void read_criterion(std::string_view text, std::string_view place, Request& request) {
  request.criteria.clear();
  for (const std::string& name : names_in(text)) {
    request.criteria.push_back(parse_criterion(name, place));
  }
  request.criterion = request.criteria.front();
  if (request.criteria.size() == 1) {
    request.criteria.clear();
    return;
  }
  for (const std::string& name : request.criteria) {
    if (find_criterion(name).score != nullptr) continue;
    throw ConfigError(place, ": criterion ", in_quotes(name),
                      " does not rank channels, and cannot be compared with others");
  }
}

void read_scope(std::string_view text, std::string_view place, Request& request) {
  request.scopes.clear();
  for (const std::string& name : names_in(text)) {
    request.scopes.push_back(parse_word(name, place, kScopes));
  }
  request.scope = request.scopes.front();
  if (request.scopes.size() == 1) request.scopes.clear();
}

namespace {

constexpr WordTable<Target, 5> kTargetWords = {{{"generic", Target::kGeneric},
                                                {"x86-avx2", Target::kX86Avx2},
                                                {"x86-avx512", Target::kX86Avx512},
                                                {"arm-neon", Target::kArmNeon},
                                                {"cuda-tensorcore", Target::kCudaTensorCore}}};

}  // namespace

Target parse_target(std::string_view text, std::string_view place) {
  return parse_word(text, place, kTargetWords);
}

std::string_view name_of(Target target) { return word_of(target, kTargetWords); }

std::string_view name_of(Scope scope) { return word_of(scope, kScopes); }

Granularity parse_granularity(std::string_view text, std::string_view place) {
  constexpr WordTable<Granularity, 5> kWords = {{{"channel", Granularity::kChannel},
                                                 {"head", Granularity::kHead},
                                                 {"head_dim", Granularity::kHeadDim},
                                                 {"group", Granularity::kGroup},
                                                 {"expert", Granularity::kExpert}}};
  return parse_word(text, place, kWords);
}

void read_request(const JsonReader& object, GivenRequest& given, bool of_network) {
  Request& request = given.request;
  const auto find = [&](std::string_view key) {
    const auto value = object.find(key);
    if (value) given.keys.emplace(key);
    return value;
  };
  if (const auto value = find("criterion")) {
    read_criterion(value->text(), value->place(), request);
  }
  if (const auto value = find("scope")) {
    read_scope(value->text(), value->place(), request);
  }
  const auto budget = find("budget");
  read_ratios(object, given);
  if (budget) read_budget(*budget, given);
  const auto granularity = of_network ? std::nullopt : find("granularity");
  if (granularity) read_granularity(*granularity, given);
  if (const auto value = find("apply_method")) check_apply_method(*value);
  read_limits(object, given);
  read_groups(object, given);
}

void complete_request(GivenRequest& given, std::string_view base) {
  const Request& request = given.request;
  if (request.min_ratio > request.max_ratio) {
    throw ConfigError(base, ": \"min_sparse_ratio\" is above \"max_sparse_ratio\"");
  }
  const bool within_layers = request.scope == Scope::kLocal && request.scopes.empty();
  if (request.threshold && (!within_layers || given.keys.contains("budget"))) {
    throw ConfigError(base,
                      ": \"sparse_threshold\" holds for every score by itself: there is "
                      "no budget to share");
  }
  if (request.threshold && !request.criteria.empty()) {
    throw ConfigError(base, ": \"sparse_threshold\" is in the unit of one criterion: name one");
  }
  if (given.keys.contains("element_granularity")) choose_element_criterion(given, base);
  const auto rule = element_rule(request.criterion);
  if (!rule) return;
  check_elements(given, base);
  check_ranking(*rule, given, base);
  imply_ratio(*rule, given, base);
}

namespace {

constexpr WordTable<Budget, 5> kBudgets = {{{"channels", Budget::kChannels},
                                            {"params", Budget::kParams},
                                            {"macs", Budget::kMacs},
                                            {"latency_ms", Budget::kLatency},
                                            {"weights", Budget::kWeights}}};
/// The quantities of a whole network of which an amount can be asked.
constexpr WordTable<Budget, 6> kAmounts = {{{"params", Budget::kParams},
                                            {"macs", Budget::kMacs},
                                            {"latency_ms", Budget::kLatency},
                                            {"weights", Budget::kWeightBytes},
                                            {"file", Budget::kFile},
                                            {"peak_ram", Budget::kPeakRam}}};

constexpr std::string_view kExpected =
    "a number above 0, as 2e9, or a share of the whole, as \"50%\"";

/// K is that of memory.
double scale_of(char suffix) {
  switch (suffix) {
    case 'k':
      return 1e3;
    case 'K':
      return 1024;
    case 'M':
      return 1e6;
    case 'G':
      return 1e9;
    case '%':
      return 1e-2;
    default:
      return 0;
  }
}

/// "2e9", "1.5M" or "50%".
Limit parse_limit(Budget budget, std::string_view text, std::string_view place) {
  Limit limit{.budget = budget};
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const bool has_suffix = error == std::errc() && rest + 1 == end && scale_of(*rest) > 0;
  if (error != std::errc() || (rest != end && !has_suffix)) {
    throw ConfigError(place, ": found ", in_quotes(text), ", expected ", kExpected);
  }
  if (has_suffix && *rest == '%') {
    const std::optional<double> removed = removed_beside(text);
    if (!removed) throw errors::out_of_range(place, text, "(0%, 100%]");
    limit.ratio = *removed;
    return limit;
  }
  limit.amount = has_suffix ? number * scale_of(*rest) : number;
  if (!(*limit.amount > 0) || !std::isfinite(*limit.amount)) {
    throw errors::out_of_range(place, text, "(0, ∞)");
  }
  return limit;
}

/// The first stands in the place of the ratio.
void set_limits(std::vector<Limit> limits, std::string_view place, GivenRequest& given) {
  for (size_t i = 0; i < limits.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (limits[i].budget != limits[j].budget) continue;
      throw ConfigError(place, ": two amounts of ", name_of(limits[i].budget));
    }
  }
  // Milliseconds are measured, within all other limits.
  std::stable_partition(limits.begin(), limits.end(),
                        [](const Limit& limit) { return limit.budget == Budget::kLatency; });
  Request& request = given.request;
  request.budget = limits.front().budget;
  request.amount = limits.front().amount;
  if (!request.amount) {
    request.ratio = limits.front().ratio;
    given.keys.insert("sparse_ratio");
  }
  request.also.assign(limits.begin() + 1, limits.end());
}

Limit read_limit(const JsonReader& amount, std::string_view place) {
  const Budget budget = parse_word(amount.own_key(), place, kAmounts);
  if (amount.is_text()) return parse_limit(budget, amount.text(), amount.place());
  if (!amount.is_number()) amount.expected(kExpected);
  return {.budget = budget, .amount = amount.number(kPositive)};
}

}  // namespace

std::string_view name_of(Budget budget) {
  return budget < Budget::kWeightBytes ? word_of(budget, kBudgets) : word_of(budget, kAmounts);
}

std::optional<double> removed_beside(std::string_view percentage) {
  percentage.remove_suffix(1);
  // With more digits than a double's: 30 % is removed beside 70 %, not 30.000000000000004 %.
  const std::optional<long double> number = number_of<long double>(percentage);
  if (!number || !(*number > 0 && *number <= 100)) return std::nullopt;
  return std::min(static_cast<double>((100 - *number) / 100), std::nextafter(1.0, 0.0));
}

void read_budget(const JsonReader& value, GivenRequest& given) {
  if (!value.is_object()) {
    if (!value.is_text()) value.expected("a string, or an object with one amount");
    given.request.budget = parse_word(value.text(), value.place(), kBudgets);
    return;
  }
  if (value.size() == 0) value.fail("found no amount, expected at least one");
  std::vector<Limit> limits;
  for (const JsonReader amount : value.members()) {
    limits.push_back(read_limit(amount, value.place()));
  }
  set_limits(std::move(limits), value.place(), given);
}

void parse_budget(std::string_view text, std::string_view place, GivenRequest& given) {
  if (text.find('=') == std::string_view::npos) {
    given.request.budget = parse_word(text, place, kBudgets);
    return;
  }
  std::vector<Limit> limits;
  while (true) {
    const size_t end = text.find(',');
    const std::string_view one = text.substr(0, end);
    const size_t equals = std::min(one.find('='), one.size());
    const Budget budget = parse_word(one.substr(0, equals), place, kAmounts);
    limits.push_back(parse_limit(budget, one.substr(std::min(equals + 1, one.size())), place));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  set_limits(std::move(limits), place, given);
}

}  // namespace parsimony
