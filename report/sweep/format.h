// Formatting of numbers in reports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "parsimony/report/ledger.h"

namespace parsimony {

/// "50%"; "12.5%" if needed.
std::string sparsity_text(double sparsity);
/// "47.10%" of the examples.
std::string accuracy_text(double share);
/// "4.52".
std::string perplexity_text(double perplexity);
/// "47.10%", "47.10%, perplexity 4.52" for a language model.
std::string score_text(double share, const std::optional<double>& perplexity);
/// "0.4123", "–" where there is none: of a scale that is not known.
std::string metric_text(double value);
/// "−1.18 points": a difference of two accuracies.
std::string change_text(double change);
/// "2.00×": how many times less `after` is. "–" where one of them is not positive.
std::string ratio_text(double before, double after);
std::string times_text(double ratio);
/// "122 s", "9.1 s", "0.18 s".
std::string seconds_text(double seconds);
/// "8.49 MB", with powers of ten.
std::string bytes_text(int64_t bytes);
/// "7.71 M", multiply-adds.
std::string macs_text(double macs);
/// "0.83 ms".
std::string milliseconds_text(double milliseconds);
/// "2, each 498 to 512 samples per second; 21.0% of the time waiting for gradients: 8.49 MB, then
/// 2.12 MB a step". @param point  that several ranks trained
std::string ranks_text(const LedgerPoint& point);
/// "3.1e-07".
std::string scientific_text(double value);

}  // namespace parsimony
