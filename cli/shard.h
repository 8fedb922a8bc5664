// The part of a sweep that this process does.
#pragma once

#include <string>

#include "parsimony/configs/recipe.h"

namespace parsimony::cli {

/// "2/8" is the second of eight. If empty, taken from the environment: a Slurm array or job, or
/// mpirun's variables. @throws ConfigError
Shard parse_shard(const std::string& text);

}  // namespace parsimony::cli
