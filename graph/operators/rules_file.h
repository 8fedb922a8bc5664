// Files of rules: rows of the operator table that a user writes as text. docs/guide/rules.md
// describes the format.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "parsimony/graph/operators/schema.h"

namespace parsimony {

/// A row that owns its texts.
struct OperatorRule {
  std::string domain, op, line, layer, scale, bits, bits_of_data;
  OpSchema schema = {};  ///< all but the texts

  /// The whole row, valid as long as the rule.
  OpSchema row() const;
};

/// The rules in `text`. `file_name` stands in messages.
/// @throws ConfigError with line and column if something is malformed, and for an operator that has
/// a row already
std::vector<OperatorRule> parse_rules(std::string_view text, const std::string& file_name);

/// Adds the rules of a file to the table, all or none; see `add_operator`.
/// @throws IoError; ConfigError with line and column
void add_rules(const std::string& path);

}  // namespace parsimony
