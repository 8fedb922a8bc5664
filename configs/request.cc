#include <array>

#include "parsimony/configs/config.h"
#include "parsimony/configs/errors.h"
#include "parsimony/configs/request_impl.h"
#include "parsimony/pruners/criterion.h"

namespace parsimony {

namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 3> kRatioKeys = {"sparse_ratio", "sparsity",
                                                        "sparsity_per_layer"};
/// Keys about channels: "level" judges single elements.
constexpr std::array<std::string_view, 4> kChannelKeys = {"budget", "round_to", "min_sparse_ratio",
                                                          "max_sparse_ratio"};

template <typename Value, size_t N>
Value parse_word(std::string_view text, std::string_view place,
                 const std::array<std::pair<std::string_view, Value>, N>& words) {
  std::vector<std::string> known;
  for (const auto& [word, value] : words) {
    if (word == text) return value;
    known.emplace_back(word);
  }
  throw errors::unknown_word(place, text, known);
}

void read_ratio_key(const Json& object, std::string_view base, GivenRequest& given) {
  std::string_view found;
  for (std::string_view key : kRatioKeys) {
    if (!object.contains(key)) continue;
    if (!found.empty()) {
      throw errors::contradiction(base, '"' + std::string(found) + "\" and \"" + std::string(key) +
                                            "\" are two names for one thing; give one of them");
    }
    found = key;
    given.request.ratio = read_ratio(object.at(key), place_of(base, key), false);
    given.keys.insert("sparse_ratio");
  }
  if (found != "sparsity_per_layer") return;
  if (object.contains("scope") && object.at("scope") == "global") {
    throw errors::contradiction(base,
                                "\"sparsity_per_layer\" and \"scope\": \"global\" contradict "
                                "each other");
  }
  given.request.scope = Scope::kLocal;
}

}  // namespace

bool GivenRequest::has_ratio() const { return keys.contains("sparse_ratio"); }

std::string place_of(std::string_view base, std::string_view key) {
  const std::string separator = base.ends_with(']') ? "." : ": ";
  return std::string(base) + separator + std::string(key);
}

std::string parse_criterion(const std::string& text, std::string_view place) {
  try {
    return std::string(find_criterion(text).name);
  } catch (const ConfigError& error) {
    throw errors::contradiction(place, error.what());
  }
}

Scope parse_scope(std::string_view text, std::string_view place) {
  if (text == "isomorphic") throw errors::later_value(place, "\"isomorphic\"");
  constexpr std::array<std::pair<std::string_view, Scope>, 2> kWords = {
      {{"local", Scope::kLocal}, {"global", Scope::kGlobal}}};
  return parse_word(text, place, kWords);
}

Budget parse_budget(std::string_view text, std::string_view place) {
  if (text == "latency_ms") throw errors::later_value(place, "\"latency_ms\"");
  constexpr std::array<std::pair<std::string_view, Budget>, 3> kWords = {
      {{"channels", Budget::kChannels}, {"params", Budget::kParams}, {"macs", Budget::kMacs}}};
  return parse_word(text, place, kWords);
}

Granularity parse_granularity(std::string_view text, std::string_view place) {
  constexpr std::array<std::pair<std::string_view, Granularity>, 4> kWords = {
      {{"channel", Granularity::kChannel},
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
  if (const Json* value = find("budget")) {
    if (value->is_object()) throw errors::later_value(at("budget"), "a budget with its amount");
    request.budget = parse_budget(read_string(*value, at("budget")), at("budget"));
  }
  if (const Json* value = find("round_to")) {
    request.round_to = read_int(*value, at("round_to"), 1, kMaxRoundTo);
  }
  if (const Json* value = find("min_sparse_ratio")) {
    request.min_ratio = read_ratio(*value, at("min_sparse_ratio"), false);
  }
  if (const Json* value = find("max_sparse_ratio")) {
    request.max_ratio = read_ratio(*value, at("max_sparse_ratio"), true);
  }
  read_ratio_key(object, base, given);
}

void check_request(const GivenRequest& given, std::string_view base) {
  if (given.request.min_ratio > given.request.max_ratio) {
    throw errors::contradiction(base, "\"min_sparse_ratio\" is above \"max_sparse_ratio\"");
  }
  if (find_criterion(given.request.criterion).score != nullptr) return;
  for (std::string_view key : kChannelKeys) {
    if (!given.keys.contains(key)) continue;
    throw errors::contradiction(base, "criterion \"" + given.request.criterion +
                                          "\" zeroes single elements, but \"" + std::string(key) +
                                          "\" is about channels");
  }
}

}  // namespace parsimony
