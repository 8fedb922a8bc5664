// Changes to a model that keep it a well-formed message: other sizes, operators, attributes, edges.
#pragma once

#include <random>
#include <string>
#include <string_view>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace parsimony::fuzz {

/// One to three changes at random. Empty if `bytes` is no model.
std::string mutated(std::string_view bytes, std::mt19937& random);

}  // namespace parsimony::fuzz
