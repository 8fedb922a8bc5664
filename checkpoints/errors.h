// Error texts of the checkpoints room.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "parsimony/base/errors.h"
#include "parsimony/base/types.h"

namespace parsimony::errors {

ModelError bad_pickle(std::string_view what, size_t byte, std::string_view why);
ModelError bad_zip(std::string_view file, std::string_view why);
ModelError bad_torch_file(std::string_view file, std::string_view why);
ModelError bad_stored_tensor(std::string_view file, std::string_view tensor, std::string_view why);
ModelError not_a_checkpoint(std::string_view file, std::string_view what);

UnsupportedError cut_differently(std::string_view tensor, std::string_view other);
UnsupportedError overlapping(std::string_view tensor, std::string_view other);
UnsupportedError fixed_tensor(std::string_view tensor, std::string_view why);

/// The files of a checkpoint would overwrite those that it was read from.
ConfigError files_in_place(std::string_view path);

ModelError another_network(std::string_view tensor, const Shape& dims, int axis, int64_t wanted);
/// `first`: a weight and why it has no tensor; may be empty.
ModelError no_copy_of_network(std::string_view first);
UnsupportedError other_type(std::string_view tensor, std::string_view found,
                            std::string_view wanted);
/// The elements of both tensors are the weight's.
UnsupportedError ambiguous_weight(std::string_view weight, std::string_view tensor,
                                  std::string_view other);
/// Both weights are the tensor.
UnsupportedError tied_differently(std::string_view tensor, std::string_view weight,
                                  std::string_view other);
/// A parameter of the optimizer may be either tensor.
UnsupportedError ambiguous_order(std::string_view optimizer, std::string_view parameter,
                                 std::string_view tensor, std::string_view other);
UnsupportedError unknown_order(std::string_view optimizer, size_t parameters, size_t tensors,
                               std::string_view state);
UnsupportedError blocks_in_checkpoint();
UnsupportedError left_in_checkpoint(std::span<const std::string> left);

}  // namespace parsimony::errors
