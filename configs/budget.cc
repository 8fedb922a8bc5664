// What is counted, and how much of it may remain.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "parsimony/configs/keys_impl.h"
#include "parsimony/configs/request_impl.h"

namespace parsimony {

namespace {

constexpr WordTable<Budget, 5> kBudgets = {{{"channels", Budget::kChannels},
                                            {"params", Budget::kParams},
                                            {"macs", Budget::kMacs},
                                            {"latency_ms", Budget::kLatency},
                                            {"weights", Budget::kWeights}}};
/// What a whole network has so much of.
constexpr WordTable<Budget, 6> kAmounts = {{{"params", Budget::kParams},
                                            {"macs", Budget::kMacs},
                                            {"latency_ms", Budget::kLatency},
                                            {"weights", Budget::kWeightBytes},
                                            {"file", Budget::kFile},
                                            {"peak_ram", Budget::kPeakRam}}};

constexpr std::string_view kWanted =
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
    throw ConfigError(place, ": found ", in_quotes(text), ", wanted ", kWanted);
  }
  if (has_suffix && *rest == '%') {
    if (!(number > 0 && number <= 100)) throw errors::out_of_range(place, text, "(0%, 100%]");
    limit.ratio = std::min(1 - number / 100, std::nextafter(1.0, 0.0));
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
  std::ranges::stable_partition(
      limits, [](const Limit& limit) { return limit.budget == Budget::kLatency; });
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
  if (!amount.is_number()) amount.wanted(kWanted);
  return {.budget = budget, .amount = amount.number(kPositive)};
}

}  // namespace

std::string_view name_of(Budget budget) {
  return budget < Budget::kWeightBytes ? word_of(budget, kBudgets) : word_of(budget, kAmounts);
}

void read_budget(const JsonReader& value, GivenRequest& given) {
  if (!value.is_object()) {
    if (!value.is_text()) value.wanted("a string, or an object with one amount");
    given.request.budget = parse_word(value.text(), value.place(), kBudgets);
    return;
  }
  if (value.size() == 0) value.fail("found no amount, wanted at least one");
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
