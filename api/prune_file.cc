#include "parsimony/api/prune_file.h"

#include "parsimony/api/open_model.h"
#include "parsimony/api/supplies.h"

namespace parsimony {

PruneResult prune_file(const std::string& input, const std::string& output,
                       const ConfigList& config, const PruneOptions& options) {
  const auto model = open_model(input, options.inputs);
  PruneOptions own = options;
  Supplies supplies(own, config, model->graph());
  PruneResult result = prune_model(*model, config, own, &supplies.engine());
  supplies.save();
  result.pruning.plan.sha256 = model->sha256();
  model->write(output);
  return result;
}

}  // namespace parsimony
