#include "parsimony/pruners/criteria/measured.h"

#include "parsimony/pruners/errors.h"

namespace parsimony::criteria {

Scores measured(const CriterionOptions& options, Measure measure, const Group& group,
                std::string_view criterion) {
  if (options.statistics == nullptr) throw errors::needs_data(criterion);
  const auto found = options.statistics->of(measure, group);
  return {found.begin(), found.end()};
}

}  // namespace parsimony::criteria
