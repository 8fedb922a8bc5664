// The figures of a report that was written earlier, and what has changed since another one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace parsimony {

struct Figure {
  enum class Kind : uint8_t { kCount, kNumber, kFraction, kSeconds, kProof };

  std::string name;  ///< "parameters", "l1 at 50%: accuracy"
  Kind kind = Kind::kNumber;
  std::optional<double> dense;  ///< of the network before pruning
  std::optional<double> value;  ///< none: it could not be measured
  bool lower_is_better = true;
};

struct ReportFigures {
  std::string title;
  std::vector<Figure> figures;
};

/// Returns whether the text begins like the JSON report of `prune` or of a sweep.
bool is_report(std::string_view text);

/// Reads the figures of a JSON report of `prune` or of a sweep.
/// @param place  for messages: the file
/// @throws ModelError, naming place and field, if it is neither
ReportFigures read_figures(std::string_view json, std::string_view place);

/// Lists figures worse than `baseline` by more than a share of it: "parameters: 1,234, was 1,000".
/// A figure that only `baseline` has counts as worse; times are not judged.
/// @param allowed  0.01: one per cent
std::vector<std::string> what_is_worse(const ReportFigures& report, const ReportFigures& baseline,
                                       double allowed);

/// Renders a table for a pull request. @param baseline  may be null
std::string to_markdown(const ReportFigures& report, const ReportFigures* baseline);

}  // namespace parsimony
