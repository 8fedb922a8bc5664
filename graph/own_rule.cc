#include "parsimony/graph/own_rule.h"

#include <algorithm>
#include <deque>
#include <stdexcept>
#include <string>

#include "parsimony/graph/errors.h"

namespace parsimony {
namespace {

/// A rule together with what it points into.
struct OwnRule {
  std::string op, line, domain;
  Rule rule;
  notation::Line compiled;
};

std::deque<OwnRule>& own_rules() {
  static std::deque<OwnRule> rules;
  return rules;
}

}  // namespace

void add_rule(const Rule& rule) {
  if (find_rule(rule.domain, rule.op) != nullptr)
    throw errors::known_operator(rule.domain, rule.op);
  notation::Line compiled;
  try {
    if (!rule.line.empty()) compiled = notation::parse(rule.line);
  } catch (const std::invalid_argument& error) {
    throw errors::bad_rule(rule.op, error.what());
  }
  OwnRule& own =
      own_rules().emplace_back(OwnRule{std::string(rule.op), std::string(rule.line),
                                       std::string(rule.domain), rule, std::move(compiled)});
  own.rule.op = own.op;
  own.rule.line = own.line;
  own.rule.domain = own.domain;
}

const Rule* find_own_rule(std::string_view domain, std::string_view op) {
  const auto& rules = own_rules();
  const auto found = std::find_if(rules.begin(), rules.end(), [&](const OwnRule& own) {
    return own.domain == domain && own.op == op;
  });
  return found == rules.end() ? nullptr : &found->rule;
}

const notation::Line* compiled_own(const Rule& rule) {
  for (const OwnRule& own : own_rules()) {
    if (&own.rule == &rule) return own.line.empty() ? nullptr : &own.compiled;
  }
  return nullptr;
}

}  // namespace parsimony
