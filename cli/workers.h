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

/// Starts the command again, with these arguments and further variables "NAME=VALUE". It can see by
/// is_worker() what it is. @param messages  the file that has its standard error; its standard
/// output is then dropped. Empty: both stay. @throws IoError
pid_t start_copy(const std::vector<std::string>& words,
                 const std::vector<std::string>& variables = {}, const std::string& messages = {});

/// Is this process a worker? Ties its lifetime to its parent's.
bool is_worker();

}  // namespace parsimony::cli
