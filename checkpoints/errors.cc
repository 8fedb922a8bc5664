#include "parsimony/checkpoints/errors.h"

#include <string>

namespace parsimony::errors {

ModelError bad_pickle(std::string_view what, size_t byte, std::string_view why) {
  return ModelError(std::string(what) + ": byte " + std::to_string(byte) +
                    " of the pickle: " + std::string(why));
}

ModelError bad_zip(std::string_view file, std::string_view why) {
  return ModelError(std::string(file) + ": zip archive: " + std::string(why));
}

ModelError bad_torch_file(std::string_view file, std::string_view why) {
  return ModelError(std::string(file) + ": not a file of torch.save: " + std::string(why));
}

ModelError bad_stored_tensor(std::string_view file, std::string_view tensor, std::string_view why) {
  return ModelError(std::string(file) + ": tensor " + in_quotes(tensor) + ": " + std::string(why));
}

ModelError not_a_checkpoint(std::string_view file, std::string_view what) {
  return ModelError(std::string(file) + ": not a checkpoint: " + std::string(what));
}

UnsupportedError cut_differently(std::string_view tensor, std::string_view other) {
  return UnsupportedError("tensors " + in_quotes(tensor) + " and " + in_quotes(other) +
                          " share their elements and would be cut differently");
}

UnsupportedError overlapping(std::string_view tensor, std::string_view other) {
  return UnsupportedError("tensors " + in_quotes(tensor) + " and " + in_quotes(other) +
                          " overlap in one storage, which cannot be cut");
}

UnsupportedError fixed_tensor(std::string_view tensor, std::string_view why) {
  return UnsupportedError("tensor " + in_quotes(tensor) + " cannot be cut: " + std::string(why));
}

ConfigError files_in_place(std::string_view path) {
  return ConfigError(std::string(path) +
                     ": its files keep their names, and would replace those that they are made of; "
                     "write into another folder");
}

ModelError another_network(std::string_view tensor, const Shape& dims, int axis, int64_t wanted) {
  return ModelError("tensor " + in_quotes(tensor) + " has shape " + to_string(dims) +
                    "; the plan cuts an axis " + std::to_string(axis) + " of " +
                    std::to_string(wanted) + ": a checkpoint of another network?");
}

ModelError no_copy_of_network(std::string_view first) {
  std::string text =
      "the checkpoint holds no copy of the network: no tensor has the name and shape, or the "
      "elements, of a weight";
  if (!first.empty()) text += "; " + std::string(first);
  return ModelError(text + ". `parsimony inspect` lists what it holds");
}

UnsupportedError other_type(std::string_view tensor, std::string_view found,
                            std::string_view wanted) {
  return UnsupportedError("tensor " + in_quotes(tensor) + " is of " + std::string(found) +
                          ", wanted " + std::string(wanted));
}

UnsupportedError ambiguous_weight(std::string_view weight, std::string_view tensor,
                                  std::string_view other) {
  return UnsupportedError(
      "weight " + in_quotes(weight) + ": the elements of " + in_quotes(tensor) + " and " +
      in_quotes(other) +
      " in the checkpoint both fit, and would be cut differently. Export the model with the names "
      "of its parameters, or with weights that differ");
}

UnsupportedError tied_differently(std::string_view tensor, std::string_view weight,
                                  std::string_view other) {
  return UnsupportedError("tensor " + in_quotes(tensor) + " is both " + in_quotes(weight) +
                          " and " + in_quotes(other) +
                          " of the model, which are cut differently: tie them in the model, or "
                          "save both");
}

UnsupportedError ambiguous_order(std::string_view optimizer, std::string_view parameter,
                                 std::string_view tensor, std::string_view other) {
  return UnsupportedError(
      "optimizer " + in_quotes(optimizer) + ": by the shapes of all states its parameter " +
      std::string(parameter) + " may be " + in_quotes(tensor) + " or " + in_quotes(other) +
      ", which are cut differently. Save it with names (torch.optim with named_parameters() writes "
      "`param_names`), or without the optimizer");
}

UnsupportedError unknown_order(std::string_view optimizer, size_t parameters, size_t tensors,
                               std::string_view state) {
  return UnsupportedError(
      "optimizer " + in_quotes(optimizer) + ": which of its " + std::to_string(parameters) +
      " parameters is which of the network's " + std::to_string(tensors) +
      " cannot be known, so that " + in_quotes(state) +
      " cannot be cut: their shapes agree in no order of the groups. Save it with names "
      "(torch.optim with named_parameters() writes `param_names`), or without the optimizer");
}

UnsupportedError blocks_in_checkpoint() {
  return UnsupportedError(
      "the plan removes whole blocks, whose modules the checkpoint's class would still construct; "
      "prune without --layers");
}

UnsupportedError left_in_checkpoint(std::span<const std::string> left) {
  std::string text = "--strict: " + std::to_string(left.size()) + " tensors are left as they are:";
  for (const std::string& line : left) text += "\n  " + line;
  return UnsupportedError(text);
}

}  // namespace parsimony::errors
