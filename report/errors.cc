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

UnsupportedError ledger_version(std::string_view place, int64_t found, int64_t wanted) {
  return UnsupportedError(std::string(place) + ": a ledger line of version " +
                          std::to_string(found) + ", but this Parsimony reads version " +
                          std::to_string(wanted));
}

ModelError ledger_conflict(std::string_view place, std::string_view other, std::string_view key) {
  return ModelError(std::string(place) + " and " + std::string(other) +
                    " tell the same point differently (key " + std::string(key) +
                    "); remove the line that is wrong");
}

ConfigError ledger_config() { return ConfigError("a ledger point's config is no JSON object"); }

IoError no_ledger(std::string_view folder) {
  return IoError(std::string(folder) +
                 ": has no ledger.jsonl; give the folder that `parsimony sweep --out` names");
}

ModelError no_report(std::string_view place) {
  return ModelError(std::string(place) +
                    ": wanted the JSON report of prune (--report), or of a sweep");
}

ModelError no_points() {
  return ModelError("the ledger holds no finished point yet; there is nothing to report");
}

}  // namespace parsimony::errors
