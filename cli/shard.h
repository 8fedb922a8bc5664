// Which part of a sweep this process is to do.
#pragma once

#include <string>

namespace parsimony::cli {

struct ShardOption {
  int index = 0;  ///< from 0
  int count = 1;
};

/// "2/8" is the second of eight. Without a text the environment is asked: a Slurm array or job, or
/// what mpirun sets. @throws ConfigError
ShardOption parse_shard(const std::string& text);

}  // namespace parsimony::cli
