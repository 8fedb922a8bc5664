// What `forward` takes: tensors and numbers, also in tuples, lists and dictionaries. A network's
// inputs are all of them, one after the other.
#pragma once

#include <ATen/core/jit_type.h>
#include <torch/csrc/jit/api/module.h>

#include <string>
#include <vector>

namespace parsimony::torch_io::script {

enum class ArgumentKind : uint8_t { kTensor, kNumber, kTuple, kList, kDict, kLeftOut };

struct Argument {
  ArgumentKind kind = ArgumentKind::kLeftOut;
  std::string name;                    ///< "x", "pair.0", "batch.image"
  c10::TypePtr type;                   ///< of what is given for an optional one
  size_t input = 0;                    ///< the tensor's or number's place among the inputs
  std::vector<Argument> items = {};    ///< of a tuple, a list or a dictionary
  std::vector<std::string> keys = {};  ///< of a dictionary: those that the program reads
};

/// All arguments but `self`, for so many inputs. What is optional or has a default may be left out;
/// a list takes what the others leave.
/// @throws ConfigError if there are too few inputs or too many; UnsupportedError for other types
std::vector<Argument> arguments_of(const torch::jit::Module& module, size_t inputs);

/// The arguments that the inputs are, tensors of one number for numbers. Those that are left out at
/// the end are missing.
std::vector<c10::IValue> values_of(const std::vector<Argument>& arguments,
                                   const std::vector<at::Tensor>& inputs);

}  // namespace parsimony::torch_io::script
