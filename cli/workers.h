// Copies of the command that work beside it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace parsimony::cli {

/// The command again, so many times, with the same words. They end when this process does, however
/// it ends.
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

/// Is this process one of them? Ties it to the life of the one that started it.
bool is_worker();

}  // namespace parsimony::cli
