// score[c] uniform in [0, 1); a counter-based generator, so that no draw depends on another.
#include "parsimony/pruners/criteria/criteria.h"

namespace parsimony::criteria {

namespace {

/// splitmix64. @source Steele et al., Fast Splittable Pseudorandom Number Generators, OOPSLA 2014
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

uint64_t key_of(uint64_t seed, std::string_view id) {
  uint64_t key = mix(seed);
  for (char c : id) key = mix(key ^ static_cast<unsigned char>(c));
  return key;
}

}  // namespace

Scores random(const Graph& /*graph*/, const Group& group, const CriterionOptions& options) {
  const uint64_t key = key_of(options.seed, group.id);
  Scores scores(group.size);
  for (size_t c = 0; c < scores.size(); ++c) {
    scores[c] = static_cast<double>(mix(key ^ mix(c)) >> 11) * 0x1p-53;
  }
  return scores;
}

}  // namespace parsimony::criteria
