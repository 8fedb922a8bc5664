#include "parsimony/api/prune_file.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "parsimony/api/engine_services.h"
#include "parsimony/api/open_model.h"
#include "parsimony/base/ranges.h"
#include "parsimony/pruners/network_limits.h"

namespace parsimony {

PruneResult prune_file(const std::string& input, const std::string& output,
                       const PruneRequest& request, const PruneServices& services) {
  const auto model = open_model(input, request.inputs);
  EngineServices served(request, model->graph(), services);
  PruneResult result = prune_model(*model, request, served);
  served.save();
  result.plan.sha256 = model->sha256();
  const int64_t before = bytes_with_data(*model);
  const int64_t after = model->write(output);
  std::ranges::copy(above_file_budget(request.config, before, after),
                    std::back_inserter(result.notes));
  return result;
}

std::vector<std::string> above_file_budget(const ConfigList& config, int64_t before,
                                           int64_t after) {
  std::vector<std::string> texts;
  for (const ConfigEntry& entry : config.entries) {
    std::vector<Limit> limits = entry.request.also;
    limits.push_back({entry.request.budget, entry.request.amount, entry.request.ratio});
    for (const Limit& limit : limits) {
      if (limit.budget != Budget::kFile || entry.exclude) continue;
      std::string text = above_limit(limit, before, after);
      if (!text.empty() && !contains(texts, text)) texts.push_back(std::move(text));
    }
  }
  return texts;
}

}  // namespace parsimony
