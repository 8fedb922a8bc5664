// A folder for small sweeps.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/command.h"

namespace parsimony::test {

using Json = nlohmann::json;
using Names = std::vector<std::string>;

class SweepPlace : public Workplace {
 public:
  /// Writes r.json: a small CNN on 64 shapes, an epoch before and one after the cut.
  void recipe(const std::string& sweep) const;

  /// `parsimony sweep` with r.json, one thread and a memory format that is not measured.
  Outcome sweep(const std::string& arguments) const;
  static std::string command(const std::string& arguments);

  /// "l1 0.5 0" for every line of the folder's ledger, sorted.
  Names points(const std::string& folder) const;

  /// The folder's report.json.
  Json report(const std::string& folder) const;
  /// The same without what differs from run to run: times, and which is the quickest.
  Json lasting_report(const std::string& folder) const;

  /// How many files of a folder end like this.
  int files(const std::string& folder, const std::string& ending) const;
};

}  // namespace parsimony::test
