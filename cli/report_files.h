// The report of a sweep, as files.
#pragma once

#include <string>
#include <vector>

namespace parsimony::cli {

/// Writes report.html, .md, .csv and .json of the folders' ledgers into `out`.
/// @returns a summary for people. @throws IoError, ModelError, UnsupportedError
std::string write_report(const std::vector<std::string>& folders, const std::string& out,
                         const std::string& title);

}  // namespace parsimony::cli
