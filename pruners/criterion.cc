#include "parsimony/pruners/criterion.h"

#include <algorithm>
#include <array>

#include "parsimony/pruners/criteria/criteria.h"
#include "parsimony/pruners/errors.h"

namespace parsimony {

namespace {

constexpr std::array<Criterion, 4> kTable = {{
    {"l1", criteria::l1},
    {"l2", criteria::l2},
    {"level", nullptr},
    {"random", criteria::random},
}};

}  // namespace

std::span<const Criterion> criterion_table() { return kTable; }

const Criterion& find_criterion(std::string_view name) {
  const auto has_name = [&](const Criterion& row) { return row.name == name; };
  const auto* row = std::find_if(kTable.begin(), kTable.end(), has_name);
  if (row == kTable.end()) throw errors::unknown_criterion(name);
  return *row;
}

std::vector<std::string> criterion_names() {
  std::vector<std::string> names;
  for (const Criterion& row : kTable) names.emplace_back(row.name);
  return names;
}

}  // namespace parsimony
