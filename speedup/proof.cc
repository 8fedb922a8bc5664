#include "parsimony/speedup/proof.h"

#include <algorithm>
#include <cstdio>

namespace parsimony {
namespace {

/// An exact output is fine even with tolerance 0; a NaN is not.
bool fine(const OutputDifference& output) { return output.difference <= output.tolerance; }

double share(const OutputDifference& output) {
  if (output.tolerance > 0) return output.difference / output.tolerance;
  return output.difference;
}

}  // namespace

const OutputDifference* Proof::worst() const {
  const OutputDifference* worst = nullptr;
  for (const auto* list : {&outputs, &choices}) {
    for (const OutputDifference& one : *list) {
      const bool worse =
          worst == nullptr || (fine(*worst) && !fine(one)) || share(one) > share(*worst);
      if (worse) worst = &one;
    }
  }
  return worst;
}

bool Proof::holds() const {
  return ran() && std::ranges::all_of(outputs, fine) && std::ranges::all_of(choices, fine);
}

std::string Proof::worst_text() const {
  return to_text(*worst()) + (fault.empty() ? "" : "; " + fault);
}

std::string to_text(const OutputDifference& difference) {
  char numbers[80];
  std::snprintf(numbers, sizeof numbers, "difference %.1e, allowed %.1e", difference.difference,
                difference.tolerance);
  return "output \"" + difference.name + "\": " + numbers;
}

size_t first_guilty(size_t parts, const std::function<bool(size_t n)>& differs) {
  size_t fine = 0;  // with this many nothing differs
  size_t bad = parts;
  while (bad - fine > 1) {
    const size_t middle = fine + (bad - fine) / 2;
    (differs(middle) ? bad : fine) = middle;
  }
  return bad == 0 ? parts : bad - 1;
}

}  // namespace parsimony
