// Event files, which TensorBoard shows.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace parsimony {

/// A value and its name, grouped by the part before a slash.
struct Scalar {
  std::string tag;   ///< "test/accuracy"
  double value = 0;  ///< kept as float32
};

/// A new file of scalars. All files in one folder are one run in TensorBoard, so a resumed run gets
/// another file; a point of the same tag and step replaces the earlier one.
///
///     EventFile events("logs/l1");
///     events.add(epoch, {{"train/loss", loss}, {"test/accuracy", share}});
///
/// @source TensorFlow's record_writer.h, crc32c.h, event.proto and summary.proto
class EventFile {
 public:
  /// Creates the folder and the file `events.out.tfevents.SECONDS.HOST`, with the first unused
  /// second from now on. @throws IoError
  explicit EventFile(const std::string& folder);

  const std::string& path() const { return path_; }

  /// Appends the scalars with the current time as one record, and flushes it. `step` is their
  /// position on the axis. @throws IoError
  void add(int64_t step, const std::vector<Scalar>& scalars);

 private:
  void append(const std::string& event);

  std::string path_;
  std::unique_ptr<FILE, int (*)(FILE*)> file_;
};

}  // namespace parsimony
