#include "parsimony/pruners/hardware.h"

#include <numeric>

namespace parsimony {
namespace {

int block_of(Target target, bool bytes) {
  switch (target) {
    case Target::kX86Avx512:
      return 16;
    case Target::kArmNeon:
    case Target::kCudaTensorCore:
      return bytes ? 16 : 8;
    case Target::kX86Avx2:
    case Target::kGeneric:
      return 8;
  }
  return 1;
}

}  // namespace

int multiple_for(Target target, const Graph& graph, const Group& group) {
  int multiple = 1;
  for (const Member& member : group.members) {
    const Weight& weight = graph.weight(graph.value(member.value).weight);
    if (member.role != Role::kOut || weight.dims.size() < 2 || member.offsets.size() < 2) continue;
    const int block = block_of(target, size_of(weight.dtype) == 1);
    const int elements = member.offsets[1] - member.offsets[0];
    multiple = std::lcm(multiple, block / std::gcd(block, elements));
  }
  while (multiple > 1 && group.size < 2 * multiple) multiple /= 2;
  return multiple;
}

}  // namespace parsimony
