#include "parsimony/report/errors.h"

#include "parsimony/report/text.h"

namespace parsimony::errors {
namespace {

constexpr size_t kMostNamed = 8;

}  // namespace

ConfigError report_unknown_node(std::string_view name, std::span<const std::string> known) {
  return ConfigError("no node or weight of the network is called \"" + std::string(name) + "\"." +
                     did_you_mean(name, known));
}

ConfigError report_unknown_group(std::string_view id, std::span<const std::string> known) {
  const std::string text = "there is no group \"" + std::string(id) + "\"";
  if (known.empty()) return ConfigError(text + ": no axis of this network can shrink");
  return ConfigError(text + "; there are " + listed({known.begin(), known.end()}, kMostNamed));
}

}  // namespace parsimony::errors
