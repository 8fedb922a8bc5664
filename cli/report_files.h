// The report of a sweep, as files.
#pragma once

#include <string>
#include <vector>

namespace parsimony::cli {

/// Writes report.html, .md, .csv and .json of the folders' ledgers into `out`.
/// @param tensorboard  folder for event files of the trade-off; may be empty
/// @returns a summary for people. @throws IoError, ModelError, UnsupportedError
std::string write_report(const std::vector<std::string>& folders, const std::string& out,
                         const std::string& title, const std::string& tensorboard = {});

}  // namespace parsimony::cli
