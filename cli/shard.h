// Which part of a sweep this process is to do.
#pragma once

#include <string>

#include "parsimony/configs/recipe.h"

namespace parsimony::cli {

/// "2/8" is the second of eight. Without a text the environment is asked: a Slurm array or job, or
/// what mpirun sets. @throws ConfigError
Shard parse_shard(const std::string& text);

}  // namespace parsimony::cli
