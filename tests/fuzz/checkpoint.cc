// Any bytes are a checkpoint or an Error; what was cut is a checkpoint again.
#include "parsimony/checkpoints/checkpoint.h"

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "parsimony/base/errors.h"
#include "tests/fuzz/support/memory.h"
#include "tests/fuzz/support/scratch.h"

using namespace parsimony;  // NOLINT(google-build-using-namespace)

namespace {

constexpr int64_t kMostElements = 1 << 16;

/// Keeps the first index of the first axis of every tensor that has several.
void cut_all(Checkpoint& checkpoint) {
  for (const TensorId id : checkpoint.tensors().ids()) {
    const StoredTensor& tensor = checkpoint.tensors()[id];
    if (tensor.count() <= kMostElements) checkpoint.values(id);
    if (tensor.dims.empty() || tensor.dims.front() < 2 || !tensor.why_fixed.empty()) continue;
    checkpoint.cut(id, {{0, tensor.dims.front(), {0}}});
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::Scratch folder;
  folder.write("in", {reinterpret_cast<const char*>(data), size});
  const fuzz::MemoryLimit limit(32 * size);
  try {
    const auto checkpoint = open_checkpoint(folder / "in");
    const size_t tensors = checkpoint->tensors().size();
    cut_all(*checkpoint);
    checkpoint->write(folder / "out");
    if (open_checkpoint(folder / "out")->tensors().size() != tensors) std::abort();
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
