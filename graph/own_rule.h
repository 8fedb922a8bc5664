// Rules for operators that only a user's networks have.
#pragma once

#include <string_view>

#include "parsimony/graph/rule.h"

namespace parsimony {

/// Teaches the analysis an operator, one line in the notation of graph/notation.h; for an irregular
/// one the functions of Rule. It counts in every network that is read afterwards. An operator that
/// the table has already cannot be taught otherwise.
///
///     add_rule({.op = "FusedGelu", .line = "x[..s] -> y[..s]", .effect = Effect::kZero,
///               .domain = "com.example"});
///
/// The texts are copied. Not to be called while another thread analyses a network.
/// @throws ConfigError if the line is not well formed, or the operator is known
void add_rule(const Rule& rule);

/// As find_rule, among the rules that were added.
const Rule* find_own_rule(std::string_view domain, std::string_view op);

/// The compiled line of an added rule; null if it has none, or was not added.
const notation::Line* compiled_own(const Rule& rule);

}  // namespace parsimony
