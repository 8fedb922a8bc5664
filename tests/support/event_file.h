// Reads event files as TensorBoard does: with protobuf and the published numbers of fields.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace parsimony::test {

struct Event {
  double wall_time = 0;  ///< seconds since 1970
  int64_t step = 0;
  std::string file_version;              ///< of the first one
  std::map<std::string, float> scalars;  ///< by tag
};

/// The events of a file. Throws std::runtime_error where a checksum, a record or a message is
/// wrong.
std::vector<Event> read_events(const std::string& bytes);

/// Step and value of a tag's points, in the order of the files, of all files in a folder.
using Points = std::vector<std::pair<int64_t, float>>;
std::map<std::string, Points> read_run(const std::string& folder);

/// The paths of a folder's event files, sorted.
std::vector<std::string> event_files(const std::string& folder);

}  // namespace parsimony::test
