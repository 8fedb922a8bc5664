#include <cstdio>

#include "parsimony/configs/config.h"
#include "parsimony/configs/errors.h"
#include "parsimony/configs/request_impl.h"

namespace parsimony {

ConfigList from_shorthand(const Shorthand& shorthand) {
  if (!(shorthand.ratio >= 0 && shorthand.ratio < 1)) {
    char number[32];
    std::snprintf(number, sizeof number, "%g", shorthand.ratio);
    throw errors::out_of_range("--ratio", number, "[0, 1)");
  }
  if (shorthand.round_to < 1 || shorthand.round_to > kMaxRoundTo) {
    throw errors::out_of_range("--round-to", std::to_string(shorthand.round_to), "[1, 65536]");
  }
  GivenRequest given;
  const bool has_amount = shorthand.budget.find('=') != std::string::npos;
  if (has_amount && shorthand.ratio > 0) {
    throw ConfigError("--budget: an amount, as in ", in_quotes(shorthand.budget),
                      ", says how much to prune, and --ratio does too; give one");
  }
  given.request.ratio = shorthand.ratio;
  given.request.criterion = parse_criterion(shorthand.criterion, "--criterion");
  given.request.scope = parse_scope(shorthand.scope, "--scope");
  parse_budget(shorthand.budget, "--budget", given);
  given.request.round_to = shorthand.round_to;
  if (!shorthand.target.empty()) {
    given.request.target = parse_target(shorthand.target, "--target");
  }
  if (given.request.budget != Budget::kChannels) given.keys.insert("budget");
  if (given.request.round_to != 1 || given.request.target) given.keys.insert("round_to");
  if (given.request.ratio != 0) given.keys.insert("sparse_ratio");
  complete_request(given, "command line");

  ConfigEntry entry;
  entry.op_types = shorthand.op_types;
  entry.exclude_op_names = shorthand.exclude;
  entry.request = given.request;
  entry.place = "command line";
  entry.from_command_line = true;
  ConfigList config;
  config.entries = {std::move(entry)};
  config.force = shorthand.force;
  return config;
}

}  // namespace parsimony
