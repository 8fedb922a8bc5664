// Memory that must not change for the sake of one weight.
#pragma once

#include <c10/core/StorageImpl.h>

#include <unordered_set>

#include "parsimony/torch_io/script/origins_impl.h"

namespace parsimony::torch_io::script {

/// What several weights show, or a tensor of the module in another way than a weight does.
std::unordered_set<const c10::StorageImpl*> shared_memory(const Origins& origins);

}  // namespace parsimony::torch_io::script
