#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "parsimony/configs/config.h"
#include "parsimony/configs/errors.h"
#include "parsimony/configs/keys_impl.h"
#include "parsimony/configs/request_impl.h"
#include "parsimony/configs/words_impl.h"
#include "parsimony/pruners/criterion.h"
#include "parsimony/pruners/elements/rule.h"

namespace parsimony {

namespace {

using Json = nlohmann::json;

/// Keys about channels: some criteria judge single elements.
constexpr std::array<std::string_view, 5> kChannelKeys = {
    "budget", "round_to", "keep_at_least", "internal_metric_block", "dependency_group_id"};
/// Criteria that a single element's magnitude stands for.
constexpr std::array<std::string_view, 3> kMagnitudes = {"l1", "l2", "level"};

std::string in_quotes(std::string_view text) { return '"' + std::string(text) + '"'; }

constexpr double kSlack = 1e-6;  // between a ratio as people write it and a pattern's

std::string in_short(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

/// Keys of one object of which at most one may stand there.
std::string_view only_one(const Json& object, std::string_view base,
                          std::initializer_list<std::string_view> keys, std::string_view why) {
  std::string_view found;
  for (std::string_view key : keys) {
    if (!object.contains(key)) continue;
    if (!found.empty()) {
      throw errors::contradiction(base, in_quotes(found) + " and " + in_quotes(key) + ' ' +
                                            std::string(why) + "; give one of them");
    }
    found = key;
  }
  return found;
}

/// What a farther object said of how much goes does not count beside what a nearer one says.
void forget_how_much(GivenRequest& given) {
  if (given.request.amount) {
    given.request.budget = Budget::kChannels;
    given.keys.erase("budget");
  }
  given.request.ratio = 0;
  given.request.amount.reset();
  given.request.threshold.reset();
  given.aligned_with.clear();
  for (const char* key : {"sparse_ratio", "sparse_threshold", "align"}) given.keys.erase(key);
}

void check_scope(const Json& object, std::string_view base, std::string_view key, bool local) {
  if (object.contains("scope") && (object.at("scope") == "local") != local) {
    throw errors::contradiction(base, in_quotes(key) + " and \"scope\": " +
                                          object.at("scope").dump() + " contradict each other");
  }
}

void read_ratios(const Json& object, std::string_view base, GivenRequest& given) {
  const std::string_view ratio =
      only_one(object, base, {"sparse_ratio", "sparsity", "sparsity_per_layer", "total_sparsity"},
               "are two names for one thing");
  const bool amount = object.contains("budget") && object.at("budget").is_object();
  const bool threshold = object.contains("sparse_threshold");
  const bool align = object.contains("align");
  if (ratio.empty() && !amount && !threshold && !align) return;
  forget_how_much(given);
  if (int{!ratio.empty()} + int{amount} + int{threshold} + int{align} > 1) {
    throw errors::contradiction(base,
                                "\"sparse_ratio\", \"sparse_threshold\", an amount in \"budget\" "
                                "and \"align\" each say how much goes; give one of them");
  }
  if (threshold) {
    const std::string place = place_of(base, "sparse_threshold");
    const Json& value = object.at("sparse_threshold");
    if (!value.is_number()) throw errors::wrong_type(place, type_name(value), "number");
    given.request.threshold = value.get<double>();
    given.keys.insert("sparse_threshold");
  }
  if (align) {
    given.aligned_with = read_align(object.at("align"), place_of(base, "align"));
    if (given.aligned_with.empty()) {
      throw errors::contradiction(place_of(base, "align"),
                                  "no \"module_name\": a weight can follow another layer's only");
    }
    given.keys.insert("align");
  }
  if (ratio.empty()) return;
  given.request.ratio = read_ratio(object.at(ratio), place_of(base, ratio), false);
  given.keys.insert("sparse_ratio");
  if (ratio == "sparsity_per_layer") {
    check_scope(object, base, ratio, true);
    given.request.scope = Scope::kLocal;
  }
  if (ratio != "total_sparsity") return;
  check_scope(object, base, ratio, false);
  if (!object.contains("scope")) given.request.scope = Scope::kGlobal;
  if (!given.keys.contains("budget")) given.request.budget = Budget::kWeights;
}

void read_limits(const Json& object, std::string_view base, GivenRequest& given) {
  Request& request = given.request;
  const auto at = [&](std::string_view key) { return place_of(base, key); };
  const auto integer = [&](std::string_view key, int most, int& to) {
    if (!object.contains(key)) return;
    given.keys.emplace(key);
    to = read_int(object.at(key), at(key), 1, most);
  };
  integer("round_to", kMaxRoundTo, request.round_to);
  integer("keep_at_least", std::numeric_limits<int>::max(), request.keep_at_least);
  integer("internal_metric_block", kMaxRoundTo, request.metric_blocks);
  if (object.contains("min_sparse_ratio")) {
    request.min_ratio = read_ratio(object.at("min_sparse_ratio"), at("min_sparse_ratio"), false);
  }
  const std::string_view most = only_one(
      object, base, {"max_sparse_ratio", "max_sparsity_per_layer"}, "are two names for one thing");
  if (!most.empty()) request.max_ratio = read_ratio(object.at(most), at(most), true);
}

/// An id is a number or a word; 3 and "3" are not the same.
std::string read_id(const Json& value, std::string_view place) {
  if (value.is_number_integer() || value.is_string()) return value.dump();
  throw errors::wrong_type(place, type_name(value), "integer or string");
}

void read_groups(const Json& object, std::string_view base, GivenRequest& given) {
  if (object.contains("dependency_group_id")) {
    given.keys.insert("dependency_group_id");
    given.request.dependency_group =
        read_id(object.at("dependency_group_id"), place_of(base, "dependency_group_id"));
  }
  if (!object.contains("global_group_id")) return;
  check_scope(object, base, "global_group_id", false);
  given.keys.insert("global_group_id");
  given.request.global_group =
      read_id(object.at("global_group_id"), place_of(base, "global_group_id"));
  if (given.request.scope == Scope::kLocal) given.request.scope = Scope::kGlobal;
  if (!given.keys.contains("budget")) given.request.budget = Budget::kWeights;
}

/// Elements, not channels, are asked for: the criterion is one of those that judge them.
void choose_element_criterion(GivenRequest& given, std::string_view base) {
  Request& request = given.request;
  const bool judges_elements = find_criterion(request.criterion).score == nullptr;
  if (judges_elements && given.block.empty()) return;
  if (std::find(kMagnitudes.begin(), kMagnitudes.end(), request.criterion) == kMagnitudes.end()) {
    throw errors::contradiction(base, "criterion " + in_quotes(request.criterion) +
                                          (judges_elements ? " judges single elements, but "
                                                             "\"granularity\" asks for blocks"
                                                           : " judges whole channels, but "
                                                             "\"granularity\" asks for elements"));
  }
  request.criterion = given.block.empty() ? "level" : given.block;
}

void check_elements(const GivenRequest& given, std::string_view base) {
  const auto refuse = [&](std::string_view key) {
    throw errors::contradiction(base, "criterion " + in_quotes(given.request.criterion) +
                                          " zeroes single elements, but " + in_quotes(key) +
                                          " is about channels");
  };
  for (std::string_view key : kChannelKeys) {
    if (given.keys.contains(key)) refuse(key);
  }
  if (given.keys.contains("align")) refuse("align");
  if (given.keys.contains("channel_granularity")) refuse("granularity");
  if (given.request.scope == Scope::kIsomorphic) refuse("isomorphic");
  if (given.request.scope == Scope::kOutputs) refuse("outputs");
}

/// Criteria with an N:M pattern say themselves how much goes.
void imply_ratio(const ElementRule& rule, GivenRequest& given, std::string_view base) {
  if (!rule.pattern.exists()) return;
  const double ratio = rule.pattern.ratio();
  if (given.keys.contains("sparse_ratio") && std::abs(given.request.ratio - ratio) > kSlack) {
    throw errors::contradiction(base, "criterion " + in_quotes(given.request.criterion) +
                                          " removes a share of " + in_short(ratio) +
                                          ", but the ratio is " + in_short(given.request.ratio));
  }
  if (ratio < given.request.min_ratio || ratio > given.request.max_ratio) {
    throw errors::contradiction(base, "criterion " + in_quotes(given.request.criterion) +
                                          " removes a share of " + in_short(ratio) +
                                          ", which \"min_sparse_ratio\" and \"max_sparse_ratio\" "
                                          "do not allow");
  }
  given.request.ratio = ratio;
  given.keys.insert("sparse_ratio");
}

/// Of elements only their magnitude has a threshold, or a rank among those of other layers.
void check_ranking(const ElementRule& rule, const GivenRequest& given, std::string_view base) {
  const std::string who = "criterion " + in_quotes(given.request.criterion);
  if (rule.method != ElementMethod::kLevel && given.request.scope != Scope::kLocal) {
    throw errors::contradiction(
        base, who + " ranks elements within a matrix; \"scope\" must be \"local\"");
  }
  if (rule.method != ElementMethod::kLevel && given.request.threshold) {
    throw errors::contradiction(
        base, who + " zeroes a share of the elements: give \"sparse_ratio\", no threshold");
  }
}

}  // namespace

bool GivenRequest::says_how_much() const {
  return keys.contains("sparse_ratio") || keys.contains("sparse_threshold") ||
         request.amount.has_value() || !aligned_with.empty();
}

std::string place_of(std::string_view base, std::string_view key) {
  const size_t colon = base.rfind(": ");
  const bool inner =
      base.find(']', colon == std::string_view::npos ? 0 : colon) != std::string_view::npos;
  return std::string(base) + (inner ? "." : ": ") + std::string(key);
}

std::string parse_criterion(const std::string& text, std::string_view place) {
  try {
    element_rule(text);
    return text;
  } catch (const ConfigError& error) {
    throw errors::contradiction(place, error.what());
  }
}

Scope parse_scope(std::string_view text, std::string_view place) {
  constexpr WordTable<Scope, 4> kWords = {{{"local", Scope::kLocal},
                                           {"global", Scope::kGlobal},
                                           {"isomorphic", Scope::kIsomorphic},
                                           {"outputs", Scope::kOutputs}}};
  return parse_word(text, place, kWords);
}

Granularity parse_granularity(std::string_view text, std::string_view place) {
  constexpr WordTable<Granularity, 4> kWords = {{{"channel", Granularity::kChannel},
                                                 {"head", Granularity::kHead},
                                                 {"head_dim", Granularity::kHeadDim},
                                                 {"group", Granularity::kGroup}}};
  return parse_word(text, place, kWords);
}

void read_request(const Json& object, std::string_view base, GivenRequest& given) {
  Request& request = given.request;
  const auto find = [&](std::string_view key) -> const Json* {
    if (!object.contains(key)) return nullptr;
    given.keys.emplace(key);
    return &object.at(key);
  };
  const auto at = [&](std::string_view key) { return place_of(base, key); };
  if (const Json* value = find("criterion")) {
    request.criterion = parse_criterion(read_string(*value, at("criterion")), at("criterion"));
  }
  if (const Json* value = find("scope")) {
    request.scope = parse_scope(read_string(*value, at("scope")), at("scope"));
  }
  if (object.contains("budget")) given.keys.emplace("budget");
  read_ratios(object, base, given);
  if (const Json* value = find("budget")) read_budget(*value, at("budget"), given);
  if (const Json* value = find("granularity")) {
    read_granularity(*value, at("granularity"), given);
  }
  if (const Json* value = find("apply_method")) check_apply_method(*value, at("apply_method"));
  read_limits(object, base, given);
  read_groups(object, base, given);
}

void complete_request(GivenRequest& given, std::string_view base) {
  const Request& request = given.request;
  if (request.min_ratio > request.max_ratio) {
    throw errors::contradiction(base, "\"min_sparse_ratio\" is above \"max_sparse_ratio\"");
  }
  if (request.threshold && (request.scope != Scope::kLocal || given.keys.contains("budget"))) {
    throw errors::contradiction(base,
                                "\"sparse_threshold\" holds for every score by itself: there is "
                                "no budget to share");
  }
  if (given.keys.contains("element_granularity")) choose_element_criterion(given, base);
  const auto rule = element_rule(request.criterion);
  if (!rule) return;
  check_elements(given, base);
  check_ranking(*rule, given, base);
  imply_ratio(*rule, given, base);
}

}  // namespace parsimony
