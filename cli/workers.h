// Worker processes.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace parsimony::cli {

/// Starts `count` copies of the command with the same arguments. They terminate with this process,
/// however it ends.
class Workers {
 public:
  /// @throws IoError if one cannot be started
  Workers(int count, const std::vector<std::string>& words);
  /// Waits for all.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void wait();

 private:
  std::vector<pid_t> pids_;
};

/// Is this process a worker? Ties its lifetime to its parent's.
bool is_worker();

}  // namespace parsimony::cli
