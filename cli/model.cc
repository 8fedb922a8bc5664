#include "parsimony/cli/model.h"

#ifdef PARSIMONY_HAS_MIMALLOC
#include <mimalloc.h>
#endif

#include <cstdint>

#include "parsimony/api/known_networks.h"
#include "parsimony/api/open_model.h"
#include "parsimony/base/files.h"
#include "parsimony/checkpoints/checkpoint.h"
#include "parsimony/cli/options.h"
#include "parsimony/cli/terminal.h"

namespace parsimony::cli {
namespace {

constexpr int64_t kLargeFile = int64_t{16} << 20;

bool large_pages_suit = true;

}  // namespace

void refuse_large_pages() { large_pages_suit = false; }

void allow_large_pages() {
  if (!large_pages_suit) return;
#ifdef PARSIMONY_HAS_MIMALLOC
  if (environment("MIMALLOC_LARGE_OS_PAGES").empty()) mi_option_enable(mi_option_large_os_pages);
#endif
}

std::unique_ptr<EditableFile> open_model(const std::string& path,
                                         const std::vector<std::string>& specs) {
  if (is_checkpoint(path)) return std::move(open_known_network(path).model);
  if (size_of_file(path) >= kLargeFile) allow_large_pages();
  std::vector<InputSpec> inputs;
  for (const std::string& spec : specs) inputs.push_back(parse_input_spec(spec));
  return parsimony::open_model(path, inputs);
}

AnalysedModel read_and_analyse(const std::string& path, const std::vector<std::string>& specs,
                               PruneRequest request, bool quiet) {
  Progress progress({"read", "analyse"}, !quiet);
  progress.begin("read");
  AnalysedModel result{open_model(path, specs), {}};
  Graph& graph = result.model->graph();
  progress.begin("analyse");
  request.inputs = input_specs(specs, graph);
  result.analysis = analyse(graph, request);
  return result;
}

}  // namespace parsimony::cli
