// What is counted, and how much of it may remain.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "parsimony/configs/request_impl.h"
#include "parsimony/configs/words_impl.h"

namespace parsimony {

namespace {

constexpr WordTable<Budget, 5> kBudgets = {{{"channels", Budget::kChannels},
                                            {"params", Budget::kParams},
                                            {"macs", Budget::kMacs},
                                            {"latency_ms", Budget::kLatency},
                                            {"weights", Budget::kWeights}}};
/// What a whole network has so much of.
constexpr WordTable<Budget, 3> kAmounts = {
    {{"params", Budget::kParams}, {"macs", Budget::kMacs}, {"latency_ms", Budget::kLatency}}};

constexpr std::string_view kWanted =
    "a number above 0, as 2e9, or a share of the whole, as \"50%\"";

double scale_of(char suffix) {
  switch (suffix) {
    case 'k':
      return 1e3;
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

void set_amount(double amount, std::string_view place, std::string_view text, GivenRequest& given) {
  if (!(amount > 0) || !std::isfinite(amount)) throw errors::out_of_range(place, text, "(0, ∞)");
  given.request.amount = amount;
}

/// "2e9", "1.5M" or "50%".
void parse_amount(std::string_view text, std::string_view place, GivenRequest& given) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const bool has_suffix = error == std::errc() && rest + 1 == end && scale_of(*rest) > 0;
  if (error != std::errc() || (rest != end && !has_suffix)) {
    throw errors::wrong_type(place, '"' + std::string(text) + '"', kWanted);
  }
  if (!has_suffix || *rest != '%') {
    return set_amount(has_suffix ? number * scale_of(*rest) : number, place, text, given);
  }
  if (!(number > 0 && number <= 100)) throw errors::out_of_range(place, text, "(0%, 100%]");
  given.request.ratio = std::min(1 - number / 100, std::nextafter(1.0, 0.0));
  given.keys.insert("sparse_ratio");
}

}  // namespace

std::string_view name_of(Budget budget) { return word_of(budget, kBudgets); }

void read_budget(const JsonReader& value, GivenRequest& given) {
  if (!value.is_object()) {
    if (!value.is_text()) value.wanted("a string, or an object with one amount");
    given.request.budget = parse_word(value.text(), value.place(), kBudgets);
    return;
  }
  if (value.size() != 1) {
    value.fail("found " + std::to_string(value.size()) +
               " amounts, wanted one: a network is fitted to one");
  }
  const JsonReader amount = *value.members().begin();
  given.request.budget = parse_word(amount.own_key(), value.place(), kAmounts);
  if (amount.is_text()) return parse_amount(amount.text(), amount.place(), given);
  if (!amount.is_number()) amount.wanted(kWanted);
  given.request.amount = amount.number(kPositive);
}

void parse_budget(std::string_view text, std::string_view place, GivenRequest& given) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    given.request.budget = parse_word(text, place, kBudgets);
    return;
  }
  given.request.budget = parse_word(text.substr(0, equals), place, kAmounts);
  parse_amount(text.substr(equals + 1), place, given);
}

}  // namespace parsimony
