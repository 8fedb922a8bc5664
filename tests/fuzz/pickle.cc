// Any bytes are a pickle or an Error, and an edit that changes nothing changes nothing.
#include "parsimony/checkpoints/pickle.h"

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "parsimony/base/errors.h"
#include "parsimony/checkpoints/formats_impl.h"
#include "tests/fuzz/support/memory.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const parsimony::fuzz::MemoryLimit limit(32 * size);  // an instruction of one byte is an object
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const parsimony::pickle::Pickle pickle(bytes, "fuzz");
    if (parsimony::pickle::PickleEdit(pickle).bytes() != pickle.bytes()) std::abort();
    parsimony::checkpoints::tensors_of(pickle, "fuzz");
  } catch (const parsimony::Error&) {
    return 0;
  }
  return 0;
}
