// The ledger of a sweep: one line for every finished point, written so that no crash loses one.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "parsimony/report/ledger_point.h"

namespace parsimony {

/// What a ledger holds.
struct LedgerContent {
  std::vector<LedgerPoint> points;  ///< in the order in which they were finished, each key once
  std::vector<std::string> notes;   ///< what was passed over, for people
};

/// The file `ledger.jsonl` in the folder of a sweep. It only grows. Several processes, also of
/// several machines with a common file system that has flock, may append at once.
///
///     Ledger ledger("runs/cifar10");
///     if (!ledger.keys().contains(key)) ledger.append(train(key));
class Ledger {
 public:
  /// Touches nothing; the folder must be there when something is appended.
  explicit Ledger(const std::string& folder);

  const std::string& path() const { return path_; }

  /// Adds the point, on the disk when this returns. A line that a killed process left unfinished is
  /// cut off first. Returns false, and writes nothing, if another process has finished the same
  /// point in the meantime.
  /// @throws IoError if the file cannot be written; it is then as it was before
  /// @throws ModelError if the file holds what is no ledger line
  bool append(const LedgerPoint& point);

  /// The finished points; none if there is no file yet.
  /// @throws IoError, ModelError, UnsupportedError @see read_ledger
  LedgerContent content() const;
  std::vector<LedgerPoint> points() const { return content().points; }
  std::set<std::string> keys() const;

 private:
  std::string path_;
};

/// Reads one file. Of two lines with one key that agree the first counts; an unfinished last line
/// does not.
/// @throws IoError if it cannot be read
/// @throws ModelError if a line is no point, or two contradict each other: names both
/// @throws UnsupportedError if a newer version wrote it
LedgerContent read_ledger(const std::string& path);

/// The ledgers of several folders as one, under the same rules. A path of a file is taken as it is.
/// @throws IoError if a folder has no ledger
LedgerContent merge_ledgers(std::span<const std::string> folders);

}  // namespace parsimony
