// The ledger of a sweep: one line per finished point, written crash-safe.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "parsimony/report/ledger_point.h"

namespace parsimony {

/// The contents of a ledger.
struct LedgerContent {
  std::vector<LedgerPoint> points;  ///< in the order in which they were finished, each key once
  std::vector<std::string> notes;   ///< what was skipped
};

/// The file `ledger.jsonl` in the folder of a sweep. It only grows. Several processes, also of
/// several machines with a common file system that has flock, may append at once.
///
///     Ledger ledger("runs/cifar10");
///     if (!ledger.keys().contains(key)) ledger.append(train(key));
class Ledger {
 public:
  /// Does not access the file; the folder must exist when something is appended.
  explicit Ledger(const std::string& folder);

  const std::string& path() const { return path_; }

  /// Appends the point and flushes it to disk. An unfinished line left by a killed process is
  /// removed first. Returns false, and writes nothing, if another process has finished the same
  /// point in the meantime.
  /// @throws IoError if the file cannot be written; it is then as it was before
  /// @throws ModelError if the file contains anything else than ledger lines
  bool append(const LedgerPoint& point);

  /// The finished points; none if there is no file yet.
  /// @throws IoError, ModelError, UnsupportedError @see read_ledger
  LedgerContent content() const;
  std::vector<LedgerPoint> points() const { return content().points; }
  std::set<std::string> keys() const;

 private:
  std::string path_;
};

/// Reads one file. Of two equal lines with the same key the first counts; an unfinished last line
/// is ignored.
/// @throws IoError if it cannot be read
/// @throws ModelError if a line is no point, or two contradict each other: names both
/// @throws UnsupportedError if a newer version wrote it
LedgerContent read_ledger(const std::string& path);

/// Merges the ledgers of several folders by the same rules. A file path is used directly.
/// @throws IoError if a folder has no ledger
LedgerContent merge_ledgers(std::span<const std::string> folders);

}  // namespace parsimony
