#include "parsimony/configs/loss_spec.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "parsimony/base/errors.h"
#include "parsimony/base/parse.h"

namespace parsimony {
namespace {

/// Of --loss.
ConfigError bad_loss(std::string_view text, std::span<const std::string_view> known) {
  return ConfigError(
      "loss: found ", in_quotes(text), ", wanted ", one_of(known),
      "; with options behind it (huber:delta=0.5, cross_entropy:ignore=255, ctc:blank=0, "
      "weight=2), or for each output its own: boxes=huber,scores=cross_entropy");
}

constexpr auto kLossNames =
    std::to_array<std::string_view>({"cross_entropy", "bce", "mse", "l1", "huber", "kl", "ctc"});

std::optional<LossKind> loss_kind_of(std::string_view name) {
  const auto found = std::ranges::find(kLossNames, name);
  if (found == kLossNames.end()) return {};
  return static_cast<LossKind>(found - kLossNames.begin());
}

/// One "key=value" behind the kind; false for an unknown one, or a value that does not fit.
bool read_loss_option(std::string_view text, LossTerm& term) {
  const size_t at = std::min(text.find('='), text.size());
  const std::string_view key = text.substr(0, at);
  const std::string_view value = text.substr(std::min(at + 1, text.size()));
  const auto number = number_of<double>(value);
  const auto whole = number_of<int64_t>(value);
  const bool positive = number && std::isfinite(*number) && *number > 0;
  if (key == "weight" && positive) {
    term.weight = *number;
  } else if (key == "delta" && positive && term.kind == LossKind::kHuber) {
    term.delta = *number;
  } else if (key == "ignore" && whole && term.kind == LossKind::kCrossEntropy) {
    term.ignore = *whole;
  } else if (key == "blank" && whole.value_or(-1) >= 0 && term.kind == LossKind::kCtc) {
    term.blank = *whole;
  } else {
    return false;
  }
  return true;
}

LossTerm parse_loss(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, ':');
  // Names of outputs may have colons themselves: the kind is the last part that is one.
  for (size_t i = parts.size(); i-- > 0;) {
    const size_t equals = parts[i].rfind('=');
    const bool named = equals != std::string_view::npos;
    const auto kind = loss_kind_of(named ? parts[i].substr(equals + 1) : parts[i]);
    if (!kind || (i > 0 && !named)) continue;
    LossTerm term;
    term.kind = *kind;
    if (named) term.output = text.substr(0, parts[i].data() + equals - text.data());
    const bool all_fit =
        std::all_of(parts.begin() + static_cast<std::ptrdiff_t>(i) + 1, parts.end(),
                    [&](std::string_view option) { return read_loss_option(option, term); });
    if (!all_fit || (named && term.output.empty())) break;
    return term;
  }
  throw bad_loss(text, kLossNames);
}

}  // namespace

std::vector<LossTerm> parse_losses(std::string_view text) {
  std::vector<LossTerm> terms;
  for (const std::string_view one : split(text, ',')) terms.push_back(parse_loss(one));
  for (size_t i = 0; i < terms.size(); ++i) {
    const auto same = [&](const LossTerm& term) { return term.output == terms[i].output; };
    const bool alone = terms.size() == 1 || !terms[i].output.empty();
    if (!alone || std::ranges::count_if(terms, same) > 1) throw bad_loss(text, kLossNames);
  }
  return terms;
}

std::string_view name_of(LossKind kind) { return kLossNames[static_cast<size_t>(kind)]; }

}  // namespace parsimony
