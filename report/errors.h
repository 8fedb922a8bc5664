// Error texts of report/.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "parsimony/base/errors.h"

namespace parsimony::errors {

ConfigError report_unknown_node(std::string_view name, std::span<const std::string> known);
ConfigError report_unknown_group(std::string_view id, std::span<const std::string> known);

UnsupportedError ledger_version(std::string_view place, int64_t found, int64_t wanted);
/// Two lines with the same key that differ.
ModelError ledger_conflict(std::string_view place, std::string_view other, std::string_view key);
ConfigError ledger_config();
IoError no_ledger(std::string_view folder);
ModelError no_points();
ModelError no_report(std::string_view place);

}  // namespace parsimony::errors
